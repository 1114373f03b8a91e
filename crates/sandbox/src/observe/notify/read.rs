//! What a waiting call names, read from the memory and the descriptors of its process.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Timespec, Timestamps};

use crate::observe::program::innermost;
use crate::observe::syscalls::{self, Act, Address, TimeFormat};
use crate::supervisor::perform::Arguments;
use crate::sys::{self, Notification};

/// The longest path that the kernel takes.
const PATH_MAX: usize = 4096;

/// The address that a waiting call names.
pub(super) fn read_address(
    listener: BorrowedFd<'_>,
    notification: &Notification,
    address: u64,
    length: u32,
) -> Option<(Address, Vec<u8>)> {
    let mut bytes = [0; 128];
    let length = bytes.len().min(length as usize);
    let part = bytes.get_mut(..length)?;
    sys::read_memory(notification.pid, address, part).ok()?;
    sys::notification_is_valid(listener, notification.id)
        .then(|| (syscalls::address(part), part.to_vec()))
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

/// The process behind a waiting call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Its thread, as the supervisor numbers it.
    pub(crate) pid: u32,
    status: OnceCell<String>,
}

impl Caller {
    pub(crate) fn new(pid: u32) -> Self {
        Self { pid, status: OnceCell::new() }
    }

    fn status(&self) -> &str {
        let read = || std::fs::read_to_string(format!("/proc/{}/status", self.pid));
        self.status.get_or_init(|| read().unwrap_or_default())
    }

    /// Its process ID in the run.
    pub(super) fn number_inside(&self) -> Option<u32> {
        innermost(self.status(), "NStgid:")
    }

    /// Its process ID.
    pub(crate) fn process(&self) -> Option<u32> {
        self.line("Tgid:")?.parse().ok()
    }

    /// The permissions that it takes from what it creates.
    pub(crate) fn umask(&self) -> Option<u32> {
        u32::from_str_radix(self.line("Umask:")?, 8).ok()
    }

    fn line(&self, name: &str) -> Option<&str> {
        self.status().lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
    }

    /// The access mode of one of its descriptors.
    pub(super) fn access(&self, descriptor: i32) -> u32 {
        let read = std::fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.pid));
        let text = read.unwrap_or_default();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        match flags {
            // One that only names something gives no access to it.
            Some(flags) if flags & libc::O_PATH.cast_unsigned() == 0 => {
                flags & libc::O_ACCMODE.cast_unsigned() & 3
            }
            _ => 3,
        }
    }

    /// One of its descriptors.
    pub(crate) fn take(&self, descriptor: i32) -> Option<OwnedFd> {
        let pid = rustix::process::Pid::from_raw(self.process()?.cast_signed())?;
        let flags = rustix::process::PidfdFlags::empty();
        let process = rustix::process::pidfd_open(pid, flags).ok()?;
        let flags = rustix::process::PidfdGetfdFlags::empty();
        rustix::process::pidfd_getfd(process, descriptor, flags).ok()
    }
}

/// A path, made absolute, links not yet followed. An error is that of the call.
pub(super) fn absolute(pid: u32, from: i32, path: &Path) -> Result<PathBuf, i32> {
    if path.is_absolute() {
        return Ok(path.to_path_buf());
    }
    let directory = std::fs::read_link(link(pid, from))
        .map_err(|error| no_descriptor(error.raw_os_error().unwrap_or(libc::EACCES)))?;
    if directory.is_absolute() { Ok(directory.join(path)) } else { Err(libc::ENOTDIR) }
}

/// The error of a call whose descriptor cannot be looked up by the supervisor.
pub(super) fn no_descriptor(error: i32) -> i32 {
    match error {
        libc::ENOENT => libc::EBADF,
        // It is open, but where it is cannot be determined.
        _ => libc::EACCES,
    }
}

/// The name of a process's descriptor, or of its working directory.
pub(super) fn link(pid: u32, descriptor: i32) -> String {
    match descriptor {
        libc::AT_FDCWD => format!("/proc/{pid}/cwd"),
        descriptor => format!("/proc/{pid}/fd/{descriptor}"),
    }
}

