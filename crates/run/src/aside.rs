//! [`aside`]: gives an entry another name, so that nothing is lost and nothing acts on it.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, RenameFlags};
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

pub(crate) fn move_aside(path: &Path) -> Option<PathBuf> {
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

    pub(crate) fn close(self) {
        self.set(self.mode);
    }
}
