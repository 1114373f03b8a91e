//! The numbers and offsets that `linux/fuse.h` fixes, as far as a tripwire needs them.

/// What the kernel asks for.
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const SETXATTR: u32 = 21;
    pub(crate) const REMOVEXATTR: u32 = 24;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const NOTIFY_REPLY: u32 = 41;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const READDIRPLUS: u32 = 44;
    pub(crate) const RENAME2: u32 = 45;
    pub(crate) const TMPFILE: u32 = 51;
}

/// The offsets of the fields in the arguments of a request, and the lengths of those arguments.
pub(crate) mod field {
    pub(crate) const INIT_MAJOR: usize = 0;
    pub(crate) const INIT_MINOR: usize = 4;
    pub(crate) const INIT_MAX_READAHEAD: usize = 8;
    pub(crate) const INIT_FLAGS: usize = 12;

    pub(crate) const FORGET_LOOKUPS: usize = 0;
    pub(crate) const BATCH_FORGET_COUNT: usize = 0;
    pub(crate) const BATCH_FORGET_LENGTH: usize = 8;
    pub(crate) const FORGET_ONE_NODE: usize = 0;
    pub(crate) const FORGET_ONE_LOOKUPS: usize = 8;
    pub(crate) const FORGET_ONE_LENGTH: usize = 16;

    pub(crate) const READ_OFFSET: usize = 8;
    pub(crate) const READ_SIZE: usize = 16;
    pub(crate) const OPEN_FLAGS: usize = 0;
    pub(crate) const SETATTR_VALID: usize = 0;

    pub(crate) const CREATE_LENGTH: usize = 16;
    pub(crate) const MKNOD_MODE: usize = 0;
    pub(crate) const MKNOD_LENGTH: usize = 16;
    pub(crate) const MKDIR_LENGTH: usize = 8;
    pub(crate) const LINK_OLD_NODE: usize = 0;
    pub(crate) const LINK_LENGTH: usize = 8;
    pub(crate) const RENAME_NEW_PARENT: usize = 0;
    pub(crate) const RENAME_LENGTH: usize = 8;
    pub(crate) const RENAME2_LENGTH: usize = 16;
}

/// Which attributes a SETATTR wants to change.
pub(crate) mod valid {
    pub(crate) const MODE: u32 = 1 << 0;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
}

/// What can be agreed on at the start.
pub(crate) mod feature {
    pub(crate) const ATOMIC_O_TRUNC: u32 = 1 << 3;
    pub(crate) const DO_READDIRPLUS: u32 = 1 << 13;
    pub(crate) const PARALLEL_DIROPS: u32 = 1 << 18;
    pub(crate) const CACHE_SYMLINKS: u32 = 1 << 23;
}

/// The node that the kernel knows without asking.
pub(crate) const ROOT: u64 = 1;

/// What a listing puts for a node that has no number yet.
pub(crate) const UNKNOWN_INODE: u64 = 0xffff_ffff;
