//! The standard descriptors: what a run has of its caller's, on the mounts of the host.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

/// What can be had through the descriptors that were handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Given {
    /// Nothing but what they give.
    Streams,
    /// One can be opened anew, with other rights.
    File,
    /// What is below one can be reached.
    Directory,
}

/// What a descriptor lets its holder do with a file or a fifo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Leave {
    pub(crate) read: bool,
    /// Also where it is opened to be added to: its holder can change that.
    pub(crate) write: bool,
}

impl Leave {
    fn of(descriptor: BorrowedFd<'_>) -> Self {
        // One that nothing is known about gives nothing.
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

/// The most that was handed over.
pub(crate) fn given() -> Given {
    let all = all().map(|descriptor| match rustix::fs::fstat(descriptor) {
        Ok(file) => given_by(descriptor, &file),
        // One that is not there leads nowhere.
        Err(Errno::BADF) => Given::Streams,
        Err(_) => Given::Directory,
    });
    all.into_iter().max().unwrap_or(Given::Directory)
}

/// The files and fifos among them, with what can be done to each.
pub(crate) fn files() -> impl Iterator<Item = (BorrowedFd<'static>, Stat, Leave)> {
    all().into_iter().filter_map(|descriptor| {
        let file = rustix::fs::fstat(descriptor).ok()?;
        let has_name = matches!(kind(&file), FileType::RegularFile | FileType::Fifo);
        has_name.then(|| (descriptor, file, Leave::of(descriptor)))
    })
}

/// Those that are `/dev/null`, by number, with how they are opened.
pub(crate) fn nulls() -> impl Iterator<Item = (i32, OFlags)> {
    all().into_iter().filter_map(|descriptor| {
        let file = rustix::fs::fstat(descriptor).ok()?;
        let is_null = kind(&file) == FileType::CharacterDevice && device(&file) == NULL;
        let mode = rustix::fs::fcntl_getfl(descriptor).ok()? & OFlags::RWMODE;
        is_null.then(|| (descriptor.as_raw_fd(), mode))
    })
}

/// What can be done to the file at a path of the host, if it was handed over.
pub(crate) fn leave(path: &Path) -> Option<Leave> {
    let there = rustix::fs::stat(path).ok()?;
    let same = |file: &Stat| (file.st_dev, file.st_ino) == (there.st_dev, there.st_ino);
    files().filter(|(_, file, _)| same(file)).map(|(.., leave)| leave).reduce(Leave::and)
}

fn all() -> [BorrowedFd<'static>; 3] {
    [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()]
}

fn kind(file: &Stat) -> FileType {
    FileType::from_raw_mode(file.st_mode)
}

fn given_by(descriptor: BorrowedFd<'_>, file: &Stat) -> Given {
    let is_stream = match kind(file) {
        FileType::Directory => return Given::Directory,
        FileType::Fifo | FileType::Socket => true,
        FileType::RegularFile => Leave::of(descriptor).write,
        FileType::CharacterDevice => every_run_has(file) || rustix::termios::isatty(descriptor),
        _ => false,
    };
    if is_stream { Given::Streams } else { Given::File }
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
