//! Removes directories that runs have filled: without following a link, without leaving the file system,
//! and whatever their depth and their permissions are.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;

use super::DIRECTORY;

/// How the names of what is to be removed begin.
const ASIDE: &str = ".removed-";
/// How often a directory is tried in which something appears again.
const MOST_TRIES: u32 = 3;

/// Moves something into the directory of layers, to be removed by [`clear`].
pub(super) fn set_aside(
    layers: BorrowedFd<'_>,
    dir: BorrowedFd<'_>,
    name: &OsStr,
) -> Result<(), Errno> {
    move_up(layers, dir, name).map(drop)
}

/// Removes what was set aside, also by a process that did not come to its end.
pub(super) fn clear(layers: BorrowedFd<'_>) {
    let Ok(entries) = Dir::read_from(layers) else { return };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name().to_owned());
    let aside = names.filter(|name| name.to_bytes().starts_with(ASIDE.as_bytes()));
    for name in aside.collect::<Vec<_>>() {
        remove(layers, OsStr::from_bytes(name.to_bytes()));
    }
}

/// Removes a directory. Each directory in it is moved up first, so that one descriptor is enough for
/// any depth, and what is left after a crash is found again.
fn remove(layers: BorrowedFd<'_>, name: &OsStr) {
    let mut left = vec![(name.to_owned(), MOST_TRIES)];
    while let Some((name, tries)) = left.pop() {
        let Ok(dir) = open(layers, &name) else {
            let _ = rustix::fs::unlinkat(layers, &name, AtFlags::empty());
            continue;
        };
        empty(layers, dir.as_fd(), &mut left);
        let removed = rustix::fs::unlinkat(layers, &name, AtFlags::REMOVEDIR);
        if removed == Err(Errno::NOTEMPTY) && tries > 1 {
            left.push((name, tries - 1));
        }
    }
}

/// Removes the files of a directory, and moves its directories up.
fn empty(layers: BorrowedFd<'_>, dir: BorrowedFd<'_>, left: &mut Vec<(OsString, u32)>) {
    let Ok(entries) = Dir::read_from(dir) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
                stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
            }
            kind => kind,
        };
        if kind.is_dir() {
            left.extend(move_up(layers, dir, name).ok().map(|name| (name, MOST_TRIES)));
        } else {
            let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
        }
    }
}

/// Moves a directory to a new name in the directory of layers. Fails for one of another file system.
fn move_up(layers: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &OsStr) -> Result<OsString, Errno> {
    let new = fresh_name();
    match rustix::fs::renameat(dir, name, layers, &new) {
        // To change what `..` is, the directory must be writable.
        Err(Errno::ACCESS) => {
            make_accessible(dir, name)?;
            rustix::fs::renameat(dir, name, layers, &new)?;
        }
        moved => moved?,
    }
    Ok(new)
}

fn fresh_name() -> OsString {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    format!("{ASIDE}{}-{:x}-{number}", std::process::id(), since.as_nanos()).into()
}

/// Opens a directory, also one that its owner may not enter.
pub(super) fn open(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let opened = rustix::fs::openat(dir, name, DIRECTORY, Mode::empty());
    if let Ok(opened) = &opened {
        let mode = rustix::fs::fstat(opened)?.st_mode;
        if mode & 0o700 != 0o700 {
            rustix::fs::fchmod(opened, Mode::from_raw_mode((mode & 0o7777 | 0o700) as RawMode))?;
        }
    }
    match opened {
        Err(Errno::ACCESS) => {
            make_accessible(dir, name)?;
            rustix::fs::openat(dir, name, DIRECTORY, Mode::empty())
        }
        opened => opened,
    }
}

fn make_accessible(dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let own = format!("/proc/self/fd/{}", place.as_fd().as_raw_fd());
    rustix::fs::chmod(own, Mode::RWXU)
}
