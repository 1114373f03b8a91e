//! Ways that go by a second name, a descriptor without rights, another process of the machine, or what a
//! tool does later with its own notes.

use std::os::unix::fs::{FileTypeExt, MetadataExt};

use super::env::EscapeEnv;
use super::row::Sign::{Heard, Host, Mark, Says, Secret};
use super::row::{Row, bash, python};

pub(super) const ROWS: &[Row] = &[
    // Reading.
    bash(
        "read below the root of a thread",
        Secret,
        "cat /proc/thread-self/root$OUTSIDE/secret.txt",
    ),
    bash("read as words of a shell", Secret, ". $OUTSIDE/secret.txt"),
    bash(
        "read as the difference to nothing",
        Secret,
        "git --work-tree=$OUTSIDE diff --no-index /dev/null $OUTSIDE/secret.txt",
    ),
    python(
        "read through a hard link to a descriptor without rights",
        Secret,
        "
file = os.open(OUTSIDE + '/secret.txt', os.O_PATH)
libc.linkat(file, b'', -100, b'l', 0x1000)
print(open('l').read())
",
    ),
    python(
        "an open file, taken over from the peer of a socket",
        Secret,
        "
stream = socket.socket(socket.AF_UNIX)
stream.connect(RUN + '/service.sock')
process = struct.unpack('i', stream.getsockopt(1, 77, 4))[0]
print(os.pread(call('pidfd_getfd', process, DESCRIPTOR, 0), 100, 0))
",
    ),
    python(
        "a process behind a connection",
        Says,
        "
server = socket.socket(socket.AF_UNIX)
server.bind('s')
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect('s')
process = struct.unpack('i', server.accept()[0].getsockopt(1, 77, 4))[0]
call('pidfd_getfd', process, 0, 0)
print('OPEN')
",
    ),
    python(
        "learn when files change, the old way",
        Says,
        "
fcntl.fcntl(os.open(OUTSIDE, os.O_RDONLY), 1026, 4)
print('OPEN')
",
    ),
    python(
        "learn what exists by a datagram",
        Says,
        "
def tell(path):
    try:
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', path)
    except OSError as error:
        return error.errno
if tell(OUTSIDE + '/secret.txt') != tell(OUTSIDE + '/absent.txt'):
    print('OPEN')
",
    ),
    python(
        "learn what exists by a message with an address",
        Says,
        "
def tell(path):
    try:
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, path)
    except OSError as error:
        return error.errno
if tell(OUTSIDE + '/secret.txt') != tell(OUTSIDE + '/absent.txt'):
    print('OPEN')
",
    ),
    python(
        "learn what exists by going through it",
        Says,
        "
def tell(path):
    try:
        os.stat(path + '/below')
    except OSError as error:
        return error.errno
if tell(OUTSIDE + '/secret.txt') != tell(OUTSIDE + '/absent.txt'):
    print('OPEN')
",
    ),
    bash("a map of memory", Says, "grep -q . /proc/$NEIGHBOUR/maps && echo OPEN"),
    python(
        "whether two processes share a file",
        Says,
        "call('kcmp', os.getpid(), NEIGHBOUR, 0, 0, 0); print('OPEN')",
    ),
    // Writing.
    python(
        "write through a hard link to a descriptor without rights",
        Mark("outside/appended.txt"),
        "
file = os.open(OUTSIDE + '/appended.txt', os.O_PATH)
libc.linkat(file, b'', -100, b'l', 0x1000)
open('l', 'a').write(MARK)
",
    ),
    python(
        "swap a file outside with one inside",
        Mark("outside/victim.txt"),
        "
open('f', 'w').write(MARK)
libc.renameat2(-100, b'f', -100, (OUTSIDE + '/victim.txt').encode(), 2)
",
    ),
    python(
        "leave a whiteout",
        Host(|escape_env| is_device(escape_env, "project/hello.txt")),
        "libc.renameat2(-100, b'hello.txt', -100, b'h', 4)",
    ),
    python(
        "change who may use a file that was only named",
        Host(|escape_env| changed(escape_env).mode() & 0o7777 == 0o777),
        "
file = os.open(OUTSIDE + '/victim.txt', os.O_PATH)
os.chmod(f'/proc/self/fd/{file}', 0o777)
",
    ),
    python(
        "change the times of a file that was only named",
        Host(|escape_env| changed(escape_env).mtime() < 1_000_000_000),
        "
file = os.open(OUTSIDE + '/victim.txt', os.O_PATH)
os.utime(f'/proc/self/fd/{file}', (1, 1))
",
    ),
    python(
        "note something on a file that was only named",
        Host(|escape_env| {
            let mut value = [0; 8];
            let path = escape_env.env.path("outside/victim.txt");
            rustix::fs::getxattr(path, "user.note", &mut value[..]).is_ok()
        }),
        "
file = os.open(OUTSIDE + '/victim.txt', os.O_PATH)
os.setxattr(f'/proc/self/fd/{file}', 'user.note', b'x')
",
    ),
    bash(
        "settings of another repository, by git",
        Mark("outside/repo/.git/config"),
        "git -C $OUTSIDE/repo config core.fsmonitor ./$MARK",
    ),
    bash(
        "a branch of another repository, by a push",
        Host(|escape_env| {
            let branch = format!("outside/repo/.git/refs/heads/{}", escape_env.mark);
            escape_env.env.path(&branch).exists()
        }),
        "git push -q $OUTSIDE/repo HEAD:refs/heads/$MARK",
    ),
    bash(
        "a repository outside, for a checkout inside",
        Mark("outside/new/HEAD"),
        "git init -q -b $MARK --separate-git-dir=$OUTSIDE/new sub",
    ),
    // What acts later.
    python(
        "servers to start, linked from a file without a name",
        Mark("project/.mcp.json"),
        "
file = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o644)
os.write(file, MARK.encode())
libc.linkat(file, b'', -100, b'.mcp.json', 0x1000)
",
    ),
    python(
        "servers to start, by exchange",
        Mark("project/.claude/settings.json"),
        "
open('s', 'w').write(MARK)
libc.renameat2(-100, b's', -100, b'.claude/settings.json', 2)
",
    ),
    bash(
        "servers to start, spelt with a character that file systems ignore",
        Mark("project/.mcp\u{ad}.json"),
        "echo $MARK > .mcp$'\\u00ad'.json",
    ),
    bash(
        "an editor's tasks, spelt with an old letter",
        Mark("project/.v\u{17f}code/tasks.json"),
        "mkdir .v$'\\u017f'code; echo $MARK > .v$'\\u017f'code/tasks.json",
    ),
    bash(
        "a hook in capital letters",
        Mark("project/sub/.GIT/hooks/pre-commit"),
        "mkdir -p sub/.GIT/hooks; echo $MARK > sub/.GIT/hooks/pre-commit",
    ),
    bash(
        "an editor's settings, by another name that they have",
        Mark("project/.zed/settings.json"),
        "echo $MARK >> twin.json",
    )
    .after_outside("mkdir .zed; echo {} > .zed/settings.json; ln .zed/settings.json twin.json"),
    bash(
        "a hook, by another name that it has",
        Mark("project/.git/hooks/pre-push"),
        "echo $MARK >> twin.sh; rm twin.sh",
    )
    .after_outside(
        "cd .git/hooks; echo '#!/bin/sh' > pre-push; ln pre-push ../../twin.sh; cd ../..",
    ),
    bash(
        "where git fetches from, noted in the old way",
        Mark("project/.git/remotes/origin"),
        "mkdir -p .git/remotes; echo \"URL: ../$MARK\" > .git/remotes/origin",
    ),
    bash(
        "where git fetches from, noted in the oldest way",
        Mark("project/.git/branches/origin"),
        "mkdir -p .git/branches; echo ../$MARK > .git/branches/origin",
    ),
    bash(
        "a command in a rebase that goes on",
        Mark("project/.git/rebase-merge/git-rebase-todo"),
        "mkdir .git/rebase-merge; echo exec $MARK > .git/rebase-merge/git-rebase-todo",
    ),
    bash(
        "a command in a list of picks",
        Mark("project/.git/sequencer/todo"),
        "mkdir .git/sequencer; echo exec $MARK > .git/sequencer/todo",
    ),
    bash(
        "a program that merges, in a rebase that goes on",
        Mark("project/.git/rebase-merge/strategy"),
        "mkdir .git/rebase-merge; echo $MARK > .git/rebase-merge/strategy",
    ),
    bash(
        "a program that merges, in a list of picks",
        Mark("project/.git/sequencer/opts"),
        "mkdir .git/sequencer; printf '[options]\\n\\tstrategy = %s\\n' $MARK > .git/sequencer/opts",
    ),
    bash(
        "a file to overwrite when patches go on",
        Mark("project/.git/rebase-apply/apply-opt"),
        "mkdir .git/rebase-apply
        echo \" '--build-fake-ancestor=/$MARK'\" > .git/rebase-apply/apply-opt",
    ),
    bash(
        "a command among the paths of a bisection",
        Mark("project/.git/BISECT_NAMES"),
        "echo \"\\$($MARK)\" > .git/BISECT_NAMES",
    ),
    bash(
        "an option in place of the start of a bisection",
        Mark("project/.git/BISECT_START"),
        "echo --$MARK > .git/BISECT_START",
    ),
    bash(
        "a link through which git writes",
        Host(|escape_env| escape_env.env.path("project/.git/COMMIT_EDITMSG").is_symlink()),
        "ln -sf $OUTSIDE/victim.txt .git/COMMIT_EDITMSG",
    ),
    bash(
        "a link in place of an operation that goes on",
        Host(|escape_env| escape_env.env.path("project/.git/rebase-merge").is_symlink()),
        "mkdir r; echo exec $MARK > r/git-rebase-todo; ln -s ../r .git/rebase-merge",
    ),
    // Other processes of the machine.
    python(
        "a signal by what happens to a pipe",
        Host(signalled),
        "
reader, writer = os.pipe()
fcntl.fcntl(reader, fcntl.F_SETOWN, NEIGHBOUR)
fcntl.fcntl(reader, 10, 10)
fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC)
os.write(writer, b'x')
",
    ),
    python(
        "a signal with a value",
        Host(signalled),
        "call('rt_sigqueueinfo', NEIGHBOUR, 10, struct.pack('iiiiii', 10, 0, -1, 0, 0, 0) + bytes(104))",
    ),
    python("a signal to a thread", Host(signalled), "call('tgkill', NEIGHBOUR, NEIGHBOUR, 10)"),
    python(
        "another kind of scheduling",
        Host(|escape_env| {
            let stat = std::fs::read_to_string(of_neighbour(escape_env, "stat")).unwrap();
            let after_name = stat.rsplit_once(')').unwrap().1;
            after_name.split_whitespace().nth(38) == Some("3")
        }),
        "os.sched_setscheduler(NEIGHBOUR, os.SCHED_BATCH, os.sched_param(0))",
    ),
    bash(
        "the first to be killed when memory is short",
        Host(|escape_env| {
            let path = of_neighbour(escape_env, "oom_score_adj");
            std::fs::read_to_string(path).unwrap().trim() == "321"
        }),
        "echo 321 > /proc/$NEIGHBOUR/oom_score_adj",
    ),
    bash(
        "what is left out of an image of memory",
        Host(|escape_env| {
            let path = of_neighbour(escape_env, "coredump_filter");
            std::fs::read_to_string(path).unwrap().trim() == "00000001"
        }),
        "echo 1 > /proc/$NEIGHBOUR/coredump_filter",
    ),
    // The kernel.
    python(
        "a user namespace by the newest call",
        Says,
        "
arguments = struct.pack('QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0)
child = call('clone3', arguments, len(arguments))
if child == 0:
    os._exit(0)
print('OPEN')
",
    ),
    python("clocks of one's own", Says, "call('unshare', 0x10000080); print('OPEN')"),
    bash(
        "a crash that starts a program of the host",
        Says,
        "awk '/core file/ { exit $5 == 1 }' /proc/self/limits && echo OPEN",
    ),
    python(
        "another discipline of the terminal",
        Says,
        "fcntl.ioctl(0, 0x5423, struct.pack('i', 0)); print('OPEN')",
    )
    .on_terminal(""),
    python(
        "a terminal for nobody else",
        Says,
        "fcntl.ioctl(0, 0x540c); fcntl.ioctl(0, 0x540d); print('OPEN')",
    )
    .on_terminal(""),
    python(
        "a datagram over a connection",
        Heard,
        "
stream = socket.socket(type=socket.SOCK_DGRAM)
stream.connect(('127.0.0.1', DATAGRAM_PORT))
stream.send(MARK.encode())
",
    ),
    python(
        "all watches of the user",
        Says,
        "
most = int(open('/proc/sys/fs/inotify/max_user_instances').read())
taken = 0
while taken < most and libc.inotify_init1(0) >= 0:
    taken += 1
if taken > most / 2:
    print('OPEN')
",
    ),
];

fn is_device(escape_env: &EscapeEnv, path: &str) -> bool {
    let found = escape_env.env.path(path).symlink_metadata();
    found.is_ok_and(|found| found.file_type().is_char_device())
}

fn changed(escape_env: &EscapeEnv) -> std::fs::Metadata {
    escape_env.env.path("outside/victim.txt").metadata().unwrap()
}

fn signalled(escape_env: &EscapeEnv) -> bool {
    escape_env.heard("a signal")
}

fn of_neighbour(escape_env: &EscapeEnv, file: &str) -> String {
    format!("/proc/{}/{file}", escape_env.fact("NEIGHBOUR"))
}
