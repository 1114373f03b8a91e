//! Opens for reading that the supervisor performs, where every first open of a file must be decided
//! (`filesystem.strict_deny`).
//!
//! A path that is judged and then left to the kernel can lead to another file by then: the host
//! creates one, or a thread changes the argument. So the file is opened first, as the run sees
//! it; then is looked where it is; and then the open descriptor is lent. What the kernel hands out is
//! what was judged.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, FsWord, Mode, OFlags, ResolveFlags};
use rustix::process::{Pid, PidfdFlags};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::mount_helper::{Access, Done, KEPT, Request};
use super::{Next, Supervisor};
use crate::attempt::{Attempt, Operation};
use crate::child::stdio;
use crate::monitor::{self, Monitor, Ruling, Source};
use crate::observe::notify::{self, read_path};
use crate::observe::program::{Program, innermost};
use crate::observe::syscalls::PathArgument;
use crate::sys::{self, CloseOnExec, ExitOnPanic, Notification, Reply};

/// Opens of named pipes that wait for a writer at the same time.
const MOST_WAITING: usize = 64;

impl Supervisor<'_> {
    /// Opens a file for a waiting call.
    pub(super) fn perform_read(
        &mut self,
        notification: &Notification,
        argument: PathArgument,
        flags: u32,
        monitor: &mut dyn Monitor,
    ) -> Next {
        let opened = match self.open_as_called(notification, argument, flags, monitor) {
            Ok(opened) => opened,
            Err(Failing::Errno(errno)) => return self.answer(notification, Reply::Errno(errno)),
            Err(Failing::Run(next)) => return next,
        };
        let Opened { file, access } = opened;
        // What has just been opened may have appeared after the last look.
        match self.keep_mounts(monitor) {
            Next::GoOn => {}
            next => return next,
        }
        let Ok(place) = rustix::fs::readlink(fd_path(&file), Vec::new()) else {
            return self.answer(notification, Reply::Errno(libc::EACCES));
        };
        let place = PathBuf::from(OsStr::from_bytes(place.as_bytes()));
        // What was removed or replaced meanwhile has no path any more; the kernel says so behind it.
        let gone = place.as_os_str().as_bytes().strip_suffix(b" (deleted)");
        let gone = gone.map(|path| Path::new(OsStr::from_bytes(path)));
        let hidden = monitor.is_hidden(&place) || gone.is_some_and(|path| monitor.is_hidden(path));
        if hidden {
            let (operation, pid) = (Operation::Read, notification.pid);
            let attempt = Attempt { operation, path: place, pid };
            let program = || Program::look_up_here(pid);
            return match monitor::rule(monitor, Source::Syscall, &attempt, program) {
                Ruling::Stop => self.stop(),
                Ruling::Errno(errno) => self.answer(notification, Reply::Errno(errno)),
                Ruling::Continue => self.answer(notification, Reply::Errno(libc::EACCES)),
            };
        }
        if access == Access::Waiting {
            return self.lend_when_opened(notification, &file, flags);
        }
        let Some(listener) = &self.listener else { return Next::GoOn };
        let close_on_exec = close_on_exec(flags);
        if sys::lend(listener.as_fd(), notification.id, file.as_fd(), close_on_exec).is_err() {
            return self.answer(notification, Reply::Errno(libc::EMFILE));
        }
        Next::GoOn
    }

    fn answer(&self, notification: &Notification, reply: Reply) -> Next {
        self.listener.iter().for_each(|listener| notify::answer(listener, notification, reply));
        Next::GoOn
    }

    fn open_as_called(
        &mut self,
        notification: &Notification,
        argument: PathArgument,
        flags: u32,
        monitor: &mut dyn Monitor,
    ) -> Result<Opened, Failing> {
        let pid = notification.pid;
        let path = read_path(pid, argument.pointer).map_err(Failing::Errno)?;
        if path.as_os_str().is_empty() {
            return Err(Failing::Errno(libc::ENOENT));
        }
        let directory = (!path.is_absolute()).then(|| directory(pid, argument.directory));
        let directory = directory.transpose()?;
        // The process may have ended, and its number may be that of another one by now.
        let valid =
            |listener: &OwnedFd| sys::notification_is_valid(listener.as_fd(), notification.id);
        if !self.listener.as_ref().is_some_and(valid) {
            return Err(Failing::Errno(libc::EINTR));
        }
        let special = directory.is_none().then(|| of_process(&path, pid)).flatten();
        let by_descriptor = special.as_deref().is_some_and(is_descriptor);
        let here = directory.as_ref().and_then(|at| open_here(at, &path, flags));
        if let Some(file) = here {
            return Ok(Opened { file, access: Access::Reading });
        }
        let request = Request::Open { path: special.unwrap_or(path), flags };
        self.performs_for = Some(pid);
        let asked = self.ask_helper(&request, directory.as_ref(), monitor);
        self.performs_for = None;
        match asked.map_err(Failing::Run)? {
            (Done::Opened(access), Some(file)) => {
                if by_descriptor && !self.may_open_again(&file) {
                    return Err(Failing::Errno(libc::EACCES));
                }
                Ok(Opened { file, access })
            }
            (Done::Failed(errno), _) => Err(Failing::Errno(errno)),
            _ => Err(Failing::Errno(libc::ENOENT)),
        }
    }

    /// Whether a file that a process of the run has open may be opened for reading: an inherited one
    /// may be open for writing only.
    fn may_open_again(&self, file: &OwnedFd) -> bool {
        let Ok(place) = std::fs::read_link(fd_path(file)) else { return false };
        let Ok(path) = model::AbsPath::lexical(&place) else { return true };
        let kind = rustix::fs::fstat(file).map(|stat| FileType::from_raw_mode(stat.st_mode));
        if !kind.is_ok_and(|kind| kind.is_file() || kind.is_dir()) {
            return true;
        }
        let anonymous = ["/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"];
        let text = place.as_os_str().as_bytes();
        self.launch.plan.allows(&path, false)
            || anonymous.iter().any(|start| text.starts_with(start.as_bytes()))
            || stdio::access(&place).unwrap_or_default().read
    }

    /// Opens a named pipe that waits for its writer, in a process of its own that lends it when there
    /// is one.
    fn lend_when_opened(
        &mut self,
        notification: &Notification,
        pipe: &OwnedFd,
        flags: u32,
    ) -> Next {
        self.pipes.retain(|process| !sys::has_ended(*process));
        let Some(listener) = &self.listener else { return Next::GoOn };
        if self.pipes.len() >= MOST_WAITING {
            return self.answer(notification, Reply::Errno(libc::EAGAIN));
        }
        match sys::fork() {
            Ok(Some(process)) => self.pipes.push(process),
            Ok(None) => {
                let _exit = ExitOnPanic;
                let _ = sys::die_with_parent();
                let opened = rustix::fs::open(
                    fd_path(pipe),
                    OFlags::RDONLY | OFlags::CLOEXEC,
                    Mode::empty(),
                );
                let close_on_exec = close_on_exec(flags);
                let lent = opened.map_err(std::io::Error::from).and_then(|file| {
                    sys::lend(listener.as_fd(), notification.id, file.as_fd(), close_on_exec)
                });
                if lent.is_err() {
                    notify::answer(listener, notification, Reply::Errno(libc::EACCES));
                }
                sys::exit_now(0)
            }
            Err(_) => return self.answer(notification, Reply::Errno(libc::EAGAIN)),
        }
        Next::GoOn
    }
}

