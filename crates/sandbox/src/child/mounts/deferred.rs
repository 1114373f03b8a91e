//! [`Deferred`]: the pieces that only have to be mounted when the command starts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use model::{Kind, Piece, Plan};
use rustix::mount::UnmountFlags;

use super::kept::Kept;
use super::layer::{Common, InMemory};
use super::materials::{Item, Material, material};
use super::new_tree::NewTree;
use super::{At, Placement, attach_to, do_without, is_gone, is_protection, only_private};
use crate::child::landlock::LandlockRules;
use crate::failure::{Failed, Step};

/// The deferred pieces, with their sources.
pub(crate) struct Deferred<'a> {
    pub(super) items: Vec<Item<'a>>,
    /// Whether the host's paths still lead to the sources.
    pub(super) clear: bool,
    pub(super) new_tree: NewTree<'a>,
}

/// The same, each with a tree that is ready to be attached.
pub(crate) struct Prepared<'a> {
    new_tree: NewTree<'a>,
    trees: Vec<(usize, Placement<'a>, OwnedFd)>,
    missing: Vec<String>,
}

/// The same, attached.
pub(crate) struct Attached<'a> {
    new_tree: NewTree<'a>,
    /// The trees that the supervisor needs a view of, by the index of their piece.
    pub(crate) views: Vec<(usize, OwnedFd)>,
    missing: Vec<String>,
}

impl<'a> Deferred<'a> {
    /// Creates the trees, and adds their Landlock rules. After this the old root is not needed any
    /// more.
    pub(crate) fn prepare(
        self,
        mut rules: Option<&mut LandlockRules<'_>>,
    ) -> Result<Prepared<'a>, Failed> {
        let store = &self.new_tree.store;
        let shared = self.shared_in_memory();
        let (mut trees, mut missing) = (Vec::new(), Vec::new());
        for Item { number, placement, source } in self.items {
            match material(store, placement.piece, source, shared.as_ref()) {
                Ok(Material::Tree(tree)) => {
                    if let Some(rules) = &mut rules {
                        rules.allow(placement.piece, tree.as_fd())?;
                    }
                    trees.push((number, placement, tree));
                }
                // Nothing is mounted at the paths of these pieces.
                Ok(Material::Here) => {}
                Err(error) => missing.push(without(self.new_tree.plan, &placement, error)?),
            }
        }
        Ok(Prepared { new_tree: self.new_tree, trees, missing })
    }

    /// One layer for the directories of which nothing is kept.
    fn shared_in_memory(&self) -> Option<InMemory<'a>> {
        let store = &self.new_tree.store;
        let lasts = |piece: &Piece| store.kept.as_ref().is_some_and(|kept| kept.has(piece));
        let overlays = self.items.iter().map(|item| item.placement.piece);
        let overlays = overlays.filter(|piece| piece.kind == Kind::Overlay && !lasts(piece));
        let common = Common::of(overlays.filter(|_| self.clear).map(|piece| &piece.path))?;
        InMemory::of(common, store).ok()
    }
}

impl<'a> Prepared<'a> {
    pub(crate) fn attach(mut self) -> Result<Attached<'a>, Failed> {
        let mut attached = Vec::with_capacity(self.trees.len());
        for (number, placement, tree) in self.trees {
            let target = self.new_tree.target(&placement);
            match target.and_then(|target| attach_to(tree.as_fd(), target.as_fd())) {
                Ok(()) => attached.push((number, tree)),
                Err(error) => {
                    self.missing.push(without(self.new_tree.plan, &placement, error)?);
                }
            }
        }
        let views = only_private(self.new_tree.plan, attached);
        Ok(Attached { views, missing: self.missing, new_tree: self.new_tree })
    }
}

/// What is missing without a piece. What hides something must be mounted.
fn without(plan: &Plan, placement: &Placement<'_>, error: io::Error) -> Result<String, Failed> {
    let path = &placement.piece.path;
    if is_protection(plan, placement) && !is_gone(&error) {
        return Err(Failed::new(Step::Protect, error).about(path.to_string()));
    }
    do_without(path, error)
}

impl Attached<'_> {
    /// When the tree is the root and complete: seals it, and detaches the old root. The kernel waits
    /// until no other path walk uses that. Returns what could not be mounted.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, Failed> {
        let kept = self.new_tree.store.kept.as_ref();
        self.missing.extend(kept.and_then(Kept::failure));
        self.new_tree.seal().at(Step::Root)?;
        rustix::mount::unmount(".", UnmountFlags::DETACH).at(Step::Root)?;
        Ok(self.missing)
    }
}
