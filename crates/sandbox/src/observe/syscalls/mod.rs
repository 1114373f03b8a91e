//! What an intercepted call means: which operation, on which paths.
//!
//! Only numbers and arguments are looked at. What a pointer points to is read by the caller, and
//! passed to [`address`]. [`describe`] knows exactly the calls that
//! [`crate::child::seccomp::watch`] hands over.

mod act;
mod address;
pub(crate) mod numbers;

#[cfg(test)]
mod tests;

pub use act::{Act, TimeFormat, act};
pub use address::{Address, address};

use libc::{AT_FDCWD, c_int, c_long};

use crate::Operation;

/// An intercepted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Described {
    /// An operation on one path, or on two.
    Path(Call),
    /// The start of a program.
    Execute {
        /// The program.
        path: PathArgument,
        /// The list of its arguments.
        arguments: u64,
    },
    /// `bind`, which leaves a socket at the path of its [`address`].
    Bind {
        /// The descriptor.
        socket: i32,
        /// The address.
        address: u64,
        /// Its length.
        length: u32,
    },
    /// `listen`, which makes a server of a socket.
    Listen {
        /// The descriptor.
        socket: i32,
    },
    /// `connect`, to an [`address`].
    Connect {
        /// The descriptor.
        socket: i32,
        /// The address.
        address: u64,
        /// Its length.
        length: u32,
    },
}

/// An operation and the paths it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// What is done, to each path.
    pub operation: Operation,
    /// The path; of a rename or a link the old one.
    pub path: PathArgument,
    /// The new path of a rename or a link.
    pub second: Option<PathArgument>,
    /// The flags of an open, or of a rename.
    pub flags: u32,
}

impl Call {
    /// The paths in the order of the call.
    pub fn paths(&self) -> impl Iterator<Item = PathArgument> {
        std::iter::once(self.path).chain(self.second)
    }
}

/// A path as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathArgument {
    /// Where a relative path starts: a descriptor, or `AT_FDCWD`.
    pub directory: i32,
    /// The address of the path in the memory of the process.
    pub pointer: u64,
    /// Whether a link at its end is followed.
    pub follow: bool,
    /// Whether an empty path, or none at all, means `directory` itself.
    pub empty_means_directory: bool,
}

/// What a call means, by its number and arguments; `None` for a call that is not intercepted.
pub fn describe(nr: c_long, args: [u64; 6]) -> Option<Described> {
    let [a0, a1, a2, _, a4, _] = args;
    Some(match nr {
        libc::SYS_bind => Described::Bind { socket: int(a0), address: a1, length: low(a2) },
        libc::SYS_listen => Described::Listen { socket: int(a0) },
        libc::SYS_connect => Described::Connect { socket: int(a0), address: a1, length: low(a2) },
        libc::SYS_execve => Described::Execute { path: PathArgument::here(a0), arguments: a1 },
        libc::SYS_execveat => {
            Described::Execute { path: PathArgument::at(a0, a1).flagged(a4), arguments: a2 }
        }
        _ => Described::Path(by_directory(nr, args).or_else(|| by_path(nr, args))?),
    })
}

/// Whether an intercepted call can change something.
pub fn may_change(data: &libc::seccomp_data) -> bool {
    match describe(c_long::from(data.nr), data.args) {
        Some(Described::Path(call)) => call.operation.writes(),
        Some(Described::Connect { .. } | Described::Execute { .. } | Described::Listen { .. }) => {
            false
        }
        Some(Described::Bind { .. }) | None => true,
    }
}

/// The calls that name a directory, and those of the others that every architecture has.
fn by_directory(nr: c_long, [a0, a1, a2, a3, a4, _]: [u64; 6]) -> Option<Call> {
    use Operation as O;
    let at = PathArgument::at;
    Some(match nr {
        libc::SYS_openat => open(at(a0, a1), low(a2)),
        libc::SYS_mkdirat => Call::one(O::MakeDirectory, at(a0, a1).unfollowed()),
        libc::SYS_mknodat => Call::one(node(a2), at(a0, a1).unfollowed()),
        libc::SYS_symlinkat => Call::one(O::SymbolicLink, at(a1, a2).unfollowed()),
        libc::SYS_linkat => {
            let old = at(a0, a1).flagged(a4);
            let follow = int(a4) & libc::AT_SYMLINK_FOLLOW != 0;
            Call::two(O::Link, PathArgument { follow, ..old }, at(a2, a3))
        }
        libc::SYS_unlinkat => Call::one(O::Remove, at(a0, a1).unfollowed()),
        libc::SYS_renameat => Call::two(O::Rename, at(a0, a1).unfollowed(), at(a2, a3)),
        libc::SYS_renameat2 => {
            let call = Call::two(O::Rename, at(a0, a1).unfollowed(), at(a2, a3));
            Call { flags: low(a4), ..call }
        }
        libc::SYS_truncate => Call::one(O::Truncate, PathArgument::here(a0)),
        libc::SYS_fchmodat => Call::one(O::ChangeMode, at(a0, a1)),
        numbers::FCHMODAT2 => Call::one(O::ChangeMode, at(a0, a1).flagged(a3)),
        libc::SYS_fchownat => Call::one(O::ChangeOwner, at(a0, a1).flagged(a4)),
        // Without a path it is about the descriptor, and not intercepted.
        libc::SYS_utimensat if a1 != 0 => Call::one(O::ChangeTimes, at(a0, a1).flagged(a3)),
        libc::SYS_setxattr | libc::SYS_removexattr => {
            Call::one(O::ChangeAttributes, PathArgument::here(a0))
        }
        libc::SYS_lsetxattr | libc::SYS_lremovexattr => {
            Call::one(O::ChangeAttributes, PathArgument::here(a0).unfollowed())
        }
        _ => return None,
    })
}

