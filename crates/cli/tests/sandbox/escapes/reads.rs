//! Ways to read what is outside.

use super::row::Sign::{Says, Secret};
use super::row::{Row, bash, python};

pub(super) const ROWS: &[Row] = &[
    // By a path.
    bash("read by an absolute path", Secret, "cat $OUTSIDE/secret.txt"),
    bash("read by a relative path", Secret, "cat ../outside/secret.txt"),
    bash("read by a path with detours", Secret, "cat ./vendor/../../outside/./repo/..//secret.txt"),
    bash("read from a directory entered before", Secret, "cd $OUTSIDE && cat secret.txt"),
    bash("read beside the project", Secret, "cat $PROJECT-evil/secret.txt"),
    bash("read a key of the user", Secret, "cat $HOMEDIR/.ssh/id_ed25519"),
    bash("read a token beside a toolchain", Secret, "cat $HOMEDIR/.cargo/credentials.toml"),
    bash("read Ringwall's own log", Secret, "cat $HOMEDIR/.local/state/ringwall/audit/notes"),
    bash("read the host's /tmp", Secret, "cat /tmp/$NAME/secret.txt"),
    bash("read the host's /var/tmp", Secret, "cat /var/tmp/$NAME/secret.txt"),
    bash("read the host's shared memory", Secret, "cat /dev/shm/$NAME/secret.txt"),
    bash("read above the root", Secret, "cat /../../$OUTSIDE/secret.txt"),
    bash("read the system's passwords", Says, "grep -q '^root:' /etc/shadow && echo OPEN"),
    bash("read a copy of a tree", Secret, "cp -r $OUTSIDE copy; cat copy/secret.txt"),
    bash("read an archive of a tree", Secret, "tar cf a.tar $OUTSIDE; tar xOf a.tar"),
    // By a link.
    bash("read through a new link", Secret, "ln -s $OUTSIDE/secret.txt l; cat l"),
    bash("read through a link of the repository", Secret, "cat planted-link"),
    bash("read through a directory link", Secret, "cat planted-dir/secret.txt"),
    bash(
        "read through a chain of links",
        Secret,
        "ln -s $OUTSIDE one; ln -s one two; ln -s two/secret.txt three; cat three",
    ),
    bash("read through a hard link", Secret, "ln $OUTSIDE/secret.txt l && cat l"),
    bash("read what was moved in", Secret, "mv $OUTSIDE/movable.txt m; cat m"),
    python(
        "read while a link swings",
        Secret,
        "
import threading
def swing():
    while not over:
        for target in ('hello.txt', OUTSIDE + '/secret.txt'):
            os.symlink(target, 'next')
            os.rename('next', 'swinging')
over = False
swinger = threading.Thread(target=swing)
swinger.start()
end = time.time() + 0.3
while time.time() < end:
    try:
        text = open('swinging').read()
        if text != 'hello\\n':
            print(text)
            break
    except OSError:
        pass
over = True
swinger.join()
",
    ),
    // By what /proc shows.
    bash("read below the root of this process", Secret, "cat /proc/self/root$OUTSIDE/secret.txt"),
    bash(
        "read below the root of any process",
        Secret,
        "for p in /proc/[0-9]*; do cat $p/root$OUTSIDE/secret.txt && break; done",
    ),
    bash("read above the working directory", Secret, "cat /proc/self/cwd/../outside/secret.txt"),
    bash("read where another process works", Secret, "cat /proc/$NEIGHBOUR/cwd/secret.txt"),
    bash("read what another process has open", Secret, "cat /proc/$NEIGHBOUR/fd/$DESCRIPTOR"),
    bash("read a variable", Secret, "env"),
    bash(
        "read a variable of any process",
        Secret,
        "grep -aho 'API_TOKEN=[a-z0-9]*' /proc/[0-9]*/environ",
    ),
    // By git.
    bash(
        "read another repository",
        Secret,
        "git --git-dir $OUTSIDE/repo/.git show main:secret.txt",
    ),
    bash(
        "read through a git link",
        Secret,
        "mkdir g; echo gitdir: $OUTSIDE/repo/.git > g/.git; git -C g show HEAD:secret.txt",
    ),
    bash(
        "read objects borrowed from another repository",
        Secret,
        "git init -q b && echo $OUTSIDE/repo/.git/objects > b/.git/objects/info/alternates
        git -C b show $(cat $OUTSIDE/repo/.git/refs/heads/main):secret.txt",
    ),
    bash("read a clone", Secret, "git clone -q $OUTSIDE/repo c; cat c/secret.txt"),
    bash(
        "read a worktree of another repository",
        Secret,
        "git -C $OUTSIDE/repo worktree add -q $PROJECT/w; cat w/secret.txt",
    ),
    // By another program, or another way into the kernel.
    bash("read by a renamed program", Secret, "cp $(command -v cat) t; ./t $OUTSIDE/secret.txt"),
    bash(
        "read by a program that the loader starts",
        Secret,
        "$(ls /lib*/ld-linux-*.so.* | head -1) $(command -v cat) $OUTSIDE/secret.txt",
    ),
    bash("read by a program without libraries", Secret, "./escape read $OUTSIDE/secret.txt"),
    python(
        "read by a program that is no file",
        Secret,
        "
program = os.memfd_create('program', 0)
os.sendfile(program, os.open('/bin/cat', os.O_RDONLY), 0, 1 << 24)
os.execve(program, ['cat', OUTSIDE + '/secret.txt'], {})
",
    ),
    bash("run a program outside", Secret, "$OUTSIDE/tell"),
    bash("read as a script", Secret, ". $OUTSIDE/tell"),
    bash("read by a queue of calls", Secret, "./escape ring-read $OUTSIDE/secret.txt"),
    bash("read by a call of 32 bits", Secret, "./escape old-read $OUTSIDE/secret.txt"),
    bash(
        "read by a path that changes under the call",
        Secret,
        "./escape flip-read $PROJECT/hello.txt $OUTSIDE/secret.txt",
    ),
    python(
        "read by the number of a file",
        Secret,
        "
handle = ctypes.create_string_buffer(bytes.fromhex(HANDLE))
print(os.read(call('open_by_handle_at', os.open('.', os.O_RDONLY), handle, os.O_RDONLY), 100))
",
    ),
    python(
        "read below a directory that was only named",
        Secret,
        "
named = os.open(OUTSIDE, os.O_PATH)
print(os.read(os.open('secret.txt', os.O_RDONLY, dir_fd=named), 100))
",
    ),
    python(
        "read past the last check of a path",
        Secret,
        "
how = struct.pack('QQQ', os.O_RDONLY, 0, 0)
print(os.read(call('openat2', -100, (OUTSIDE + '/secret.txt').encode(), how, len(how)), 100))
",
    ),
    // By what was left open.
    python("read a file that was left open", Secret, "print(os.pread(7, 100, 0))")
        .after_outside("exec 7<$OUTSIDE/secret.txt"),
    python(
        "read below a directory that was left open",
        Secret,
        "print(os.read(os.open('secret.txt', os.O_RDONLY, dir_fd=7), 100))",
    )
    .after_outside("exec 7<$OUTSIDE"),
    python(
        "read from a directory that was left open",
        Secret,
        "os.fchdir(7); print(open('secret.txt').read())",
    )
    .after_outside("exec 7<$OUTSIDE"),
    bash("read by the name of what was left open", Secret, "cat /proc/self/fd/7/secret.txt")
        .after_outside("exec 7<$OUTSIDE"),
    bash("read what was left open on a high number", Secret, "cat <&500")
        .after_outside("exec 500<$OUTSIDE/secret.txt"),
    bash(
        "read below standard input",
        Secret,
        "cat /dev/stdin/secret.txt || cat /dev/fd/0/secret.txt",
    )
    .after_outside("exec 0<$OUTSIDE"),
    // What is known about files without opening them.
    bash("learn how large a file is", Says, "[ $(stat -c %s $OUTSIDE/sized) = 4321 ] && echo OPEN"),
    bash(
        "learn how old a file is",
        Says,
        "[ $(stat -c %Y $OUTSIDE/sized) -gt 1000000000 ] && echo OPEN",
    ),
    bash("learn the names of keys", Says, "grep -q $NAME /proc/keys && echo OPEN"),
    bash("learn the names of files", Secret, "ls $OUTSIDE/names"),
    bash("learn what a link says", Secret, "readlink $OUTSIDE/telling-link"),
    python(
        "learn what is noted on a file",
        Secret,
        "print(os.getxattr(OUTSIDE + '/victim.txt', 'user.secret'))",
    ),
    python(
        "learn when files change",
        Says,
        "
import select
watch = call('inotify_init1', 0)
call('inotify_add_watch', watch, RUN.encode(), 0xfff)
if select.select([watch], [], [], 0.5)[0]:
    print('OPEN')
",
    ),
    // What the configuration denies inside the project.
    bash("read a denied file", Secret, "cat key.pem"),
    bash("read a denied file through a hard link", Secret, "ln key.pem k; cat k"),
    bash("read a denied file under another name", Secret, "mv key.pem k; cat k"),
    bash("read a denied file in a renamed directory", Secret, "mv certificates c; cat c/inner.pem"),
    python(
        "read a denied file through an exchange",
        Secret,
        "
libc.renameat2(-100, b'key.pem', -100, b'hello.txt', 2)
print(open('hello.txt').read())
",
    ),
    // Devices.
    python(
        "read a disk",
        Says,
        "
import glob
for disk in glob.glob('/dev/vd?') + glob.glob('/dev/sd?') + glob.glob('/dev/nvme?n?'):
    if os.read(os.open(disk, os.O_RDONLY), 512):
        print('OPEN')
",
    ),
    python(
        "read a disk by a device of one's own",
        Says,
        "
import stat
os.mknod('disk', 0o600 | stat.S_IFBLK, os.makedev(*map(int, DEVICE.split(':'))))
if os.read(os.open('disk', os.O_RDONLY), 512):
    print('OPEN')
",
    ),
    python(
        "read memory of the kernel",
        Says,
        "
for name in ('/dev/mem', '/dev/kmem', '/proc/kcore'):
    try:
        if os.read(os.open(name, os.O_RDONLY), 16):
            print('OPEN')
    except OSError as error:
        print(error)
",
    ),
    python(
        "read the kernel's log",
        Says,
        "
try:
    text = os.read(os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK), 8192)
except OSError:
    text = call('syslog', 3, ctypes.create_string_buffer(4096), 4096)
if text:
    print('OPEN')
",
    ),
    bash(
        "read where the kernel is",
        Says,
        "grep -vq '^0000000000000000' /proc/kallsyms && echo OPEN",
    ),
    python(
        "read where memory really is",
        Says,
        "
text = ctypes.create_string_buffer(b'here')
entry = os.pread(os.open('/proc/self/pagemap', os.O_RDONLY), 8, ctypes.addressof(text) // 4096 * 8)
if struct.unpack('Q', entry)[0] & ((1 << 55) - 1):
    print('OPEN')
",
    ),
    bash("read the console", Says, "head -c 1 /dev/vcs1 > /dev/null && echo OPEN"),
    // With rights that a user namespace would give.
    bash(
        "read after mounting elsewhere",
        Secret,
        "mkdir m; unshare -Urm bash -c \"mount --bind $OUTSIDE m; cat m/secret.txt\"",
    ),
    bash(
        "read what mounts cover",
        Secret,
        "unshare -Urm bash -c \"umount -l $PROJECT; umount -l /; cat $OUTSIDE/secret.txt\"",
    ),
    bash(
        "read among another process's mounts",
        Secret,
        "nsenter -t $NEIGHBOUR -m cat $RUN/secret.txt",
    ),
];
