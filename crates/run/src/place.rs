//! [`Place`]: a name in a directory that was opened without following a link.
//!
//! Other runs may be active in the same directory, and could lead whoever goes by a path anywhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;

use crate::kept::read_some;

/// A name in a directory.
pub(crate) struct Place {
    directory: OwnedFd,
    name: OsString,
}

/// A file as it is.
pub(crate) struct There {
    pub(crate) content: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) stamp: Stamp,
    pub(crate) links: u64,
}

/// Which file it is, and when it was changed: no program can set that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &rustix::fs::Stat) -> Self {
        Self {
            device: found.st_dev,
            inode: found.st_ino,
            changed: (found.st_ctime, found.st_ctime_nsec.cast_signed()),
        }
    }
}

impl Place {
    /// A path whose directory exists.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { directory: facts::open_directory(parent)?, name })
    }

    /// The same; creates the directories that are missing.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let missing: Vec<_> = parent
            .ancestors()
            .take_while(|dir| dir.symlink_metadata().is_err())
            .filter_map(Path::file_name)
            .collect();
        let mut there = parent;
        for _ in &missing {
            there = there.parent().ok_or(io::ErrorKind::NotFound)?;
        }
        let mut directory = facts::open_directory(there)?;
        for name in missing.into_iter().rev() {
            match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            directory = rustix::fs::openat(&directory, name, flags, Mode::empty())?;
        }
        Ok(Self { directory, name })
    }

    /// The regular file that is there; `None` if nothing is.
    pub(crate) fn read(&self, most: usize) -> io::Result<Option<There>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            file => file?,
        };
        let found = rustix::fs::fstat(file.as_fd())?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (stamp, mode) = (Stamp::of(&found), found.st_mode & 0o777);
        let content = read_some(File::from(file), most)?;
        Ok(Some(There { content, mode, stamp, links: found.st_nlink }))
    }

    /// Which regular file is there.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        let none = AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statat(&self.directory, &self.name, none).ok()?;
        let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        regular.then(|| Stamp::of(&found))
    }

    /// Writes a file that keeps its place, where something may be mounted on it.
    pub(crate) fn overwrite(&self, content: &[u8], mode: u32) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty())?;
        let found = rustix::fs::fstat(file.as_fd())?;
        let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        // Another name of it may be a file of its own to someone.
        if !regular || found.st_nlink != 1 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut file = File::from(file);
        file.set_len(0)?;
        file.write_all(content)?;
        Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode((mode & 0o777) as RawMode))?)
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty())?)
    }

    /// Puts a new file there, in place of what was there.
    pub(crate) fn replace(&self, content: &[u8], mode: u32) -> io::Result<()> {
        let mut name = OsStr::new(".").to_owned();
        name.push(&self.name);
        name.push(format!(".{}", std::process::id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let bits = Mode::from_raw_mode((mode & 0o777) as RawMode);
        let file = rustix::fs::openat(&self.directory, &name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(file);
        let done = file.write_all(content).and_then(|()| {
            rustix::fs::fchmod(&file, bits)?;
            Ok(rustix::fs::renameat(&self.directory, &name, &self.directory, &self.name)?)
        });
        if done.is_err() {
            let _ = rustix::fs::unlinkat(&self.directory, &name, AtFlags::empty());
        }
        done
    }
}
