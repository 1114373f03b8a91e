//! The audit directory: its lock, and how its files are opened.
//!
//! The lock is an advisory lock on the directory itself. It exists before the first file does, and
//! removing or replacing a file does not release it.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;

/// The name of the log's file.
pub(crate) const LOG: &str = "log.jsonl";
/// The name of the head's file.
pub(crate) const HEAD: &str = "head";

/// How long to wait for other processes. A writer holds the lock for some microseconds.
const PATIENCE: Duration = Duration::from_millis(500);
/// The first pause between two tries; each one doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// The open directory. The lock is held for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    handle: OwnedFd,
}

/// Why the directory or one of its files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system returned an error.
    #[error("cannot open `{}`: {reason}", path.display())]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        reason: io::Error,
    },
    /// The path is not a regular file. It was not followed, read or written.
    #[error("`{}` is {found}, not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is, with its article.
        found: &'static str,
    },
    /// Other processes held the lock for too long.
    #[error("the audit log in `{}` is busy: no access within {} ms", path.display(), PATIENCE.as_millis())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
}

/// How a file is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Writing {
    /// Only at its end.
    Append,
    /// Anywhere.
    InPlace,
}

impl Directory {
    /// Opens the directory for a writer, and creates it if it is missing.
    pub(crate) fn for_writing(path: &Path) -> Result<Self, OpenError> {
        let handle = match open_directory(path) {
            Err(Errno::NOENT) => {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
                made.map_err(|reason| OpenError::Refused { path: path.into(), reason })?;
                open_directory(path)
            }
            opened => opened,
        };
        let handle = handle.map_err(|errno| refused(path, errno))?;
        lock(path, &handle, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path: path.into(), handle })
    }

    /// Opens the directory for a reader, or returns `None` if it is missing.
    pub(crate) fn for_reading(path: &Path) -> Result<Option<Self>, OpenError> {
        let handle = match open_directory(path) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened.map_err(|errno| refused(path, errno))?,
        };
        lock(path, &handle, FlockOperation::NonBlockingLockShared)?;
        Ok(Some(Self { path: path.into(), handle }))
    }

    /// Opens a file to read and write it, and creates it if it is missing. Also returns its length.
    pub(crate) fn writable(&self, name: &str, how: Writing) -> Result<(File, u64), OpenError> {
        let flags = match how {
            Writing::Append => OFlags::RDWR | OFlags::CREATE | OFlags::APPEND,
            Writing::InPlace => OFlags::RDWR | OFlags::CREATE,
        };
        self.open(name, flags)
    }

    /// Opens a file to read it, or returns `None` if it is missing. Also returns its length.
    pub(crate) fn readable(&self, name: &str) -> Result<Option<(File, u64)>, OpenError> {
        match self.open(name, OFlags::RDONLY) {
            Err(OpenError::Refused { reason, .. }) if reason.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    fn open(&self, name: &str, flags: OFlags) -> Result<(File, u64), OpenError> {
        let path = || self.path.join(name);
        // Opening a fifo could block for ever, and a link could lead to another file.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let handle = match openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::LOOP) => {
                return Err(OpenError::NotAFile { path: path(), found: "a symbolic link" });
            }
            Err(Errno::ISDIR) => {
                return Err(OpenError::NotAFile { path: path(), found: "a directory" });
            }
            opened => opened.map_err(|errno| refused(&path(), errno))?,
        };
        let status = fstat(&handle).map_err(|errno| refused(&path(), errno))?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => {
                Ok((handle.into(), u64::try_from(status.st_size).unwrap_or_default()))
            }
            FileType::Directory => Err(OpenError::NotAFile { path: path(), found: "a directory" }),
            FileType::Fifo => Err(OpenError::NotAFile { path: path(), found: "a named pipe" }),
            _ => Err(OpenError::NotAFile { path: path(), found: "a device or socket" }),
        }
    }
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

fn lock(path: &Path, handle: &OwnedFd, operation: FlockOperation) -> Result<(), OpenError> {
    let mut deadline = None;
    let mut pause = FIRST_PAUSE;
    loop {
        match flock(handle, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => {}
            Err(errno) => return Err(refused(path, errno)),
        }
        // The clock is read only if there is something to wait for.
        let now = Instant::now();
        if now >= *deadline.get_or_insert(now + PATIENCE) {
            return Err(OpenError::Busy { path: path.into() });
        }
        thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

fn refused(path: &Path, errno: Errno) -> OpenError {
    OpenError::Refused { path: path.into(), reason: errno.into() }
}
