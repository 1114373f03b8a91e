//! [`Materials`]: what the pieces of a plan are made of, each ready to be put into its place.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use model::{Kind, Plan};

use super::layer::{Common, Shared, layered};
use super::store::Store;
use super::tree::{clone_tree_of, processes, terminals};
use super::{Laid, needs_source};
use crate::sys::{self, MOUNT_NODEV, MOUNT_NOSUID, MOUNT_RDONLY};

/// What a piece is made of.
pub(crate) enum Material {
    Tree(OwnedFd),
    /// What already lies at its place.
    Here,
    /// The host does not have it, and that has been told.
    Missing,
    Broken(io::Error),
}

/// What was taken of the host, and where the rest comes from.
pub(crate) struct Materials<'a> {
    pub(super) plan: &'a Plan,
    pub(super) laid: Vec<Laid<'a>>,
    /// The host's trees, taken before the workbench covered anything.
    pub(super) sources: Vec<Option<OwnedFd>>,
    pub(super) common: Option<Common<'a>>,
    pub(super) store: Arc<Store>,
}

impl Materials<'_> {
    /// Makes them, in the order of the pieces, as long as somebody takes them.
    pub(crate) fn make(mut self, to: &Sender<Material>) {
        let shared = self.common.take().and_then(|common| Shared::of(common, &self.store).ok());
        let sources = std::mem::take(&mut self.sources);
        for (laid, source) in std::iter::zip(&self.laid, sources) {
            if to.send(self.material(laid, source, shared.as_ref())).is_err() {
                return;
            }
        }
    }

    fn material(
        &self,
        laid: &Laid<'_>,
        source: Option<OwnedFd>,
        shared: Option<&Shared<'_>>,
    ) -> Material {
        let piece = laid.piece;
        let wanting = source.is_none();
        if wanting && needs_source(self.plan, piece, laid.parent) {
            return Material::Missing;
        }
        let made = match (&piece.kind, source) {
            (Kind::Read, Some(tree)) => with(tree, MOUNT_RDONLY),
            (Kind::Write, Some(tree)) => with(tree, 0),
            // The attributes of a mount mean nothing for the device itself.
            (Kind::Device, Some(tree)) => Ok(tree),
            (Kind::Overlay, Some(lower)) => match shared.filter(|shared| shared.has(&piece.path)) {
                Some(shared) => shared.part(&piece.path),
                None => self.overlay(&lower),
            },
            (Kind::Overlay | Kind::Scratch, _) => self.store.directory(&piece.path),
            (Kind::Text(text), _) => self.store.text(text),
            (Kind::Processes, _) => processes(),
            (Kind::Terminals, _) => terminals(),
            (Kind::Read | Kind::Write | Kind::Device, None)
            | (Kind::Pinned | Kind::Closed | Kind::Outside, _) => return Material::Here,
        };
        made.map_or_else(Material::Broken, Material::Tree)
    }

    /// The host's directory with a private layer on top. Where the kernel cannot do that, the
    /// directory can be read only.
    fn overlay(&self, lower: &OwnedFd) -> io::Result<OwnedFd> {
        layered(lower.as_fd(), &self.store)
            .or_else(|_| with(clone_tree_of(lower.as_fd())?, MOUNT_RDONLY))
    }
}

/// A tree without set-uid files and devices, and with what else is said.
fn with(tree: OwnedFd, attributes: u64) -> io::Result<OwnedFd> {
    sys::set_mount(tree.as_fd(), attributes | MOUNT_NOSUID | MOUNT_NODEV, 0)?;
    Ok(tree)
}
