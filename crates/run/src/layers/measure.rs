//! How large the parts of a layer are.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Dir, FileType};

use super::remove::open;
use super::{OWN, UPPER};

/// Entries of one part that are counted, and how deep they are. What is beyond counts as larger than
/// any limit: no cache has so many.
const MOST_ENTRIES: u64 = 4_000_000;
const DEEPEST: usize = 100;

/// Something that is removed as a whole.
pub(super) struct Part {
    pub(super) dir: OwnedFd,
    pub(super) name: OsString,
    pub(super) size: Size,
}

/// What something takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    /// When something in it was changed last, in seconds.
    pub(super) newest: i64,
    entries: u64,
}

impl Size {
    fn is_bounded(&self) -> bool {
        self.entries <= MOST_ENTRIES && self.bytes < u64::MAX
    }
}

/// The parts of a layer: what is in each private directory, and each directory of a tool over home.
pub(super) fn parts(layer: BorrowedFd<'_>) -> Vec<Part> {
    let below = [OWN, UPPER].into_iter().filter_map(|name| open(layer, name.as_ref()).ok());
    let dirs = below.flat_map(|top| {
        let names = directories(top.as_fd());
        names.into_iter().filter_map(move |name| open(top.as_fd(), &name).ok())
    });
    let mut parts = Vec::new();
    for dir in dirs {
        for name in names(dir.as_fd()) {
            let size = size_of(dir.as_fd(), &name);
            let dir = dir.try_clone();
            parts.extend(dir.ok().map(|dir| Part { dir, name, size }));
        }
    }
    parts
}

/// How large a whole layer is.
pub(super) fn whole(layer: BorrowedFd<'_>) -> u64 {
    let top = [OWN, UPPER].iter().map(|name| size_of(layer, name.as_ref()).bytes);
    top.fold(0, u64::saturating_add)
}

fn size_of(dir: BorrowedFd<'_>, name: &OsStr) -> Size {
    let mut size = Size::default();
    let device = rustix::fs::fstat(dir).map(|stat| stat.st_dev).ok();
    add(dir, name, device, DEEPEST, &mut size);
    size
}

fn add(dir: BorrowedFd<'_>, name: &OsStr, device: Option<u64>, deeper: usize, size: &mut Size) {
    let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
    if Some(stat.st_dev) != device {
        return;
    }
    let bytes = u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512);
    size.bytes = size.bytes.saturating_add(bytes);
    size.newest = size.newest.max(stat.st_ctime);
    size.entries += 1;
    if !FileType::from_raw_mode(stat.st_mode).is_dir() {
        return;
    }
    if deeper == 0 {
        size.bytes = u64::MAX;
        return;
    }
    let Ok(inner) = open(dir, name) else { return };
    let Ok(entries) = Dir::read_from(&inner) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            add(inner.as_fd(), name, device, deeper - 1, size);
        }
        if !size.is_bounded() {
            size.bytes = u64::MAX;
            return;
        }
    }
}

fn names(dir: BorrowedFd<'_>) -> Vec<OsString> {
    let entries = Dir::read_from(dir).into_iter().flatten().filter_map(Result::ok);
    let names = entries.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    names.filter(|name| name != "." && name != "..").collect()
}

fn directories(dir: BorrowedFd<'_>) -> Vec<OsString> {
    let is_directory = |name: &OsString| {
        let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir())
    };
    names(dir).into_iter().filter(is_directory).collect()
}
