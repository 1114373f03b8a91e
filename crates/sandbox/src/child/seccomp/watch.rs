//! Which calls are intercepted: they wait until the supervisor has seen them.
//!
//! What changes a path is performed by the supervisor, so that the kernel never reads the arguments a
//! second time. Calls on an open descriptor (`fchmod`, `ftruncate`, `fsetxattr`) are not intercepted: a
//! descriptor for writing was opened by an intercepted call; through one for reading, only a few
//! attributes can be changed. Calls that say behind a pointer whether they change something are closed
//! instead ([`super::closed`]).

use libc::c_long;

use super::tree::{Tree, Word};
use super::{ALLOW, Program, program};
use crate::observe::syscalls::numbers;

/// How much is intercepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Opens for writing, everything that changes a path, `connect` and `listen`.
    Changes,
    /// The same, and every other open through which a file can be read.
    Opens,
    /// The same, all opens, and every `execve`.
    Everything,
}

/// The program that hands calls to the supervisor.
pub fn watch(watch: Watch) -> Program {
    program(rules(watch))
}

pub(super) fn rules(watch: Watch) -> Vec<(c_long, Tree)> {
    let open = |flags: u32| match watch {
        Watch::Changes => Word::low(flags).any(writing()).choose(NOTIFY, ALLOW),
        // A descriptor of a directory, or one for `O_PATH`, cannot be read from.
        Watch::Opens => {
            let reading = Word::low(flags).any(not_reading()).choose(ALLOW, NOTIFY);
            Word::low(flags).any(writing()).choose(NOTIFY, reading)
        }
        Watch::Everything => NOTIFY,
    };
    let mut rules = Vec::from([
        (libc::SYS_openat, open(2)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, open(1)),
        (libc::SYS_utimensat, with_path(1)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_futimesat, with_path(1)),
    ]);
    rules.extend(CHANGES.iter().chain(OLD_CHANGES).map(|call| (*call, NOTIFY)));
    if watch == Watch::Everything {
        rules.extend([libc::SYS_execve, libc::SYS_execveat].map(|call| (call, NOTIFY)));
    }
    rules
}

const NOTIFY: Tree = Tree::Answer(libc::SECCOMP_RET_USER_NOTIF);

/// Flags with which an open can change something.
fn writing() -> u32 {
    // Not O_ACCMODE, which has a further bit in musl.
    let access = libc::O_WRONLY | libc::O_RDWR;
    let tmpfile = libc::O_TMPFILE & !libc::O_DIRECTORY;
    (access | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND | tmpfile).cast_unsigned()
}

/// Flags with which an open gives no access to the content of a file.
fn not_reading() -> u32 {
    (libc::O_PATH | libc::O_DIRECTORY).cast_unsigned()
}

/// Without a path these calls are about the descriptor.
fn with_path(argument: u32) -> Tree {
    let high = Word::high(argument).is(0).choose(ALLOW, NOTIFY);
    Word::low(argument).is(0).choose(high, NOTIFY)
}

#[rustfmt::skip]
const CHANGES: &[c_long] = &[
    libc::SYS_truncate,
    libc::SYS_mkdirat, libc::SYS_mknodat, libc::SYS_symlinkat, libc::SYS_linkat,
    libc::SYS_unlinkat, libc::SYS_renameat, libc::SYS_renameat2,
    libc::SYS_fchmodat, numbers::FCHMODAT2, libc::SYS_fchownat,
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_removexattr, libc::SYS_lremovexattr,
    libc::SYS_bind, libc::SYS_connect, libc::SYS_listen,
];

/// What these were called before they took a directory. Newer architectures never had them.
#[rustfmt::skip]
#[cfg(target_arch = "x86_64")]
const OLD_CHANGES: &[c_long] = &[
    libc::SYS_creat, libc::SYS_mkdir, libc::SYS_mknod, libc::SYS_symlink, libc::SYS_link,
    libc::SYS_unlink, libc::SYS_rmdir, libc::SYS_rename, libc::SYS_chmod, libc::SYS_chown,
    libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CHANGES: &[c_long] = &[];
