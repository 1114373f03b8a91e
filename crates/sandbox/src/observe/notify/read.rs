//! What a waiting call names, read from the memory and the descriptors of its process.

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, OwnedFd};
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

/// Whether a process's socket is for a stream. A datagram socket that is "connected" sends nothing
/// yet; programs do that to learn their own address.
pub(super) fn is_stream(pid: u32, socket: i32) -> bool {
    let stolen = || -> Option<OwnedFd> {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed())?;
        let process =
            rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
        let flags = rustix::process::PidfdGetfdFlags::empty();
        rustix::process::pidfd_getfd(process, socket, flags).ok()
    };
    let kind = stolen().map(|socket| rustix::net::sockopt::socket_type(&socket));
    !matches!(kind, Some(Ok(kind)) if kind != rustix::net::SocketType::STREAM)
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
