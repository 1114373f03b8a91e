//! The view of processes: what every `/proc` tells about the host is hidden.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::FileType;

use super::is_gone;
use super::store::Store;
use super::tree::{attach_to, find_below};

/// What the kernel says in every `/proc` about the host and its hardware, and what no program of a run
/// needs: the user's keys by name, the kernel command line, the disks, the devices on buses.
const HOST_IN_PROC: &[&str] =
    &["keys", "key-users", "cmdline", "partitions", "diskstats", "swaps", "modules", "bus", "scsi"];

/// Mounts something empty over it. The view itself must be mounted.
pub(super) fn hide_host(processes: BorrowedFd<'_>, store: &Store<'_>) -> io::Result<()> {
    for name in HOST_IN_PROC {
        let found = match find_below(processes, Path::new(name)) {
            Ok(found) => found,
            // A kernel without it.
            Err(error) if is_gone(&error) => continue,
            Err(error) => return Err(error),
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
        let nothing = if kind.is_dir() { store.closed(true) } else { store.text("") };
        attach_to(nothing?.as_fd(), found.as_fd())?;
    }
    Ok(())
}
