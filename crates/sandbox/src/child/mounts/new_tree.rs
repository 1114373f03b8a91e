//! [`NewTree`]: the tree while two threads mount pieces in it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use model::{AbsPath, Base, Kind, Piece, Plan};
use rustix::fs::{Mode, OFlags};

use super::store::Store;
use super::tree::{find, find_below, relative, way};
use super::{Placement, is_private, with_parents};
use crate::sys;

#[derive(Clone)]
pub(super) struct NewTree<'a> {
    pub(super) plan: &'a Plan,
    pub(super) store: Arc<Store<'a>>,
    pub(super) root: Arc<OwnedFd>,
    /// Whether the root is a plain directory, which no tripwire watches.
    pub(super) unwatched: bool,
}

/// Whether a piece is mounted on what earlier runs may have changed.
fn is_layered(placement: &Placement<'_>) -> bool {
    placement.parent.is_some_and(Piece::is_layered)
}

fn is_directory(place: BorrowedFd<'_>) -> io::Result<bool> {
    let mode = rustix::fs::fstat(place)?.st_mode;
    Ok(rustix::fs::FileType::from_raw_mode(mode).is_dir())
}

impl NewTree<'_> {
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Brings every mount point on the root into the kernel's cache. One listing brings all names of
    /// a directory, while each lookup takes a round trip to the supervisor. Single names are looked
    /// up here all the same: this thread shares a processor with the supervisor, and from another
    /// one the round trip takes eight times as long.
    pub(super) fn fill_cache(&self) {
        // How many names are needed of each directory.
        let mut ways = BTreeMap::new();
        let mut places = Vec::new();
        for Placement { piece, parent } in with_parents(self.plan) {
            let top = match parent {
                None => AbsPath::root(),
                Some(parent) if parent.kind == Kind::Outside => parent.path.clone(),
                Some(_) => continue,
            };
            places.push(&piece.path);
            let mut way = piece.path.parent();
            loop {
                let names = ways.entry(way.clone()).or_insert(0_u32);
                *names += 1;
                if *names > 1 || way == top {
                    break;
                }
                way = way.parent();
            }
        }
        ways.retain(|_, names| *names > 1);
        for way in ways.keys() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(self.root(), relative(way), flags, Mode::empty());
            if let Ok(dir) = opened {
                // Reading the first name brings all that fit into one page; that is enough.
                let mut buffer = Vec::with_capacity(8 * 1024);
                let _ = rustix::fs::RawDir::new(dir, buffer.spare_capacity_mut()).next();
            }
        }
        for place in places.into_iter().filter(|place| !ways.contains_key(&place.parent())) {
            let _ = find(self.root(), place);
        }
        // Every program's loader is found through these.
        for link in &self.plan.links {
            let way = relative(&link.path);
            if way.as_os_str().as_bytes().starts_with(b"lib") {
                let _ = rustix::fs::readlinkat(self.root(), way, Vec::new());
            }
        }
    }

    /// Makes a plain root read-only.
    pub(super) fn seal(&self) -> io::Result<()> {
        if !self.unwatched {
            return Ok(());
        }
        if self.plan.base == Base::Nothing {
            sys::freeze_mount(self.root())?;
        }
        for piece in self.plan.pieces.iter().filter(|piece| piece.kind == Kind::Outside) {
            sys::freeze_mount(find(self.root(), &piece.path)?.as_fd())?;
        }
        Ok(())
    }

    /// The mount point of a piece, created where it is inside something private.
    pub(super) fn target(&self, placement: &Placement<'_>) -> io::Result<OwnedFd> {
        match find(self.root(), &placement.piece.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.can_create(placement) => {
                self.create(placement.piece)
            }
            // What a run has left in the layer may be in the way. Then the host's does not show there.
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) && is_layered(placement) => {
                Err(io::ErrorKind::NotADirectory.into())
            }
            found => {
                let found = found?;
                if is_layered(placement)
                    && is_directory(found.as_fd())? != placement.piece.directory
                {
                    return Err(io::ErrorKind::NotADirectory.into());
                }
                Ok(found)
            }
        }
    }

    /// Whether a mount point can be created in what contains a piece.
    fn can_create(&self, placement: &Placement<'_>) -> bool {
        match placement.parent {
            Some(parent) => is_private(&parent.kind) || parent.kind == Kind::Outside,
            None => self.plan.base == Base::Nothing,
        }
    }

    /// Creates a mount point for a piece.
    fn create(&self, piece: &Piece) -> io::Result<OwnedFd> {
        let (parent, name) = way(self.root(), &piece.path)?;
        if piece.directory {
            rustix::fs::mkdirat(&parent, name, Mode::from(0o755))?;
            return find_below(parent.as_fd(), name);
        }
        // Not for writing: the root could not be made read-only while this is open.
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&parent, name, flags, Mode::from(0o644))?)
    }
}
