//! [`aside`]: gives an entry another name, so that nothing is lost and nothing acts on it.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::events::Tampering;

/// The mode bits with which an owner can list and change a directory.
const OPEN: u32 = 0o700;

/// Moves an entry aside, so that nothing is lost and nothing acts on it. The target of a link on
/// the way is not touched, because it may belong to another program.
pub(crate) fn aside(path: &Path, what: &str) -> Tampering {
    let moved_to = move_aside(path).map(|to| to.display().to_string());
    Tampering { path: path.display().to_string(), moved_to, what: what.into() }
}

/// Moves an entry aside, and puts a new file in its place.
pub(crate) fn replace(path: &Path, content: &[u8], what: &str) -> Tampering {
    let moved_to = move_and_replace(path, Some(content)).map(|to| to.display().to_string());
    Tampering { path: path.display().to_string(), moved_to, what: what.into() }
}

pub(crate) fn move_aside(path: &Path) -> Option<PathBuf> {
    move_and_replace(path, None)
}

fn move_and_replace(path: &Path, content: Option<&[u8]>) -> Option<PathBuf> {
    let name = path.file_name()?;
    let opened = Opened::new(path.parent()?)?;
    // The run can create some names beforehand, but it does not know the time.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let numbers = (1..100).chain([now.as_nanos()]);
    let beginning: String = name.to_string_lossy().chars().take(MOST_NAME).collect();
    // Git takes every file below `refs` for a reference, except locks.
    let reference = path.components().any(|part| part.as_os_str() == "refs");
    let ending = if reference { ".lock" } else { "" };
    let moved = numbers
        .map(|number| format!("{beginning}.moved-by-ringwall-{number}{ending}"))
        .find(|target| opened.rename(name, target));
    if let Some(content) = content.filter(|_| moved.is_some()) {
        // Without it nothing acts, either.
        let _ = opened.create(name, content);
    }
    opened.close();
    moved.map(|target| path.with_file_name(target))
}

/// The number of characters kept of a name, so that there is room for the suffix.
const MOST_NAME: usize = 40;

/// A directory that was made readable and writable, so that it can be searched and repaired. No
/// component of its path is a link: another run may be active here, and could lead us anywhere.
pub(crate) struct Opened {
    directory: OwnedFd,
    mode: u32,
}

impl Opened {
    pub(crate) fn new(dir: &Path) -> Option<Self> {
        let directory = facts::open_directory(dir).ok()?;
        let mode = rustix::fs::fstat(&directory).ok()?.st_mode & 0o7777;
        let opened = Self { directory, mode };
        // If that fails, the next operation fails too, and that is reported.
        opened.set(mode | OPEN);
        Some(opened)
    }

    fn set(&self, mode: u32) {
        if self.mode & OPEN != OPEN {
            let path = format!("/proc/self/fd/{}", self.directory.as_raw_fd());
            let _ = std::fs::set_permissions(path, Permissions::from_mode(mode));
        }
    }

    /// What is there under a name.
    pub(crate) fn look(&self, name: &OsStr) -> Option<rustix::fs::Stat> {
        rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Renames an entry to a name that is free. Returns whether that worked.
    fn rename(&self, from: &OsStr, to: &str) -> bool {
        let dir = &self.directory;
        match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
            // Not every file system can do it in one step.
            Err(Errno::INVAL) => {
                let free = rustix::fs::statat(dir, to, AtFlags::SYMLINK_NOFOLLOW).is_err();
                free && rustix::fs::renameat(dir, from, dir, to).is_ok()
            }
            renamed => renamed.is_ok(),
        }
    }

    /// Creates a file in this very directory: another run could put a link in place of it meanwhile.
    fn create(&self, name: &OsStr, content: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let file = rustix::fs::openat(&self.directory, name, flags, mode)?;
        File::from(file).write_all(content)
    }

    pub(crate) fn close(self) {
        self.set(self.mode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_through_a_link_on_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for name in ["outside", "inside"] {
            std::fs::create_dir(dir.join(name)).unwrap();
            std::fs::write(dir.join(name).join("config"), "old").unwrap();
        }
        std::os::unix::fs::symlink("outside", dir.join("link")).unwrap();
        let config = |name: &str| std::fs::read_to_string(dir.join(name).join("config")).unwrap();
        assert!(replace(&dir.join("link/config"), b"new", "x").moved_to.is_none());
        assert_eq!(config("outside"), "old");
        assert!(replace(&dir.join("inside/config"), b"new", "x").moved_to.is_some());
        assert_eq!(config("inside"), "new");
        assert_eq!(std::fs::read_dir(dir.join("outside")).unwrap().count(), 1);
    }
}
