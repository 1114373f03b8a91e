//! Ways to change what is outside.

use std::os::unix::fs::MetadataExt;

use super::env::EscapeEnv;
use super::row::Sign::{Host, Mark, Says};
use super::row::{Row, bash, python};

pub(super) const ROWS: &[Row] = &[
    // By a path.
    bash("write by an absolute path", Mark("outside/new"), "echo $MARK > $OUTSIDE/new"),
    bash("write by a relative path", Mark("outside/new"), "echo $MARK > ../outside/new"),
    bash("append to a file", Mark("outside/victim.txt"), "echo $MARK >> $OUTSIDE/victim.txt"),
    bash("write beside the project", Mark("project-evil/new"), "echo $MARK > $PROJECT-evil/new"),
    bash("write below home", Mark("home/new"), "echo $MARK > $HOMEDIR/new"),
    bash("write to the host's /tmp", Host(marked_tmp), "echo > /tmp/$NAME/$MARK"),
    bash("write to the host's shared memory", Host(marked_shm), "echo > /dev/shm/$NAME/$MARK"),
    bash(
        "write Ringwall's own log",
        Mark(LOG),
        "echo $MARK >> $HOMEDIR/.local/state/ringwall/audit/notes",
    ),
    bash(
        "write the program that holds the wall",
        Says,
        "[ -s $YARD/ringwall ] && : >> $YARD/ringwall && echo OPEN",
    ),
    // By a link.
    bash(
        "write through a new link",
        Mark("outside/victim.txt"),
        "ln -s $OUTSIDE/victim.txt l; echo $MARK >> l",
    ),
    bash(
        "write through a directory link",
        Mark("outside/new"),
        "ln -s $OUTSIDE d; echo $MARK > d/new",
    ),
    bash(
        "write through a link of the repository",
        Mark("outside/new"),
        "echo $MARK > planted-dir/new",
    ),
    bash(
        "write through a hard link",
        Mark("outside/victim.txt"),
        "ln $OUTSIDE/victim.txt l && echo $MARK >> l",
    ),
    bash(
        "write below another process's root",
        Mark("outside/new"),
        "for p in /proc/[0-9]*; do echo $MARK > $p/root$OUTSIDE/new && break; done",
    ),
    bash(
        "write where another process works",
        Mark("run/new"),
        "echo $MARK > /proc/$NEIGHBOUR/cwd/new",
    ),
    python(
        "write while a link swings",
        Mark("outside/appended.txt"),
        "
import threading
def swing():
    while not over:
        for target in ('hello.txt', OUTSIDE + '/appended.txt'):
            os.symlink(target, 'next')
            os.rename('next', 'swinging')
over = False
swinger = threading.Thread(target=swing)
swinger.start()
end = time.time() + 0.3
while time.time() < end:
    try:
        with open('swinging', 'a') as file:
            file.write(MARK)
    except OSError:
        pass
over = True
swinger.join()
",
    ),
    // Everything else that changes a directory.
    bash("move a file out", Mark("outside/new"), "echo $MARK > f; mv f $OUTSIDE/new"),
    bash(
        "move a file over another",
        Mark("outside/victim.txt"),
        "echo $MARK > f; mv f $OUTSIDE/victim.txt",
    ),
    bash("link a file out", Mark("outside/new"), "echo $MARK > f; ln f $OUTSIDE/new"),
    bash(
        "remove a file",
        Host(|escape_env| gone(escape_env, "outside/doomed.txt")),
        "rm -f $OUTSIDE/doomed.txt",
    ),
    bash(
        "take a file away",
        Host(|escape_env| gone(escape_env, "outside/movable.txt")),
        "mv $OUTSIDE/movable.txt m",
    ),
    bash(
        "remove a directory",
        Host(|escape_env| gone(escape_env, "outside/empty")),
        "rmdir $OUTSIDE/empty",
    ),
    bash(
        "make a directory",
        Host(|escape_env| there(escape_env, "outside/new")),
        "mkdir $OUTSIDE/new",
    ),
    bash(
        "make a link",
        Host(|escape_env| there(escape_env, "outside/new")),
        "ln -s /nowhere $OUTSIDE/new",
    ),
    bash("make a pipe", Host(|escape_env| there(escape_env, "outside/new")), "mkfifo $OUTSIDE/new"),
    python(
        "leave a socket",
        Host(|escape_env| there(escape_env, "outside/new")),
        "socket.socket(socket.AF_UNIX).bind(OUTSIDE + '/new')",
    ),
    bash(
        "take the project away",
        Host(|escape_env| gone(escape_env, "project/hello.txt")),
        "cd /; mv $PROJECT $PROJECT-evil/",
    ),
    // What belongs to a file besides its text.
    python("cut a file off", Host(emptied), "os.truncate(OUTSIDE + '/victim.txt', 0)"),
    bash("change who may use a file", Host(opened_up), "chmod 777 $OUTSIDE/victim.txt"),
    python(
        "change who may use a file, newly",
        Host(opened_up),
        "call('fchmodat2', -100, (OUTSIDE + '/victim.txt').encode(), 0o777, 0)",
    ),
    bash("change the owner of a file", Host(given_away), "chown 4242 $OUTSIDE/victim.txt"),
    bash("change the times of a file", Host(aged), "touch -d 2001-01-01 $OUTSIDE/victim.txt"),
    python(
        "note something on a file",
        Host(noted),
        "os.setxattr(OUTSIDE + '/victim.txt', 'user.note', b'x')",
    ),
    // By what was left open.
    bash("write to a file that was left open", Mark("outside/victim.txt"), "echo $MARK >&7")
        .after_outside("exec 7>>$OUTSIDE/victim.txt"),
    python(
        "write below a directory that was left open",
        Mark("outside/new"),
        "os.write(os.open('new', os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=7), MARK.encode())",
    )
    .after_outside("exec 7<$OUTSIDE"),
    bash(
        "open for writing what was left open for reading",
        Mark("outside/victim.txt"),
        "echo $MARK >> /proc/self/fd/7",
    )
    .after_outside("exec 7<$OUTSIDE/victim.txt"),
    python("change a file that was left open", Host(opened_up), "os.fchmod(7, 0o777)")
        .after_outside("exec 7<$OUTSIDE/victim.txt"),
    bash(
        "open for writing what came on standard input",
        Mark("outside/victim.txt"),
        "echo $MARK >> /proc/self/fd/0 || echo $MARK >> /dev/stdin",
    )
    .after_outside("exec 0<$OUTSIDE/victim.txt"),
    python(
        "cut off what came on standard input",
        Host(emptied),
        "os.truncate('/proc/self/fd/0', 0)",
    )
    .after_outside("exec 0<$OUTSIDE/victim.txt"),
    python(
        "cut off what came on standard input while opening it",
        Host(emptied),
        "os.open('/dev/stdin', os.O_RDONLY | os.O_TRUNC)",
    )
    .after_outside("exec 0<$OUTSIDE/victim.txt"),
    bash("write below standard input", Mark("outside/new"), "echo $MARK > /dev/stdin/new")
        .after_outside("exec 0<$OUTSIDE"),
    // By another way into the kernel.
    bash(
        "write by a queue of calls",
        Mark("outside/new"),
        "./escape ring-write $OUTSIDE/new $MARK",
    ),
    bash(
        "write by a call of 32 bits",
        Mark("outside/new"),
        "./escape old-write $OUTSIDE/new $MARK",
    ),
    bash(
        "write by a path that changes under the call",
        Mark("outside/appended.txt"),
        "./escape flip-write $PROJECT/hello.txt $OUTSIDE/appended.txt $MARK",
    ),
    python(
        "write a file that has no name yet",
        Mark("outside/new"),
        "
file = os.open(OUTSIDE, os.O_TMPFILE | os.O_WRONLY, 0o644)
os.write(file, MARK.encode())
libc.linkat(-100, f'/proc/self/fd/{file}'.encode(), -100, (OUTSIDE + '/new').encode(), 0x400)
",
    ),
    python(
        "write by the number of a file",
        Mark("run/secret.txt"),
        "
handle = ctypes.create_string_buffer(bytes.fromhex(HANDLE))
directory = os.open('.', os.O_RDONLY)
file = call('open_by_handle_at', directory, handle, os.O_WRONLY | os.O_APPEND)
os.write(file, MARK.encode())
",
    ),
    // Past what is only read.
    python(
        "write among the system's programs",
        Says,
        "os.open('/usr/bin', os.O_TMPFILE | os.O_WRONLY); print('OPEN')",
    ),
    python(
        "write among the system's settings",
        Says,
        "os.open('/etc', os.O_TMPFILE | os.O_WRONLY); print('OPEN')",
    ),
    bash(
        "write after mounting anew",
        Mark("outside/new"),
        "unshare -Urm bash -c \"mount -o remount,rw,bind /; mount -o remount,rw,bind $OUTSIDE
        echo $MARK > $OUTSIDE/new\"",
    ),
    bash(
        "write a program of the user's",
        Mark("home/.cargo/bin/tool"),
        "echo $MARK > $HOMEDIR/.cargo/bin/tool",
    ),
    // What the configuration denies inside the project.
    bash("write a denied file", Mark("project/frozen.txt"), "echo $MARK >> frozen.txt"),
    bash(
        "put something over a denied file",
        Mark("project/frozen.txt"),
        "echo $MARK > f; mv -f f frozen.txt",
    ),
    bash(
        "write a denied file through a hard link",
        Mark("project/frozen.txt"),
        "ln frozen.txt l; echo $MARK >> l",
    ),
    python(
        "write a denied file by its descriptor",
        Mark("project/frozen.txt"),
        "
name = f'/proc/self/fd/{os.open(\"frozen.txt\", os.O_RDONLY)}'
try:
    file = open(name, 'a')
except OSError:
    libc.linkat(-100, name.encode(), -100, b'l', 0x400)
    file = open('l', 'a')
file.write(MARK)
",
    ),
    bash(
        "swap a denied directory",
        Mark("project/frozen/inner.txt"),
        "mv frozen f; mkdir frozen; echo $MARK > frozen/inner.txt",
    ),
    bash(
        "remove a denied file",
        Host(|escape_env| gone(escape_env, "project/frozen.txt")),
        "rm -f frozen.txt",
    ),
    bash(
        "cut a denied file off",
        Host(|escape_env| escape_env.env.read("project/frozen.txt").is_empty()),
        ": > frozen.txt",
    ),
    bash(
        "change who may use a denied file",
        Host(|escape_env| mode(escape_env, "project/frozen.txt") == 0o777),
        "chmod 777 frozen.txt",
    ),
];

