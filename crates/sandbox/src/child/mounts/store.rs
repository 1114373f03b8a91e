//! [`Store`]: what is private to a run, and what is written for it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use model::{AbsPath, Piece};
use rustix::fs::{Mode, OFlags};

use super::kept::Kept;
use super::tree::{attach, clone_tree, new_tmpfs};
use crate::sys::{self, MOUNT_NODEV, MOUNT_NOSUID, MOUNT_RDONLY};

/// Private storage, without set-uid files and devices like every copy of it: texts, scratch
/// directories, upper layers.
pub(super) struct Store<'a> {
    pub(super) tree: OwnedFd,
    /// What lasts longer than the run.
    pub(super) kept: Option<Kept<'a>>,
    made: AtomicU32,
}

impl<'a> Store<'a> {
    /// A new one that holds this many bytes, which covers a directory.
    pub(super) fn on(place: &Path, size: u64, kept: Option<Kept<'a>>) -> io::Result<Self> {
        let tree = new_tmpfs("0755", size)?;
        attach(tree.as_fd(), rustix::fs::CWD, place)?;
        Ok(Self { tree, kept, made: AtomicU32::new(0) })
    }

    /// The same, with the layer of a plan.
    pub(super) fn with(self, kept: Option<Kept<'_>>) -> Store<'_> {
        Store { tree: self.tree, made: self.made, kept }
    }

    /// A name that nothing else uses.
    pub(super) fn fresh_name(&self) -> String {
        self.made.fetch_add(1, Ordering::Relaxed).to_string()
    }

    /// A directory to write in, in the layer of the workspace where the piece belongs to it.
    pub(super) fn private_directory(&self, piece: &Piece) -> io::Result<OwnedFd> {
        let kept = self.kept.as_ref().filter(|_| piece.is_layered() && piece.directory);
        match kept.map(|kept| kept.directory(&piece.path)) {
            Some(Ok(tree)) => Ok(tree),
            // The disk may be full, or the name too long.
            Some(Err(_)) | None => self.directory(&piece.path),
        }
    }

    /// A directory to write in, with the rights that the one at this path has everywhere.
    pub(super) fn directory(&self, path: &AbsPath) -> io::Result<OwnedFd> {
        let shared = ["/tmp", "/var/tmp", "/dev/shm"];
        let shared = shared.iter().any(|shared| path.as_path() == Path::new(shared));
        let name = self.fresh_name();
        let mode = Mode::from(if shared { 0o1777 } else { 0o755 });
        rustix::fs::mkdirat(&self.tree, name.as_str(), mode)?;
        clone_tree(self.tree.as_fd(), Path::new(&name))
    }

    /// A file to read, or a script to run.
    pub(super) fn text(&self, text: &str) -> io::Result<OwnedFd> {
        let name = self.fresh_name();
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        File::from(self.file(&name, Mode::from(mode))?).write_all(text.as_bytes())?;
        self.frozen(&name)
    }

    /// Something empty without permissions.
    pub(super) fn closed(&self, directory: bool) -> io::Result<OwnedFd> {
        let name = self.fresh_name();
        if directory {
            rustix::fs::mkdirat(&self.tree, name.as_str(), Mode::empty())?;
        } else {
            self.file(&name, Mode::empty())?;
        }
        self.frozen(&name)
    }

    fn file(&self, name: &str, mode: Mode) -> io::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.tree, name, flags, mode)?)
    }

    fn frozen(&self, name: &str) -> io::Result<OwnedFd> {
        let tree = clone_tree(self.tree.as_fd(), Path::new(name))?;
        sys::set_mount(tree.as_fd(), MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV, 0)?;
        Ok(tree)
    }
}
