//! Numbers of system calls that the libc crate does not name on every target.
//!
//! From 424 on a call has the same number on every architecture.

use libc::c_long;

#[cfg(target_arch = "x86_64")]
pub(crate) const KEXEC_FILE_LOAD: c_long = 320;
#[cfg(target_arch = "aarch64")]
pub(crate) const KEXEC_FILE_LOAD: c_long = 294;

pub(crate) const FCHMODAT2: c_long = 452;
pub(crate) const SETXATTRAT: c_long = 463;
pub(crate) const REMOVEXATTRAT: c_long = 466;
pub(crate) const OPEN_TREE_ATTR: c_long = 467;
pub(crate) const FILE_SETATTR: c_long = 469;
