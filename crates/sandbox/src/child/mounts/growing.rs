//! [`Growing`]: the tree while pieces are put into it, by whoever has one.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use model::{AbsPath, Base, Kind, Piece, Plan};
use rustix::fs::{Mode, OFlags};

use super::store::Store;
use super::tree::{find, find_below, relative, way};
use super::{Laid, is_private, with_parents};
use crate::sys;

#[derive(Clone)]
pub(super) struct Growing<'a> {
    pub(super) plan: &'a Plan,
    pub(super) store: Arc<Store>,
    pub(super) root: Arc<OwnedFd>,
    /// Whether nobody sees what is tried on the floor, and nobody else refuses it.
    pub(super) unwatched: bool,
}

impl Growing<'_> {
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Brings every place on the floor into the kernel's cache. One listing brings all names of a
    /// directory; looking each of them up takes a round trip to the supervisor apiece. What lies
    /// alone is looked up here all the same: this thread shares a processor with the supervisor, and
    /// from another the trip takes eight times as long.
    pub(super) fn list_ways(&self) {
        // How many names are needed of each.
        let mut ways = BTreeMap::new();
        let mut places = Vec::new();
        for Laid { piece, parent } in with_parents(self.plan) {
            let floor = match parent {
                None => AbsPath::root(),
                Some(parent) if parent.kind == Kind::Outside => parent.path.clone(),
                Some(_) => continue,
            };
            places.push(&piece.path);
            let mut way = piece.path.parent();
            loop {
                let names = ways.entry(way.clone()).or_insert(0_u32);
                *names += 1;
                if *names > 1 || way == floor {
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
                // Asking for the first name brings all that fit; more are not worth a trip.
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

    /// Lets nothing more come to the floor.
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

    /// The place of a piece, made where it lies on private ground.
    pub(super) fn target(&self, laid: &Laid<'_>) -> io::Result<OwnedFd> {
        match find(self.root(), &laid.piece.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_ours(laid) => {
                self.make(laid.piece)
            }
            found => found,
        }
    }

    /// Whether what a piece lies in is ours to add to.
    fn is_ours(&self, laid: &Laid<'_>) -> bool {
        match laid.parent {
            Some(parent) => is_private(&parent.kind) || parent.kind == Kind::Outside,
            None => self.plan.base == Base::Nothing,
        }
    }

    /// Makes something for a piece to lie on.
    fn make(&self, piece: &Piece) -> io::Result<OwnedFd> {
        let (parent, name) = way(self.root(), &piece.path)?;
        if piece.directory {
            rustix::fs::mkdirat(&parent, name, Mode::from(0o755))?;
            return find_below(parent.as_fd(), name);
        }
        // Not for writing: the floor could not be sealed while somebody has a copy of this.
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&parent, name, flags, Mode::from(0o644))?)
    }
}
