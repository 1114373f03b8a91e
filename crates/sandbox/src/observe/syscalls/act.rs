//! [`Act`]: what an intercepted call does to the paths it names, with its other arguments.

use libc::c_long;

use super::{low, numbers};

/// What a call does. Numbers are as the registers hold them; a `u64` is an address in the memory of the
/// process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Open, or create and open.
    Open {
        /// The flags.
        flags: u32,
        /// The mode of a new file.
        mode: u32,
    },
    /// Change the length.
    Truncate {
        /// The new length.
        length: i64,
    },
    /// Create a directory.
    MakeDirectory {
        /// Its mode.
        mode: u32,
    },
    /// Create a file, a fifo or a socket.
    MakeNode {
        /// Its type and mode.
        mode: u32,
    },
    /// Create a symbolic link.
    SymbolicLink {
        /// What it says.
        target: u64,
    },
    /// Give a file a second name.
    Link,
    /// Remove a name.
    Remove {
        /// Whether it is that of a directory.
        directory: bool,
    },
    /// Rename.
    Rename {
        /// The flags.
        flags: u32,
    },
    /// Change the permissions.
    ChangeMode {
        /// The new ones.
        mode: u32,
    },
    /// Change the owner.
    ChangeOwner {
        /// The user, or all ones.
        user: u32,
        /// The group, or all ones.
        group: u32,
    },
    /// Change the time stamps.
    ChangeTimes {
        /// Two time stamps, or null for the present time.
        times: u64,
        /// How they are stored.
        format: TimeFormat,
    },
    /// Set an extended attribute.
    SetAttribute {
        /// Its name.
        name: u64,
        /// Its value.
        value: u64,
        /// The length of the value.
        size: u64,
        /// The flags.
        flags: u32,
    },
    /// Remove an extended attribute.
    RemoveAttribute {
        /// Its name.
        name: u64,
    },
}

/// How a call stores two time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeFormat {
    /// Seconds and nanoseconds.
    Nanoseconds,
    /// Seconds and microseconds.
    Microseconds,
    /// Seconds.
    Seconds,
}

/// What a call does, by its number and arguments; `None` for one that changes no path.
pub fn act(nr: c_long, args: [u64; 6]) -> Option<Act> {
    let [a0, a1, a2, a3, a4, _] = args;
    Some(match nr {
        libc::SYS_openat => Act::Open { flags: low(a2), mode: low(a3) },
        libc::SYS_truncate => Act::Truncate { length: a1.cast_signed() },
        libc::SYS_mkdirat => Act::MakeDirectory { mode: low(a2) },
        libc::SYS_mknodat => Act::MakeNode { mode: low(a2) },
        libc::SYS_symlinkat => Act::SymbolicLink { target: a0 },
        libc::SYS_linkat => Act::Link,
        libc::SYS_unlinkat => {
            Act::Remove { directory: low(a2) & libc::AT_REMOVEDIR.cast_unsigned() != 0 }
        }
        libc::SYS_renameat => Act::Rename { flags: 0 },
        libc::SYS_renameat2 => Act::Rename { flags: low(a4) },
        libc::SYS_fchmodat | numbers::FCHMODAT2 => Act::ChangeMode { mode: low(a2) },
        libc::SYS_fchownat => Act::ChangeOwner { user: low(a2), group: low(a3) },
        libc::SYS_utimensat => Act::ChangeTimes { times: a2, format: TimeFormat::Nanoseconds },
        libc::SYS_setxattr | libc::SYS_lsetxattr => {
            Act::SetAttribute { name: a1, value: a2, size: a3, flags: low(a4) }
        }
        libc::SYS_removexattr | libc::SYS_lremovexattr => Act::RemoveAttribute { name: a1 },
        _ => return by_path(nr, args),
    })
}

/// The older calls, without a directory argument.
#[cfg(target_arch = "x86_64")]
fn by_path(nr: c_long, [a0, a1, a2, ..]: [u64; 6]) -> Option<Act> {
    const CREAT: i32 = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    Some(match nr {
        libc::SYS_open => Act::Open { flags: low(a1), mode: low(a2) },
        libc::SYS_creat => Act::Open { flags: CREAT.cast_unsigned(), mode: low(a1) },
        libc::SYS_mkdir => Act::MakeDirectory { mode: low(a1) },
        libc::SYS_mknod => Act::MakeNode { mode: low(a1) },
        libc::SYS_symlink => Act::SymbolicLink { target: a0 },
        libc::SYS_link => Act::Link,
        libc::SYS_unlink => Act::Remove { directory: false },
        libc::SYS_rmdir => Act::Remove { directory: true },
        libc::SYS_rename => Act::Rename { flags: 0 },
        libc::SYS_chmod => Act::ChangeMode { mode: low(a1) },
        libc::SYS_chown | libc::SYS_lchown => Act::ChangeOwner { user: low(a1), group: low(a2) },
        libc::SYS_utime => Act::ChangeTimes { times: a1, format: TimeFormat::Seconds },
        libc::SYS_utimes => Act::ChangeTimes { times: a1, format: TimeFormat::Microseconds },
        libc::SYS_futimesat => Act::ChangeTimes { times: a2, format: TimeFormat::Microseconds },
        _ => return None,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn by_path(_: c_long, _: [u64; 6]) -> Option<Act> {
    None
}