/// The older calls, without a directory argument.
#[cfg(target_arch = "x86_64")]
fn by_path(nr: c_long, [a0, a1, ..]: [u64; 6]) -> Option<Call> {
    use Operation as O;
    let here = PathArgument::here;
    Some(match nr {
        libc::SYS_open => open(here(a0), low(a1)),
        libc::SYS_creat => {
            open(here(a0), (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC).cast_unsigned())
        }
        libc::SYS_mkdir => Call::one(O::MakeDirectory, here(a0).unfollowed()),
        libc::SYS_mknod => Call::one(node(a1), here(a0).unfollowed()),
        libc::SYS_symlink => Call::one(O::SymbolicLink, here(a1).unfollowed()),
        libc::SYS_link => Call::two(O::Link, here(a0).unfollowed(), here(a1)),
        libc::SYS_unlink | libc::SYS_rmdir => Call::one(O::Remove, here(a0).unfollowed()),
        libc::SYS_rename => Call::two(O::Rename, here(a0).unfollowed(), here(a1)),
        libc::SYS_chmod => Call::one(O::ChangeMode, here(a0)),
        libc::SYS_chown => Call::one(O::ChangeOwner, here(a0)),
        libc::SYS_lchown => Call::one(O::ChangeOwner, here(a0).unfollowed()),
        libc::SYS_utime | libc::SYS_utimes => Call::one(O::ChangeTimes, here(a0)),
        libc::SYS_futimesat if a1 != 0 => Call::one(O::ChangeTimes, PathArgument::at(a0, a1)),
        _ => return None,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn by_path(_: c_long, _: [u64; 6]) -> Option<Call> {
    None
}

/// An open with these flags.
fn open(path: PathArgument, flags: u32) -> Call {
    let has = |flag: c_int| flags & flag.cast_unsigned() != 0;
    // O_PATH disables every flag that would create or change something.
    let operation = if has(libc::O_PATH) {
        Operation::Look
    } else if has(libc::O_CREAT) || has(libc::O_TMPFILE & !libc::O_DIRECTORY) {
        Operation::Create
    } else if has(libc::O_WRONLY | libc::O_RDWR | libc::O_TRUNC) {
        Operation::Write
    } else if has(libc::O_DIRECTORY) {
        Operation::List
    } else {
        Operation::Read
    };
    let exclusive = !has(libc::O_PATH) && has(libc::O_CREAT) && has(libc::O_EXCL);
    let follow = path.follow && !has(libc::O_NOFOLLOW) && !exclusive;
    Call { flags, ..Call::one(operation, PathArgument { follow, ..path }) }
}

/// What `mknod` creates: without a type, a regular file.
fn node(mode: u64) -> Operation {
    match low(mode) & libc::S_IFMT {
        0 | libc::S_IFREG => Operation::Create,
        _ => Operation::MakeNode,
    }
}

impl Call {
    fn one(operation: Operation, path: PathArgument) -> Self {
        Self { operation, path, second: None, flags: 0 }
    }

    /// The new path is always taken as it is: a link there is what gets replaced.
    fn two(operation: Operation, path: PathArgument, second: PathArgument) -> Self {
        Self { operation, path, second: Some(second.unfollowed()), flags: 0 }
    }
}

impl PathArgument {
    fn at(directory: u64, pointer: u64) -> Self {
        Self { directory: int(directory), ..Self::here(pointer) }
    }

    fn here(pointer: u64) -> Self {
        Self { directory: AT_FDCWD, pointer, follow: true, empty_means_directory: false }
    }

    fn unfollowed(self) -> Self {
        Self { follow: false, ..self }
    }

    /// With the flags that calls on a directory take.
    fn flagged(self, flags: u64) -> Self {
        let has = |flag| int(flags) & flag != 0;
        Self {
            follow: self.follow && !has(libc::AT_SYMLINK_NOFOLLOW),
            empty_means_directory: has(libc::AT_EMPTY_PATH),
            ..self
        }
    }
}

/// The half of a register that the kernel looks at where it takes an `int`.
fn low(register: u64) -> u32 {
    let [a, b, c, d, ..] = register.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

fn int(register: u64) -> i32 {
    low(register).cast_signed()
}
