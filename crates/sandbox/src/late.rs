//! Files that were granted before they existed: made on the host, then put into the running tree.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use model::AbsPath;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::thread::ThreadNameSpaceType as Spaces;

use crate::Operation;
use crate::mounts::{attach_to, clone_tree_of};
use crate::sys::{self, MOUNT_RDONLY, Reply};

/// Makes a granted file or directory and lets the run write it. The call then goes on, or has been
/// done.
pub(crate) fn make(path: &AbsPath, operation: Operation, child: BorrowedFd<'_>) -> Reply {
    let made = match operation {
        Operation::MakeDirectory => std::fs::create_dir(path.as_path()),
        _ => OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(path.as_path())
            .map(drop),
    };
    let mounted = made.and_then(|()| in_namespaces(child, || open_up(path)));
    match (mounted, operation) {
        (Err(error), _) => Reply::Errno(error.raw_os_error().unwrap_or(libc::EACCES)),
        (Ok(()), Operation::MakeDirectory) => Reply::Done,
        (Ok(()), _) => Reply::Continue,
    }
}

/// Binds a path on itself, writable.
fn open_up(path: &AbsPath) -> io::Result<()> {
    let place = rustix::fs::openat2(
        rustix::fs::CWD,
        path.as_path(),
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?;
    let tree = clone_tree_of(place.as_fd())?;
    sys::set_mount(tree.as_fd(), 0, MOUNT_RDONLY)?;
    attach_to(tree.as_fd(), place.as_fd())
}

/// Does something in the run's user and mount namespaces, in a process of its own: who enters a
/// user namespace cannot come back.
pub(crate) fn in_namespaces(
    child: BorrowedFd<'_>,
    act: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    match sys::wait_for(start_in_namespaces(child, act)?)? {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// The same without waiting for its end.
pub(crate) fn start_in_namespaces(
    child: BorrowedFd<'_>,
    act: impl FnOnce() -> io::Result<()>,
) -> io::Result<i32> {
    let supervisor = rustix::process::getpid();
    if let Some(helper) = sys::fork()? {
        return Ok(helper);
    }
    let spaces = Spaces::USER | Spaces::MOUNT;
    let entered = rustix::thread::move_into_thread_name_spaces(child, spaces);
    // It may wait for an answer of the supervisor, and must not do so for ever. Entering a user
    // namespace clears the bond, so it is made here.
    let bound = entered.map_err(io::Error::from).and_then(|()| sys::die_with_parent());
    if rustix::process::getppid() != Some(supervisor) {
        sys::exit_now(libc::EIO);
    }
    let done = bound.and_then(|()| act());
    // An error without a number must not look like success.
    let code = done.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
    sys::exit_now(code)
}
