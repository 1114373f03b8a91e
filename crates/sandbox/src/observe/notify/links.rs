//! Symbolic links on paths where a process of the run sees something else than the supervisor.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use model::{AbsPath, Kind, Plan};
use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::read::Caller;
use crate::observe::program::innermost;
use crate::supervisor::views::Views;

/// The links that a process of the run finds there.
pub(super) struct Links<'a> {
    plan: &'a Plan,
    processes: Option<&'a OwnedFd>,
    views: &'a Views,
    pid: u32,
    /// The last link of `/proc` to a descriptor of the process itself: where it leads, and the
    /// descriptor.
    descriptor: RefCell<Option<(AbsPath, i32)>>,
}

impl<'a> Links<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        processes: Option<&'a OwnedFd>,
        views: &'a Views,
        pid: u32,
    ) -> Self {
        Self { plan, processes, views, pid, descriptor: RefCell::default() }
    }

    /// The descriptor that a walk to this path ended with.
    pub(super) fn descriptor(&self, path: &AbsPath) -> Option<i32> {
        let last = self.descriptor.borrow();
        last.as_ref().filter(|(target, _)| target == path).map(|(_, descriptor)| *descriptor)
    }

    /// Remembers a link to a descriptor of the process itself.
    fn remember(&self, below: &Path, target: &Path) {
        let mut parts = below.iter().map(|part| part.to_str().unwrap_or_default());
        let process = parts.next().and_then(|part| part.parse().ok());
        let rest: Vec<_> = parts.collect();
        let ([.., "fd", number], Some(process)) = (rest.as_slice(), process) else { return };
        let own = || Caller::new(self.pid).number_inside() == Some(process);
        let place = Path::new("/proc").join(below);
        let place = place.parent().unwrap_or(Path::new("/proc"));
        if let (Ok(number), true) = (number.parse(), own())
            && let Ok(target) = AbsPath::lexical(&place.join(target))
        {
            *self.descriptor.borrow_mut() = Some((target, number));
        }
    }

    pub(super) fn at(&self, path: &AbsPath) -> Option<io::Result<PathBuf>> {
        let bytes = path.as_path().as_os_str().as_bytes();
        if let Some(b"" | [b'/', ..]) = bytes.strip_prefix(b"/proc") {
            return self.of_process(path.as_path().strip_prefix("/proc").ok()?);
        }
        if let Some((tree, below)) = self.views.private(path) {
            return Some(read_link_at(tree, below));
        }
        let piece = self.plan.piece(path)?;
        match piece.kind {
            Kind::Scratch | Kind::Overlay => {}
            Kind::Text(_) | Kind::Device | Kind::Terminals => return Some(no_link()),
            _ => return None,
        }
        let below = path.as_path().strip_prefix(piece.path.as_path()).ok()?;
        Some(match self.views.tree(&piece.path) {
            Some(view) if !below.as_os_str().is_empty() => read_link_at(view.as_fd(), below),
            _ => no_link(),
        })
    }

    /// A descriptor or a directory of a process is a link for the process itself.
    fn of_process(&self, below: &Path) -> Option<io::Result<PathBuf>> {
        let first = below.iter().next()?;
        let whole = below.iter().nth(1).is_none();
        if whole && (first == "self" || first == "thread-self") {
            let status = match std::fs::read_to_string(format!("/proc/{}/status", self.pid)) {
                Ok(status) => status,
                Err(error) => return Some(Err(error)),
            };
            let (process, thread) = (innermost(&status, "NStgid:")?, innermost(&status, "NSpid:")?);
            return Some(Ok(if first == "self" {
                process.to_string().into()
            } else {
                format!("{process}/task/{thread}").into()
            }));
        }
        let target = match self.processes {
            Some(view) => read_link_at(view.as_fd(), below),
            None => std::fs::read_link(Path::new("/proc").join(below)),
        };
        if let Ok(target) = &target {
            self.remember(below, target);
        }
        Some(target)
    }
}

fn no_link() -> io::Result<PathBuf> {
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

/// Reads a link without following others: the run can create one meanwhile, and it may lead to the
/// tripwire, which this thread serves.
fn read_link_at(directory: BorrowedFd<'_>, path: &Path) -> io::Result<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return no_link() };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent = rustix::fs::openat2(
        directory,
        parent,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
    )?;
    let target = rustix::fs::readlinkat(&parent, name, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}
