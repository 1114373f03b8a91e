//! The trees that the pieces of a plan are mounted from.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use model::{Kind, Piece};
use rustix::fs::OFlags;

use super::Placement;
use super::layer::{InMemory, layered};
use super::store::Store;
use super::tree::{clone_tree_of, open_without_links, processes, terminals};
use crate::sys::{self, MOUNT_NODEV, MOUNT_NOSUID, MOUNT_RDONLY};

/// A piece, its index in the plan, and its source.
pub(super) struct Item<'a> {
    pub(super) number: usize,
    pub(super) placement: Placement<'a>,
    pub(super) source: Source,
}

/// What the host has for a piece.
pub(super) enum Source {
    /// None: it is created, or comes from what is mounted there already.
    None,
    /// What is at its path.
    Host,
    /// The same, opened before something was mounted over it. For what is closed, what to mount.
    Taken(OwnedFd),
    /// It is mounted where it belongs.
    Mounted(OwnedFd),
}

/// Opens what the host has for a piece. Dropping a cloned mount is slow, so an overlay gets none: it
/// creates its own.
pub(super) fn take(piece: &Piece) -> io::Result<OwnedFd> {
    let place = open_without_links(piece.path.as_path(), OFlags::PATH | OFlags::NOFOLLOW)?;
    if piece.kind == Kind::Overlay { Ok(place) } else { clone_tree_of(place.as_fd()) }
}

/// What a piece is mounted from.
pub(super) enum Material {
    Tree(OwnedFd),
    /// What is mounted at its path already.
    Here,
}

/// Creates what a piece is mounted from.
pub(super) fn material(
    store: &Store<'_>,
    piece: &Piece,
    source: Source,
    shared: Option<&InMemory<'_>>,
) -> io::Result<Material> {
    let source = match source {
        Source::None => None,
        Source::Host => Some(take(piece)?),
        Source::Taken(tree) | Source::Mounted(tree) => Some(tree),
    };
    let tree = match (&piece.kind, source) {
        (Kind::Read, Some(tree)) => with(tree, MOUNT_RDONLY),
        (Kind::Write, Some(tree)) => with(tree, 0),
        // A device can be written all the same; its permissions and times cannot be changed.
        (Kind::Device, Some(tree)) => {
            sys::set_mount(tree.as_fd(), MOUNT_RDONLY | MOUNT_NOSUID, 0).map(|()| tree)
        }
        (Kind::Overlay, Some(lower)) => {
            let kept = || store.kept.as_ref().and_then(|kept| kept.part(piece, store));
            let in_memory = || shared.and_then(|shared| shared.part(piece));
            match kept().or_else(in_memory) {
                Some(Ok(part)) => Ok(part),
                Some(Err(_)) | None => overlay(store, &lower),
            }
        }
        // Made before there was a plan; or a node of the tripwire, or what takes its place.
        (Kind::Processes | Kind::Scratch | Kind::Closed, Some(tree)) => Ok(tree),
        (Kind::Overlay | Kind::Scratch, _) => store.private_directory(piece),
        (Kind::Text(text), _) => store.text(text),
        (Kind::Processes, None) => processes(),
        (Kind::Terminals, _) => terminals(),
        (Kind::Read | Kind::Write | Kind::Device, None)
        | (Kind::Pinned | Kind::Closed | Kind::Outside, _) => return Ok(Material::Here),
    };
    Ok(Material::Tree(tree?))
}

/// The host's directory with a private layer on top. Where the kernel cannot do that, the
/// directory can be read only.
fn overlay(store: &Store<'_>, lower: &OwnedFd) -> io::Result<OwnedFd> {
    layered(lower.as_fd(), store).or_else(|_| with(clone_tree_of(lower.as_fd())?, MOUNT_RDONLY))
}

/// A tree without set-uid files and devices, and with what else is said.
fn with(tree: OwnedFd, attributes: u64) -> io::Result<OwnedFd> {
    sys::set_mount(tree.as_fd(), attributes | MOUNT_NOSUID | MOUNT_NODEV, 0)?;
    Ok(tree)
}