const LOG: &str = "home/.local/state/ringwall/audit/notes";

fn gone(escape_env: &EscapeEnv, path: &str) -> bool {
    escape_env.env.path(path).symlink_metadata().is_err()
}

fn there(escape_env: &EscapeEnv, path: &str) -> bool {
    !gone(escape_env, path)
}

fn mode(escape_env: &EscapeEnv, path: &str) -> u32 {
    escape_env.env.path(path).metadata().map_or(0, |file| file.mode() & 0o7777)
}

fn victim(escape_env: &EscapeEnv) -> std::fs::Metadata {
    escape_env.env.path("outside/victim.txt").metadata().unwrap()
}

fn emptied(escape_env: &EscapeEnv) -> bool {
    victim(escape_env).len() == 0
}

fn opened_up(escape_env: &EscapeEnv) -> bool {
    mode(escape_env, "outside/victim.txt") == 0o777
}

fn given_away(escape_env: &EscapeEnv) -> bool {
    victim(escape_env).uid() == 4242
}

fn aged(escape_env: &EscapeEnv) -> bool {
    victim(escape_env).mtime() < 1_000_000_000
}

fn noted(escape_env: &EscapeEnv) -> bool {
    let mut value = [0; 8];
    let path = escape_env.env.path("outside/victim.txt");
    rustix::fs::getxattr(path, "user.note", &mut value[..]).is_ok()
}

fn marked_tmp(escape_env: &EscapeEnv) -> bool {
    marked(escape_env, "/tmp")
}

fn marked_shm(escape_env: &EscapeEnv) -> bool {
    marked(escape_env, "/dev/shm")
}

fn marked(escape_env: &EscapeEnv, dir: &str) -> bool {
    std::path::Path::new(dir).join(escape_env.fact("NAME")).join(&escape_env.mark).exists()
}