/// A path in the memory of a process.
pub(crate) fn path(pid: u32, pointer: u64) -> Result<PathBuf, i32> {
    let bytes = string(pid, pointer, PATH_MAX)?.ok_or(libc::ENAMETOOLONG)?;
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

/// A string in the memory of a process; `None` if it does not end within so many bytes.
pub(super) fn string(pid: u32, pointer: u64, most: usize) -> Result<Option<Vec<u8>>, i32> {
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    let mut part = [0; 4096];
    let mut at = pointer;
    while text.len() < most {
        // Never across a page: the next one may not be mapped. Most paths are short.
        let length = usize::try_from(PAGE - at % PAGE).unwrap_or(part.len());
        let length = if text.is_empty() { length.min(256) } else { length };
        let part = part.get_mut(..length).ok_or(libc::EFAULT)?;
        let read = bytes(pid, at, part)?;
        let part = part.get(..read).unwrap_or_default();
        match part.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(part.get(..end).unwrap_or_default());
                return Ok((text.len() < most).then_some(text));
            }
            None => text.extend_from_slice(part),
        }
        at = at.checked_add(read as u64).ok_or(libc::EFAULT)?;
    }
    Ok(None)
}

/// Bytes in the memory of a process.
pub(super) fn bytes(pid: u32, pointer: u64, into: &mut [u8]) -> Result<usize, i32> {
    match sys::read_memory(pid, pointer, into) {
        Ok(0) => Err(libc::EFAULT),
        Ok(read) => Ok(read),
        // Its memory is closed to the supervisor, so what it asks for cannot be known.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(libc::EACCES),
        Err(_) => Err(libc::EFAULT),
    }
}

/// What the pointers of a call point to, besides its paths.
pub(super) fn arguments(pid: u32, act: Act) -> Result<Arguments, i32> {
    /// The longest name of an attribute, with its end, and the largest value.
    const NAME: usize = 256;
    const VALUE: u64 = 1 << 16;
    let mut arguments = Arguments::default();
    match act {
        Act::SymbolicLink { target } => {
            let text = string(pid, target, PATH_MAX)?.ok_or(libc::ENAMETOOLONG)?;
            if text.is_empty() {
                return Err(libc::ENOENT);
            }
            arguments.text = text;
        }
        Act::SetAttribute { name, value, size, .. } => {
            arguments.text = string(pid, name, NAME)?.ok_or(libc::ERANGE)?;
            if size > VALUE {
                return Err(libc::E2BIG);
            }
            arguments.value = vec![0; usize::try_from(size).unwrap_or_default()];
            let mut done = 0;
            while let Some(rest) = arguments.value.get_mut(done..).filter(|rest| !rest.is_empty()) {
                done += bytes(pid, value.wrapping_add(done as u64), rest)?;
            }
        }
        Act::RemoveAttribute { name } => {
            arguments.text = string(pid, name, NAME)?.ok_or(libc::ERANGE)?;
        }
        Act::ChangeTimes { times, format } => {
            arguments.times = Some(read_times(pid, times, format)?);
        }
        _ => {}
    }
    Ok(arguments)
}

/// Two time stamps, the present time if there are none.
fn read_times(pid: u32, pointer: u64, format: TimeFormat) -> Result<Timestamps, i32> {
    let now = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
    if pointer == 0 {
        return Ok(Timestamps { last_access: now, last_modification: now });
    }
    let mut raw = [0; 32];
    let length = if format == TimeFormat::Seconds { 16 } else { raw.len() };
    let part = raw.get_mut(..length).ok_or(libc::EFAULT)?;
    if bytes(pid, pointer, part)? < length {
        return Err(libc::EFAULT);
    }
    let (words, _) = raw.as_chunks::<8>();
    let [a, b, c, d] =
        [0, 1, 2, 3].map(|at| words.get(at).map_or(0, |word| i64::from_ne_bytes(*word)));
    let micro = |seconds, micro: i64| match micro {
        0..1_000_000 => Ok(Timespec { tv_sec: seconds, tv_nsec: micro * 1000 }),
        _ => Err(libc::EINVAL),
    };
    let (last_access, last_modification) = match format {
        TimeFormat::Nanoseconds => {
            (Timespec { tv_sec: a, tv_nsec: b }, Timespec { tv_sec: c, tv_nsec: d })
        }
        TimeFormat::Microseconds => (micro(a, b)?, micro(c, d)?),
        TimeFormat::Seconds => (micro(a, 0)?, micro(b, 0)?),
    };
    Ok(Timestamps { last_access, last_modification })
}
