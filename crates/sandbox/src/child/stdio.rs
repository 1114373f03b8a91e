//! The standard descriptors that a run inherits from its caller, and what they give access to.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

/// What can be reached through the inherited descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Only the open files themselves.
    Streams,
    /// A file that can be reopened with another mode.
    File,
    /// A directory, and everything below it.
    Directory,
}

/// What a descriptor allows with a file or a fifo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) read: bool,
    /// Also for append-only descriptors: the flag can be cleared.
    pub(crate) write: bool,
}

impl Access {
    fn of(descriptor: BorrowedFd<'_>) -> Self {
        // An unknown mode allows nothing.
        let flags = rustix::fs::fcntl_getfl(descriptor).unwrap_or(OFlags::PATH);
        if flags.contains(OFlags::PATH) {
            return Self::default();
        }
        let mode = flags & OFlags::RWMODE;
        Self { read: mode != OFlags::WRONLY, write: mode != OFlags::RDONLY }
    }

    fn and(self, other: Self) -> Self {
        Self { read: self.read || other.read, write: self.write || other.write }
    }
}

/// The most that can be reached through any of them.
pub(crate) fn reach() -> Reach {
    let all = all().map(|descriptor| match rustix::fs::fstat(descriptor) {
        Ok(file) => reach_of(descriptor, &file),
        // A closed descriptor leads nowhere.
        Err(Errno::BADF) => Reach::Streams,
        Err(_) => Reach::Directory,
    });
    all.into_iter().max().unwrap_or(Reach::Directory)
}

/// The files and fifos among them, with what is allowed with each.
pub(crate) fn files() -> impl Iterator<Item = (BorrowedFd<'static>, Stat, Access)> {
    all().into_iter().filter_map(|descriptor| {
        let file = rustix::fs::fstat(descriptor).ok()?;
        let has_name = matches!(kind(&file), FileType::RegularFile | FileType::Fifo);
        has_name.then(|| (descriptor, file, Access::of(descriptor)))
    })
}

/// Those that are `/dev/null`, by number, with their open mode.
pub(crate) fn nulls() -> impl Iterator<Item = (i32, OFlags)> {
    all().into_iter().filter_map(|descriptor| {
        let file = rustix::fs::fstat(descriptor).ok()?;
        let is_null = kind(&file) == FileType::CharacterDevice && device(&file) == NULL;
        let mode = rustix::fs::fcntl_getfl(descriptor).ok()? & OFlags::RWMODE;
        is_null.then(|| (descriptor.as_raw_fd(), mode))
    })
}

/// What is allowed with the file at a path of the host, if it was inherited.
pub(crate) fn access(path: &Path) -> Option<Access> {
    let there = rustix::fs::stat(path).ok()?;
    let same = |file: &Stat| (file.st_dev, file.st_ino) == (there.st_dev, there.st_ino);
    files().filter(|(_, file, _)| same(file)).map(|(.., access)| access).reduce(Access::and)
}

/// The one of them that is open on the file at a path of the host, for writing.
pub(crate) fn open_on(path: &Path) -> Option<(BorrowedFd<'static>, Access)> {
    let there = rustix::fs::stat(path).ok()?;
    let same = |file: &Stat| (file.st_dev, file.st_ino) == (there.st_dev, there.st_ino);
    let mut found = files().filter(|(_, file, access)| same(file) && access.write);
    found.next().map(|(descriptor, _, access)| (descriptor, access))
}

fn all() -> [BorrowedFd<'static>; 3] {
    [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()]
}

fn kind(file: &Stat) -> FileType {
    FileType::from_raw_mode(file.st_mode)
}

fn reach_of(descriptor: BorrowedFd<'_>, file: &Stat) -> Reach {
    let is_stream = match kind(file) {
        FileType::Directory => return Reach::Directory,
        FileType::Fifo | FileType::Socket => true,
        FileType::RegularFile => Access::of(descriptor).write,
        FileType::CharacterDevice => every_run_has(file) || rustix::termios::isatty(descriptor),
        _ => false,
    };
    if is_stream { Reach::Streams } else { Reach::File }
}

/// `/dev/null`, `zero`, `full`, `random` and `urandom`.
fn every_run_has(file: &Stat) -> bool {
    [NULL, (1, 5), (1, 7), (1, 8), (1, 9)].contains(&device(file))
}

/// `/dev/null`.
const NULL: (u32, u32) = (1, 3);

fn device(file: &Stat) -> (u32, u32) {
    (rustix::fs::major(file.st_rdev), rustix::fs::minor(file.st_rdev))
}
