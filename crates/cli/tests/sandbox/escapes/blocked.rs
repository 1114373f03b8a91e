//! What this machine, or another, blocks by itself. Without any wall these ways do not work; behind
//! the wall they are tried all the same.

use super::env::EscapeEnv;
use super::row::Row;
use Whom::{Everybody, Ordinary, Where};

/// Whether the host alone is expected to block a row.
pub(super) fn by_host(escape_env: &EscapeEnv, row: &Row) -> bool {
    BLOCKED_BY_HOST.iter().any(|(whom, name, _)| *name == row.name && whom.is(escape_env))
}

/// The rows that are named here.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BLOCKED_BY_HOST.iter().map(|(_, name, _)| *name)
}

/// Whom a host keeps from something by itself.
#[derive(Clone, Copy)]
enum Whom {
    Ordinary,
    Everybody,
    /// Everybody, on some machines.
    Where(fn() -> bool),
}

impl Whom {
    fn is(self, escape_env: &EscapeEnv) -> bool {
        match self {
            Ordinary => !escape_env.is_root,
            Everybody => true,
            Where(so) => so(),
        }
    }
}

const OF_ROOT: &str = "the file is root's";
const SWITCHED_OFF: &str = "the machine has it not, or has it switched off";
const NEEDS_RIGHTS: &str = "the call needs a right";

/// Blocked by the host: for whom, what, and why.
const BLOCKED_BY_HOST: &[(Whom, &str, &str)] = &[
    // Files that only root reads or writes.
    (Ordinary, "read the system's passwords", OF_ROOT),
    (Ordinary, "read the kernel's log", OF_ROOT),
    (Ordinary, "read the console", OF_ROOT),
    (Ordinary, "write among the system's programs", OF_ROOT),
    (Ordinary, "write among the system's settings", OF_ROOT),
    (Ordinary, "a job of the system", OF_ROOT),
    (Ordinary, "a library that everything loads", OF_ROOT),
    (Ordinary, "a selection on the console", OF_ROOT),
    (Ordinary, "settings of the kernel", OF_ROOT),
    (Ordinary, "keys for the kernel", OF_ROOT),
    (Ordinary, "control groups", OF_ROOT),
    (Ordinary, "settings of devices", OF_ROOT),
    // Calls that need a right.
    (Ordinary, "read by the number of a file", NEEDS_RIGHTS),
    (Ordinary, "read among another process's mounts", NEEDS_RIGHTS),
    (Ordinary, "write by the number of a file", NEEDS_RIGHTS),
    (Ordinary, "change the owner of a file", NEEDS_RIGHTS),
    (Ordinary, "a raw packet", NEEDS_RIGHTS),
    (Ordinary, "packets of others", NEEDS_RIGHTS),
    (Ordinary, "a mount as it stands", NEEDS_RIGHTS),
    (Ordinary, "a file system in parts", NEEDS_RIGHTS),
    (Ordinary, "a detached tree", NEEDS_RIGHTS),
    (Ordinary, "another root", NEEDS_RIGHTS),
    (Ordinary, "another namespace", NEEDS_RIGHTS),
    (Ordinary, "programs in the kernel", NEEDS_RIGHTS),
    (Ordinary, "the machine's name", NEEDS_RIGHTS),
    (Ordinary, "the machine's clock", NEEDS_RIGHTS),
    (Ordinary, "accounts of all processes", NEEDS_RIGHTS),
    (Ordinary, "a file with capabilities", NEEDS_RIGHTS),
    (Ordinary, "a device", NEEDS_RIGHTS),
    (Ordinary, "read where the kernel is", NEEDS_RIGHTS),
    (Ordinary, "read where memory really is", NEEDS_RIGHTS),
    (Ordinary, "a place before everybody", NEEDS_RIGHTS),
    // Only somebody else can be risen to, and only root can put such a program there.
    (Everybody, "a program that runs as its owner", "the owner is who runs it"),
    // What this machine does not have, or keeps from root too.
    (Everybody, "read a disk", "the machine keeps its disks to itself"),
    (Everybody, "read a disk by a device of one's own", "the machine keeps its disks to itself"),
    (Everybody, "read memory of the kernel", "there is no such device"),
    (Everybody, "modules of the kernel", "the kernel takes none"),
    (Everybody, "another kernel", "the kernel takes none"),
    (Everybody, "ports of the machine", "the kernel gives none"),
    (Everybody, "limits beyond the highest", "root has not this right here"),
    // What other machines do not have.
    (Where(no_typing), "typing on the terminal", SWITCHED_OFF),
    (Where(no_typing), "typing on the terminal by its other name", SWITCHED_OFF),
    (Where(no_typing), "typing with more bits than the kernel looks at", SWITCHED_OFF),
    (Where(no_queues), "read by a queue of calls", SWITCHED_OFF),
    (Where(no_queues), "write by a queue of calls", SWITCHED_OFF),
    (Where(no_queues), "servers to start, by a queue of calls", SWITCHED_OFF),
    (Where(no_queues), "a stream by a queue of calls", SWITCHED_OFF),
    (Where(no_queues), "a socket by a queue of calls", SWITCHED_OFF),
    (Where(no_queues), "a queue of calls", SWITCHED_OFF),
    (Where(no_32_bits), "read by a call of 32 bits", SWITCHED_OFF),
    (Where(no_32_bits), "write by a call of 32 bits", SWITCHED_OFF),
    (Where(no_32_bits), "servers to start, by a call of 32 bits", SWITCHED_OFF),
    (Everybody, "many descriptors", "root has not the right to raise the limit here"),
];

fn says(setting: &str, value: &str) -> bool {
    let path = std::path::Path::new("/proc/sys").join(setting);
    std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
}

fn no_typing() -> bool {
    says("dev/tty/legacy_tiocsti", "0")
}

fn no_queues() -> bool {
    !says("kernel/io_uring_disabled", "0")
}

fn no_32_bits() -> bool {
    cfg!(not(target_arch = "x86_64"))
}