/// A descriptor, and what it is good for.
struct Opened {
    file: OwnedFd,
    access: Access,
}

/// Why nothing is opened.
enum Failing {
    Errno(i32),
    Run(Next),
}

/// The directory at which a relative path starts, without a walk: the run's files are not looked up by
/// this thread.
fn directory(pid: u32, descriptor: i32) -> Result<OwnedFd, Failing> {
    let errno = |error: rustix::io::Errno| Failing::Errno(error.raw_os_error());
    if descriptor == libc::AT_FDCWD {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        return rustix::fs::open(format!("/proc/{pid}/cwd"), flags, Mode::empty()).map_err(errno);
    }
    let thread = Pid::from_raw(pid.cast_signed()).ok_or(Failing::Errno(libc::ESRCH))?;
    // Descriptors belong to the whole process in all but the strangest programs.
    let process = rustix::process::pidfd_open(thread, PidfdFlags::empty());
    let stolen = process.and_then(|process| {
        let flags = rustix::process::PidfdGetfdFlags::empty();
        rustix::process::pidfd_getfd(process, descriptor, flags)
    });
    match stolen {
        Ok(directory) => Ok(directory),
        // It is not the first thread of its process.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT | rustix::io::Errno::SRCH) => {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let path = format!("/proc/{pid}/fd/{descriptor}");
            let opened = rustix::fs::open(path, flags, Mode::empty());
            opened.map_err(|_| Failing::Errno(libc::EBADF))
        }
        Err(error) => Err(errno(error)),
    }
}

