//! Ways to other processes of the user.

use super::env::EscapeEnv;
use super::row::Sign::{Host, Says, Secret};
use super::row::{Row, bash, python};

pub(super) const ROWS: &[Row] = &[
    python(
        "memory, by a tracer",
        Secret,
        "
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if libc.ptrace(16, NEIGHBOUR, None, None) == 0:
    os.waitpid(NEIGHBOUR, 0)
    words = [libc.ptrace(1, NEIGHBOUR, ADDRESS + at, None) for at in range(0, 24, 8)]
    print(b''.join(struct.pack('q', word) for word in words))
    libc.ptrace(17, NEIGHBOUR, None, None)
",
    ),
    python(
        "memory, copied",
        Secret,
        "
text = ctypes.create_string_buffer(20)
here = struct.pack('QQ', ctypes.addressof(text), 20)
there = struct.pack('QQ', ADDRESS, 20)
call('process_vm_readv', NEIGHBOUR, here, 1, there, 1, 0)
print(text.raw)
",
    ),
    python(
        "memory, as a file",
        Secret,
        "
print(os.pread(os.open(f'/proc/{NEIGHBOUR}/mem', os.O_RDONLY), 20, ADDRESS))
",
    ),
    python(
        "memory, changed",
        Says,
        "
text = ctypes.create_string_buffer(b'kept')
here, there = struct.pack('QQ', ctypes.addressof(text), 4), struct.pack('QQ', ADDRESS, 4)
call('process_vm_writev', NEIGHBOUR, here, 1, there, 1, 0)
print('OPEN')
",
    ),
    bash("a variable", Secret, "tr '\\0' '\\n' < /proc/$NEIGHBOUR/environ | grep NEIGHBOUR_TOKEN"),
    bash("the command line", Secret, "tr '\\0' ' ' < /proc/$NEIGHBOUR/cmdline"),
    bash("a list of all processes", Says, "ps -A -o pid= | grep -qw $NEIGHBOUR && echo OPEN"),
    python(
        "an open file, taken over",
        Secret,
        "
process = call('pidfd_open', NEIGHBOUR, 0)
print(os.pread(call('pidfd_getfd', process, DESCRIPTOR, 0), 100, 0))
",
    ),
    bash("a signal", Host(signalled), "kill -USR1 $NEIGHBOUR"),
    python(
        "a signal by descriptor",
        Host(signalled),
        "call('pidfd_send_signal', call('pidfd_open', NEIGHBOUR, 0), 10, 0, 0)",
    ),
    python("a place in the queue", Host(slowed), "os.setpriority(os.PRIO_PROCESS, NEIGHBOUR, 19)"),
    python(
        "a limit",
        Host(limited),
        "
import resource
resource.prlimit(NEIGHBOUR, resource.RLIMIT_FSIZE, (123456, 123456))
",
    ),
    // The one who holds the wall.
    bash(
        "reading after the parent was killed",
        Secret,
        "kill -9 $PPID; sleep 0.3; cat $OUTSIDE/secret.txt",
    ),
    bash(
        "reading after everybody was killed",
        Secret,
        // Without a wall that would be everybody on the machine.
        "[ $PPID = 1 ] && [ -n \"$RINGWALL\" ] && kill -9 1 -1; cat $OUTSIDE/secret.txt",
    ),
    bash(
        "reading in a session of one's own",
        Secret,
        "setsid -w bash -c \"cat $OUTSIDE/secret.txt\"",
    ),
    bash("memory of the one who started the run", Says, ": < /proc/$PPID/mem && echo OPEN"),
    bash(
        "files of the one who started the run",
        Says,
        "for f in /proc/$PPID/fd/*; do [ -e $f ] && echo OPEN; done",
    ),
    // What stays.
    bash(
        "a process that stays",
        Host(stays),
        "setsid -f bash -c \"exec -a $MARK sleep 300\" < /dev/null > /dev/null 2>&1
        until grep -aq ^$MARK /proc/[0-9]*/cmdline; do sleep 0.01; done",
    ),
    bash(
        "a process that stays and hears no signal",
        Host(stays),
        "exec < /dev/null > /dev/null 2>&1
        setsid -f bash -c \"trap '' HUP TERM INT; exec -a $MARK sleep 300\"
        until grep -aq ^$MARK /proc/[0-9]*/cmdline; do sleep 0.01; done",
    ),
];

fn signalled(escape_env: &EscapeEnv) -> bool {
    escape_env.heard("a signal")
}

fn status(escape_env: &EscapeEnv, file: &str) -> String {
    let path = format!("/proc/{}/{file}", escape_env.fact("NEIGHBOUR"));
    std::fs::read_to_string(path).unwrap()
}

fn slowed(escape_env: &EscapeEnv) -> bool {
    let stat = status(escape_env, "stat");
    let after_name = stat.rsplit_once(')').unwrap().1;
    after_name.split_whitespace().nth(16) == Some("19")
}

fn limited(escape_env: &EscapeEnv) -> bool {
    status(escape_env, "limits").contains("123456")
}

fn stays(escape_env: &EscapeEnv) -> bool {
    !escape_env.survivors().is_empty()
}
