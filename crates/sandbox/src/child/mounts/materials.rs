//! What the pieces of a plan are made of.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use model::{Kind, Piece};
use rustix::fs::OFlags;

use super::Laid;
use super::layer::{Shared, layered};
use super::store::Store;
use super::tree::{clone_tree_of, open_without_links, processes, terminals};
use crate::sys::{self, MOUNT_NODEV, MOUNT_NOSUID, MOUNT_RDONLY};

/// A piece and its number in the plan.
pub(super) struct Item<'a> {
    pub(super) number: usize,
    pub(super) laid: Laid<'a>,
    pub(super) source: Source,
}

/// What the host has for a piece.
pub(super) enum Source {
    /// Nothing: it is made, or comes from what already lies there.
    None,
    /// What lies at its path.
    Host,
    /// The same, taken before something covered it.
    Taken(OwnedFd),
}

/// Takes what the host has for a piece. Giving up the copy of a mount takes long, so a layer gets
/// none: it makes its own.
pub(super) fn take(piece: &Piece) -> io::Result<OwnedFd> {
    let place = open_without_links(piece.path.as_path(), OFlags::PATH | OFlags::NOFOLLOW)?;
    if piece.kind == Kind::Overlay { Ok(place) } else { clone_tree_of(place.as_fd()) }
}

/// What a piece is made of.
pub(super) enum Material {
    Tree(OwnedFd),
    /// What already lies at its place.
    Here,
}

/// Makes what a piece is made of.
pub(super) fn material(
    store: &Store,
    piece: &Piece,
    source: Source,
    shared: Option<&Shared<'_>>,
) -> io::Result<Material> {
    let source = match source {
        Source::None => None,
        Source::Host => Some(take(piece)?),
        Source::Taken(tree) => Some(tree),
    };
    let tree = match (&piece.kind, source) {
        (Kind::Read, Some(tree)) => with(tree, MOUNT_RDONLY),
        (Kind::Write, Some(tree)) => with(tree, 0),
        // A device can be written all the same; its permissions and times cannot be changed.
        (Kind::Device, Some(tree)) => {
            sys::set_mount(tree.as_fd(), MOUNT_RDONLY | MOUNT_NOSUID, 0).map(|()| tree)
        }
        (Kind::Overlay, Some(lower)) => match shared.filter(|shared| shared.has(&piece.path)) {
            Some(shared) => shared.part(&piece.path).or_else(|_| overlay(store, &lower)),
            None => overlay(store, &lower),
        },
        (Kind::Overlay | Kind::Scratch, _) => store.directory(&piece.path),
        (Kind::Text(text), _) => store.text(text),
        (Kind::Processes, _) => processes(),
        (Kind::Terminals, _) => terminals(),
        (Kind::Read | Kind::Write | Kind::Device, None)
        | (Kind::Pinned | Kind::Closed | Kind::Outside, _) => return Ok(Material::Here),
    };
    Ok(Material::Tree(tree?))
}

/// The host's directory with a private layer on top. Where the kernel cannot do that, the
/// directory can be read only.
fn overlay(store: &Store, lower: &OwnedFd) -> io::Result<OwnedFd> {
    layered(lower.as_fd(), store).or_else(|_| with(clone_tree_of(lower.as_fd())?, MOUNT_RDONLY))
}

/// A tree without set-uid files and devices, and with what else is said.
fn with(tree: OwnedFd, attributes: u64) -> io::Result<OwnedFd> {
    sys::set_mount(tree.as_fd(), attributes | MOUNT_NOSUID | MOUNT_NODEV, 0)?;
    Ok(tree)
}
