//! [`GitLock`]: a file that git wrote next to another, to be renamed over it.
//!
//! `git branch -d` rewrites the repository's configuration whether or not anything in it changes.
//! Where nothing does, the rename has no effect and need not be denied.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use model::AbsPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::child::mounts::open_without_links;

/// A lock file, and the file that it is for, in one directory.
pub(crate) struct GitLock {
    directory: OwnedFd,
    name: OsString,
    locked: OsString,
}

/// Files that are longer are not compared.
const MOST_BYTES: u64 = 1 << 20;

impl GitLock {
    /// A lock with the name that git gives it.
    pub(crate) fn of(lock: &AbsPath, file: &AbsPath) -> Option<Self> {
        let name = file.as_path().file_name()?;
        let mut expected = name.to_owned();
        expected.push(".lock");
        if lock.parent() != file.parent() || lock.as_path().file_name()? != expected {
            return None;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = open_without_links(file.parent().as_path(), flags).ok()?;
        Some(Self { directory, name: expected, locked: name.to_owned() })
    }

    /// Whether both files have the same content.
    pub(crate) fn changes_nothing(&self) -> bool {
        let (Ok(lock), Ok(file)) = (self.text(&self.name), self.text(&self.locked)) else {
            return false;
        };
        lock == file
    }

    /// Writes what the lock file says into the file it is for, if `accepts` the old and the new
    /// content. The file keeps its place, because something is mounted on it.
    pub(crate) fn record(&self, accepts: impl Fn(&[u8], &[u8]) -> bool) -> io::Result<bool> {
        let (new, old) = (self.text(&self.name)?, self.text(&self.locked)?);
        if !accepts(&old, &new) {
            return Ok(false);
        }
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &self.locked, flags, Mode::empty())?;
        // Another name of it may be a file of its own to someone.
        if rustix::fs::fstat(&file)?.st_nlink != 1 {
            return Ok(false);
        }
        let mut file = File::from(file);
        file.write_all(&new)?;
        file.set_len(new.len() as u64)?;
        self.remove()?;
        Ok(true)
    }

    /// Removes the lock file, which is all that the rename would do.
    pub(crate) fn remove(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty())?)
    }

    fn text(&self, name: &OsString) -> io::Result<Vec<u8>> {
        // Neither a link nor a pipe may block this thread: the run could put one there.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&file)?;
        let length = u64::try_from(found.st_size).unwrap_or(u64::MAX);
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || length > MOST_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut text = Vec::new();
        File::from(file).take(MOST_BYTES).read_to_end(&mut text)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn at(path: &Path) -> AbsPath {
        AbsPath::lexical(path).unwrap()
    }

    #[test]
    fn a_lock_that_says_the_same_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (file, path) = (dir.join("config"), dir.join("config.lock"));
        std::fs::write(&file, "same").unwrap();
        std::fs::write(&path, "same").unwrap();
        let lock = GitLock::of(&at(&path), &at(&file)).unwrap();
        assert!(lock.changes_nothing());
        std::fs::write(&path, "other").unwrap();
        assert!(!lock.changes_nothing());
        lock.remove().unwrap();
        assert!(!path.exists() && file.exists());
        assert!(!lock.changes_nothing());
    }

    #[test]
    fn what_is_accepted_is_written_into_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (file, path) = (dir.join("config"), dir.join("config.lock"));
        std::fs::write(&file, "a longer text").unwrap();
        std::fs::write(&path, "new").unwrap();
        let open = File::open(&file).unwrap();
        let lock = GitLock::of(&at(&path), &at(&file)).unwrap();
        assert!(!lock.record(|_, _| false).unwrap() && path.exists());
        assert!(lock.record(|old, new| old == b"a longer text" && new == b"new").unwrap());
        assert!(!path.exists());
        assert_eq!(io::read_to_string(open).unwrap(), "new");
        std::fs::write(&path, "other").unwrap();
        std::fs::hard_link(&file, dir.join("more")).unwrap();
        assert!(!lock.record(|_, _| true).unwrap());
    }

    #[test]
    fn nothing_else_is_a_lock() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let file = at(&dir.join("config"));
        for other in ["config.lock2", "lock", "below/config.lock"] {
            assert!(GitLock::of(&at(&dir.join(other)), &file).is_none(), "{other}");
        }
        std::fs::write(dir.join("config"), "").unwrap();
        std::os::unix::fs::symlink("config", dir.join("config.lock")).unwrap();
        assert!(!GitLock::of(&at(&dir.join("config.lock")), &file).unwrap().changes_nothing());
    }
}