/// Opens a regular file below a directory, without links and within its mount: there is no node of the
/// tripwire on such a way, which this thread could not wait for. `None`: the helper has to do it.
fn open_here(directory: &OwnedFd, path: &Path, flags: u32) -> Option<OwnedFd> {
    const FUSE: FsWord = 0x6573_5546;
    if rustix::fs::fstatfs(directory).ok()?.f_type == FUSE {
        return None;
    }
    let asked = OFlags::from_bits_retain(flags);
    let how = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    without_capabilities(|| {
        let look = OFlags::PATH | OFlags::CLOEXEC;
        let place = rustix::fs::openat2(directory, path, look, Mode::empty(), how).ok()?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&place).ok()?.st_mode);
        if kind != FileType::RegularFile {
            return None;
        }
        // A process of the run may hold a lease on it.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | (asked & KEPT);
        let file = rustix::fs::open(fd_path(&place), flags, Mode::empty()).ok()?;
        if !asked.contains(OFlags::NONBLOCK) {
            let set = rustix::fs::fcntl_getfl(&file).ok()? - OFlags::NONBLOCK;
            rustix::fs::fcntl_setfl(&file, set).ok()?;
        }
        Some(file)
    })
}

/// Does something with the rights of the run: a supervisor of root could read what the run cannot.
fn without_capabilities<T>(act: impl FnOnce() -> Option<T>) -> Option<T> {
    if !rustix::process::geteuid().is_root() {
        return act();
    }
    let before = rustix::thread::capabilities(None).ok()?;
    let none = CapabilitySet::empty();
    let fewer = CapabilitySets { effective: none, ..before };
    rustix::thread::set_capabilities(None, fewer).ok()?;
    let done = act();
    rustix::thread::set_capabilities(None, before).ok()?;
    done
}

/// What a path that depends on the calling process means for every other one.
fn of_process(path: &Path, pid: u32) -> Option<PathBuf> {
    let status = || std::fs::read_to_string(format!("/proc/{pid}/status")).ok();
    let process = || innermost(&status()?, "NStgid:");
    let thread = || innermost(&status()?, "NSpid:");
    let standard = ["stdin", "stdout", "stderr"];
    let mut parts = path.iter().skip(1).filter(|part| *part != ".");
    let (first, second) = (parts.next()?, parts.next()?);
    let (base, rest): (String, Vec<_>) = match (first.to_str()?, second.to_str()?) {
        ("dev", "fd") => (format!("/proc/{}/fd", process()?), parts.collect()),
        ("dev", name) if standard.contains(&name) => {
            let number = standard.iter().position(|known| *known == name)?;
            (format!("/proc/{}/fd/{number}", process()?), parts.collect())
        }
        ("proc", "self") => (format!("/proc/{}", process()?), parts.collect()),
        ("proc", "thread-self") => {
            (format!("/proc/{}/task/{}", process()?, thread()?), parts.collect())
        }
        ("proc", name @ ("mounts" | "net")) => {
            (format!("/proc/{}/{name}", process()?), parts.collect())
        }
        _ => return None,
    };
    Some(rest.into_iter().fold(PathBuf::from(base), |path, part| path.join(part)))
}

/// Whether a path is that of a process's descriptor.
fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/proc") && path.parent().is_some_and(|parent| parent.ends_with("fd"))
}

fn close_on_exec(flags: u32) -> CloseOnExec {
    CloseOnExec(flags & libc::O_CLOEXEC.cast_unsigned() != 0)
}

fn fd_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
