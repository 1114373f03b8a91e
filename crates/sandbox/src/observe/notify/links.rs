//! Symbolic links on paths where a process of the run sees something else than the supervisor.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use model::{AbsPath, Kind, Plan};
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::observe::program::innermost;

/// The links that a process of the run finds there.
pub(super) struct Links<'a> {
    pub(super) plan: &'a Plan,
    pub(super) processes: Option<&'a OwnedFd>,
    pub(super) private: &'a [(AbsPath, OwnedFd)],
    pub(super) pid: u32,
}

impl Links<'_> {
    pub(super) fn at(&self, path: &AbsPath) -> Option<io::Result<PathBuf>> {
        let bytes = path.as_path().as_os_str().as_bytes();
        if let Some(b"" | [b'/', ..]) = bytes.strip_prefix(b"/proc") {
            return self.of_process(path.as_path().strip_prefix("/proc").ok()?);
        }
        let piece = self.plan.piece(path)?;
        match piece.kind {
            Kind::Scratch | Kind::Overlay => {}
            Kind::Text(_) | Kind::Device | Kind::Terminals => return Some(no_link()),
            _ => return None,
        }
        let below = path.as_path().strip_prefix(piece.path.as_path()).ok()?;
        let view = self.private.iter().find(|(place, _)| *place == piece.path);
        Some(match view {
            Some((_, view)) if !below.as_os_str().is_empty() => read_link_at(view, below),
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
        Some(match self.processes {
            Some(view) => read_link_at(view, below),
            None => std::fs::read_link(Path::new("/proc").join(below)),
        })
    }
}

fn no_link() -> io::Result<PathBuf> {
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

/// Reads a link without following others: the run can create one meanwhile, and it may lead to the
/// tripwire, which this thread serves.
fn read_link_at(directory: &OwnedFd, path: &Path) -> io::Result<PathBuf> {
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
