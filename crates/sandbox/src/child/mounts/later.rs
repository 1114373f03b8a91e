//! [`Later`]: the pieces that only have to lie there when the command starts.

use std::os::fd::{AsFd, OwnedFd};

use model::Kind;
use rustix::mount::UnmountFlags;

use super::growing::Growing;
use super::layer::{Common, Shared};
use super::materials::{Item, Material, material};
use super::{At, Laid, attach_to, do_without, only_private};
use crate::child::landlock::LandlockRules;
use crate::failure::{Failed, Step};

/// Pieces that can wait, as they were taken of the host.
pub(crate) struct Later<'a> {
    pub(super) items: Vec<Item<'a>>,
    /// Whether the host's paths still lead where they did.
    pub(super) clear: bool,
    pub(super) growing: Growing<'a>,
}

/// The same, each ready to be put into its place.
pub(crate) struct Stock<'a> {
    growing: Growing<'a>,
    trees: Vec<(usize, Laid<'a>, OwnedFd)>,
    missing: Vec<String>,
}

/// The same, where they belong.
pub(crate) struct Placed<'a> {
    growing: Growing<'a>,
    /// What is private to the run, by the number of its piece.
    pub(crate) private: Vec<(usize, OwnedFd)>,
    missing: Vec<String>,
}

impl<'a> Later<'a> {
    /// Makes everything that is to be put there, and allows what it allows. After this the old root
    /// is not needed any more.
    pub(crate) fn make(
        self,
        mut rights: Option<&mut LandlockRules<'_>>,
    ) -> Result<Stock<'a>, Failed> {
        let store = &self.growing.store;
        let overlays = self.items.iter().filter(|item| item.laid.piece.kind == Kind::Overlay);
        let overlays = overlays.filter(|_| self.clear);
        let common = Common::of(overlays.map(|item| &item.laid.piece.path));
        let shared = common.and_then(|common| Shared::of(common, store).ok());
        let (mut trees, mut missing) = (Vec::new(), Vec::new());
        for Item { number, laid, source } in self.items {
            match material(store, laid.piece, source, shared.as_ref()) {
                Ok(Material::Tree(tree)) => {
                    if let Some(rights) = &mut rights {
                        rights.allow(laid.piece, tree.as_fd())?;
                    }
                    trees.push((number, laid, tree));
                }
                // Nothing lies where these are to lie.
                Ok(Material::Here) => {}
                Err(error) => missing.push(do_without(&laid.piece.path, error)?),
            }
        }
        Ok(Stock { growing: self.growing, trees, missing })
    }
}

impl<'a> Stock<'a> {
    pub(crate) fn place(mut self) -> Result<Placed<'a>, Failed> {
        let mut placed = Vec::with_capacity(self.trees.len());
        for (number, laid, tree) in self.trees {
            let target = self.growing.target(&laid);
            match target.and_then(|target| attach_to(tree.as_fd(), target.as_fd())) {
                Ok(()) => placed.push((number, tree)),
                Err(error) => self.missing.push(do_without(&laid.piece.path, error)?),
            }
        }
        let private = only_private(self.growing.plan, placed);
        Ok(Placed { private, missing: self.missing, growing: self.growing })
    }
}

impl Placed<'_> {
    /// When the tree is the root and nothing more is put into it: closes it, and lets go of the old
    /// root. That takes a moment, until nobody is on the way through it. Says what could not be put
    /// there.
    pub(crate) fn finish(self) -> Result<Vec<String>, Failed> {
        self.growing.seal().at(Step::Root)?;
        rustix::mount::unmount(".", UnmountFlags::DETACH).at(Step::Root)?;
        Ok(self.missing)
    }
}
