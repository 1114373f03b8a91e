//! Opens: the file that a call asks for, to be lent to its process.
//!
//! Nothing here may wait. What exists is found without opening it, and is then opened by descriptor
//! with `O_NONBLOCK`: a fifo without a reader and a file with a lease are tried again later.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::c_int;
use model::AbsPath;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::DecInt;

use super::{NotPerformed, Performance, Performed, Performer, Result, Umask, bits, is_of_the_run};
use crate::observe::notify::{Caller, Opened, Place};
use crate::supervisor::views::{Seen, Views};
use crate::sys::{self, CloseOnExec};

/// Flags that decide which file it is, and mean nothing for one that is known.
const FOUND: c_int = libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
const TMPFILE: u32 = (libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned();

impl Performer {
    pub(super) fn open(
        &self,
        views: &Views,
        call: &Performance,
        flags: u32,
        mode: u32,
    ) -> Result<Performed> {
        let close_on_exec = CloseOnExec(flags & libc::O_CLOEXEC.cast_unsigned() != 0);
        let file = match &call.first {
            Place::Open(opened) => self.open_again(views, call, opened, flags),
            Place::At { path, .. } if path.as_path() == "/dev/tty" => {
                self.open_terminal(views, &call.caller, flags)
            }
            Place::At { path, slash } => self.open_at(views, call, (path, *slash), flags, mode),
        }?;
        Ok(Performed::File(file, close_on_exec))
    }

    fn open_at(
        &self,
        views: &Views,
        call: &Performance,
        (path, slash): (&AbsPath, bool),
        flags: u32,
        mode: u32,
    ) -> Result<OwnedFd> {
        let has = |flag: c_int| flags & flag.cast_unsigned() != 0;
        let creates = has(libc::O_CREAT);
        let (directory, name) = views.parent(path)?;
        if creates && slash {
            return Err(Errno::ISDIR.into());
        }
        let (object, seen) = match name {
            None => {
                let seen = Seen::of(directory.as_fd())?;
                (directory, seen)
            }
            Some(name) => match views.look(directory.as_fd(), name) {
                Err(Errno::NOENT) if creates => {
                    let asked = OFlags::from_bits_retain(flags) | OFlags::CREATE | OFlags::EXCL;
                    let asked = asked | OFlags::CLOEXEC | OFlags::NOCTTY;
                    let _umask = Umask::of(&call.caller)?;
                    let mode = bits(mode);
                    return match rustix::fs::openat(&directory, name, asked, mode) {
                        Err(Errno::EXIST) => Err(NotPerformed::Changed),
                        file => Ok(file?),
                    };
                }
                found => found?,
            },
        };
        let is_directory = seen.kind == FileType::Directory;
        let is_link = seen.kind == FileType::Symlink;
        if creates && has(libc::O_EXCL) {
            return Err(Errno::EXIST.into());
        }
        if is_link && has(libc::O_NOFOLLOW) && !slash {
            let error = if has(libc::O_DIRECTORY) { Errno::NOTDIR } else { Errno::LOOP };
            return Err(error.into());
        }
        if is_link {
            return Err(NotPerformed::Changed);
        }
        if creates && is_directory {
            return Err(Errno::ISDIR.into());
        }
        if slash && !is_directory {
            return Err(Errno::NOTDIR.into());
        }
        let umask = (flags & TMPFILE != 0).then(|| Umask::of(&call.caller)).transpose()?;
        let opened = self.reopen(object.as_fd(), seen.kind, flags, bits(mode));
        drop(umask);
        opened
    }

    /// Opens what a descriptor of the caller is open on.
    fn open_again(
        &self,
        views: &Views,
        call: &Performance,
        opened: &Opened,
        flags: u32,
    ) -> Result<OwnedFd> {
        let exclusive = (libc::O_CREAT | libc::O_EXCL).cast_unsigned();
        if flags & exclusive == exclusive {
            return Err(Errno::EXIST.into());
        }
        let object = opened.object.as_fd();
        let kind = Seen::of(object)?.kind;
        let theirs =
            opened.path.is_some() && (call.inherited || is_of_the_run(views, opened).is_err());
        // No more than the descriptor itself gives.
        if theirs && !gives(opened.access, flags) {
            return Err(Errno::ACCESS.into());
        }
        if kind == FileType::Directory && flags & libc::O_CREAT.cast_unsigned() != 0 {
            return Err(Errno::ISDIR.into());
        }
        let umask = (flags & TMPFILE != 0).then(|| Umask::of(&call.caller)).transpose()?;
        let file = self.reopen(object, kind, flags, Mode::RUSR | Mode::WUSR);
        drop(umask);
        file
    }

    /// Opens what is held already, and so is known to be no node of the tripwire.
    pub(super) fn reopen(
        &self,
        object: BorrowedFd<'_>,
        kind: FileType,
        flags: u32,
        mode: Mode,
    ) -> Result<OwnedFd> {
        let exclusive = if flags & TMPFILE != 0 { flags & libc::O_EXCL.cast_unsigned() } else { 0 };
        let asked = OFlags::from_bits_retain(flags & !FOUND.cast_unsigned() | exclusive);
        let ours = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let name = DecInt::from_fd(object);
        let file = match rustix::fs::openat(self.descriptors()?, name, asked | ours, mode) {
            Err(Errno::NXIO) if kind == FileType::Fifo && !asked.contains(OFlags::NONBLOCK) => {
                return Err(NotPerformed::Waits);
            }
            Err(Errno::AGAIN) if !asked.contains(OFlags::NONBLOCK) => {
                return Err(NotPerformed::Waits);
            }
            file => file?,
        };
        if !asked.contains(OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(&file, asked)?;
        }
        Ok(file)
    }

    pub(super) fn truncate(&self, object: BorrowedFd<'_>, length: i64, pid: u32) -> Result<()> {
        let kind = Seen::of(object)?.kind;
        match kind {
            FileType::Directory => return Err(Errno::ISDIR.into()),
            FileType::RegularFile => {}
            _ => return Err(Errno::INVAL.into()),
        }
        let length = u64::try_from(length).map_err(|_| Errno::INVAL)?;
        // Opened, because `truncate` itself would wait for a lease.
        let write = libc::O_WRONLY.cast_unsigned();
        let file = self.reopen(object, kind, write, Mode::empty())?;
        // The limit of this process is another one.
        let limit = sys::file_size_limit(pid).ok_or(Errno::ACCESS)?;
        let present = rustix::fs::fstat(&file)?.st_size;
        if length > limit && i128::from(length) > i128::from(present) {
            return Err(Errno::FBIG.into());
        }
        Ok(rustix::fs::ftruncate(&file, length)?)
    }

    /// The controlling terminal of the caller, which need not be that of this process.
    fn open_terminal(&self, views: &Views, caller: &Caller, flags: u32) -> Result<OwnedFd> {
        let (session, terminal) = terminal(&caller.pid.to_string()).ok_or(Errno::NXIO)?;
        if terminal == 0 {
            return Err(Errno::NXIO.into());
        }
        if terminal_of_this_process() == Some((session, terminal)) {
            let path = rustix::fs::open("/dev/tty", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            return self.reopen(path.as_fd(), FileType::CharacterDevice, flags, Mode::empty());
        }
        // A terminal that the process has open, or one that the run has made.
        for number in 0..3 {
            let link = format!("/proc/{}/fd/{number}", caller.pid);
            let flags_of_path = OFlags::PATH | OFlags::CLOEXEC;
            let Ok(object) = rustix::fs::open(link, flags_of_path, Mode::empty()) else { continue };
            let seen = Seen::of(object.as_fd())?;
            if seen.kind == FileType::CharacterDevice
                && rustix::fs::fstat(&object).is_ok_and(|it| encoded(it.st_rdev) == terminal)
            {
                return self.reopen(object.as_fd(), seen.kind, flags, Mode::empty());
            }
        }
        let index = (terminal & 0xff) | ((terminal >> 12) & 0xf_ff00);
        let path = format!("/dev/pts/{index}");
        let path = AbsPath::lexical(path.as_ref()).map_err(|_| Errno::NXIO)?;
        let (directory, name) = views.parent(&path)?;
        let (object, seen) = views.look(directory.as_fd(), name.ok_or(Errno::NXIO)?)?;
        let device = rustix::fs::fstat(&object)?.st_rdev;
        if encoded(device) != terminal {
            return Err(Errno::NXIO.into());
        }
        self.reopen(object.as_fd(), seen.kind, flags, Mode::empty())
    }
}

/// Whether a descriptor of one access mode gives what an open with these flags asks for.
fn gives(access: u32, flags: u32) -> bool {
    let asked = flags & 3;
    let cuts = flags & libc::O_TRUNC.cast_unsigned() != 0;
    match access {
        0 => asked == 0 && !cuts,
        1 => asked == 1,
        2 => asked < 3,
        _ => false,
    }
}

/// The session and the terminal of a process, the latter as `stat` in `/proc` encodes it.
fn terminal(process: &str) -> Option<(i64, i64)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(3).map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

fn terminal_of_this_process() -> Option<(i64, i64)> {
    terminal("self")
}

fn encoded(device: u64) -> i64 {
    let (major, minor) =
        (i64::from(rustix::fs::major(device)), i64::from(rustix::fs::minor(device)));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}
