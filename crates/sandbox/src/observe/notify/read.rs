//! What a waiting call names, read from the memory and the descriptors of its process.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::observe::syscalls::{self, Address, PathArgument};
use crate::sys::{self, Notification};

/// The longest path that the kernel takes.
const PATH_MAX: usize = 4096;

/// The address that a waiting call names.
pub(super) fn read_address(
    listener: BorrowedFd<'_>,
    notification: &Notification,
    address: u64,
    length: u32,
) -> Option<Address> {
    let mut bytes = [0; 128];
    let length = bytes.len().min(length as usize);
    let part = bytes.get_mut(..length)?;
    sys::read_memory(notification.pid, address, part).ok()?;
    sys::notification_is_valid(listener, notification.id).then(|| syscalls::address(part))
}

/// A descriptor of a process of the run. If the process closes its own meanwhile, this is the last one,
/// and closing it could take as long as the process has asked for (`SO_LINGER`).
#[derive(Debug)]
pub(super) struct Taken(Option<OwnedFd>);

impl AsFd for Taken {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // It is there until it is dropped. No descriptor has this number.
        self.0.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        sys::briefly(|| drop(self.0.take()));
    }
}

/// A descriptor of a thread, as one of this process.
pub(super) fn take(thread: u32, descriptor: i32) -> rustix::io::Result<Taken> {
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};
    // PIDFD_THREAD, which rustix does not name.
    let of_thread = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
    let open = |id: u32, flags| {
        let id = Pid::from_raw(id.cast_signed()).ok_or(rustix::io::Errno::SRCH)?;
        rustix::process::pidfd_open(id, flags)
    };
    // Before Linux 6.9 only the first thread has one. The others have its descriptors, as a rule; and
    // whatever is taken here is what is acted on.
    let process = open(thread, of_thread).or_else(|_| {
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let group = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
        open(group.unwrap_or(thread), PidfdFlags::empty())
    })?;
    let taken = rustix::process::pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty())?;
    Ok(Taken(Some(taken)))
}

/// The path that an argument names, made absolute, links not yet followed.
pub(super) fn named(pid: u32, argument: PathArgument) -> Option<PathBuf> {
    let path = match argument.pointer {
        0 if argument.empty_means_directory => PathBuf::new(),
        pointer => read_path(pid, pointer)?,
    };
    if path.as_os_str().is_empty() {
        return argument
            .empty_means_directory
            .then(|| directory(pid, argument.directory))
            .flatten();
    }
    if argument.rooted {
        let root = directory(pid, argument.directory)?;
        let below = path.strip_prefix("/").unwrap_or(&path).to_path_buf();
        return Some(root.join(below));
    }
    absolute(pid, argument.directory, &path)
}

pub(super) fn absolute(pid: u32, from: i32, path: &Path) -> Option<PathBuf> {
    if path.is_absolute() {
        return Some(path.to_path_buf());
    }
    Some(directory(pid, from)?.join(path))
}

/// The path of a process's descriptor, or of its working directory.
fn directory(pid: u32, descriptor: i32) -> Option<PathBuf> {
    let path = std::fs::read_link(link(pid, descriptor)).ok()?;
    path.is_absolute().then_some(path)
}

fn link(pid: u32, descriptor: i32) -> String {
    match descriptor {
        libc::AT_FDCWD => format!("/proc/{pid}/cwd"),
        descriptor => format!("/proc/{pid}/fd/{descriptor}"),
    }
}

/// Whether only the kernel can know what an argument names: the memory of the process cannot be
/// read, or the path is too long.
pub(super) fn is_beyond_us(pid: u32, argument: PathArgument) -> bool {
    let failed = |error: std::io::Error, with: i32| error.raw_os_error() == Some(with);
    let memory = sys::read_memory(pid, argument.pointer, &mut [0]);
    let closed = argument.pointer != 0 && memory.is_err_and(|error| failed(error, libc::EPERM));
    let place = std::fs::read_link(link(pid, argument.directory));
    let deep = place.is_err_and(|error| failed(error, libc::ENAMETOOLONG));
    let long = |path: PathBuf| path.as_os_str().len() >= PATH_MAX;
    closed || deep || named(pid, argument).is_some_and(long)
}

/// A string in the memory of a process.
pub(crate) fn read_path(pid: u32, pointer: u64) -> Option<PathBuf> {
    const PAGE: u64 = 4096;
    let mut path = Vec::new();
    let mut at = pointer;
    while path.len() < PATH_MAX {
        // A page at a time: the next one may not be mapped.
        let length = usize::try_from(PAGE - at % PAGE).ok()?;
        let mut part = vec![0; length];
        let read = sys::read_memory(pid, at, &mut part).ok()?;
        let part = part.get(..read)?;
        match part.iter().position(|byte| *byte == 0) {
            Some(end) => {
                path.extend_from_slice(part.get(..end)?);
                return Some(PathBuf::from(OsString::from_vec(path)));
            }
            None => path.extend_from_slice(part),
        }
        at += PAGE - at % PAGE;
    }
    None
}
