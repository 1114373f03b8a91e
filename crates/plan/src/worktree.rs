//! A linked worktree: its commits go to its own branch, and the rest of the repository cannot be
//! changed.

use model::{AbsPath, Cause, Kind, Level, WorktreePart};

use super::Layout;
use policy::Context;

/// The repository of a linked worktree, as it was when the run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The directory that all worktrees share.
    pub common: AbsPath,
    /// The worktree's own part of it.
    pub own: AbsPath,
    /// What its `HEAD` says.
    pub head: String,
    /// The directories that hold the branch's reference and its log.
    pub branch_dirs: Vec<AbsPath>,
    /// Those of them that do not exist, because git packed their references.
    pub missing: Vec<AbsPath>,
    /// The branch's reference and its log.
    pub own_refs: Vec<AbsPath>,
    /// Everything else in those directories, with whether it is a directory.
    pub others: Vec<(AbsPath, bool)>,
    /// Directories and files that exist, with whether they are directories.
    pub present: Vec<(AbsPath, bool)>,
}

/// Below the shared directory: what a commit writes.
pub const WRITTEN: &[&str] = &["objects"];
/// Below that: what no commit needs to write.
pub const KEPT: &[&str] = &["objects/pack", "objects/info"];
/// In the worktree's own directory: what says which repository it belongs to, and what may name
/// programs.
pub const OWN_KEPT: &[&str] = &["commondir", "gitdir", "config.worktree", "modules"];

impl Worktree {
    /// Whether git writes a path when it works in this worktree; `None` for paths outside it.
    pub fn writes(&self, path: &AbsPath) -> Option<bool> {
        if let Ok(below) = path.as_path().strip_prefix(self.own.as_path()) {
            // The directory itself is a mount point, so it cannot be replaced.
            let first = below.iter().next().unwrap_or_default();
            return Some(!OWN_KEPT.iter().any(|kept| first == *kept));
        }
        if !self.branch_dirs.iter().any(|dir| path.is_within(dir)) {
            return None;
        }
        let is_its = |own: &AbsPath| {
            let mut lock = own.as_path().as_os_str().to_owned();
            lock.push(".lock");
            path == own || path.as_path().as_os_str() == lock
        };
        Some(self.branch_dirs.contains(path) || self.own_refs.iter().any(is_its))
    }

    /// The parts of the repository that a run sees, and those that it can write.
    pub fn places(&self) -> Vec<AbsPath> {
        let written = WRITTEN.iter().map(|name| self.common.join(name.as_ref()));
        let whole = [self.common.clone(), self.own.clone()];
        whole.into_iter().chain(written).chain(self.branch_dirs.iter().cloned()).collect()
    }

    /// Whether a path is a finished object, or a directory of objects. Git writes a new object
    /// under another name first.
    pub fn is_object(&self, path: &AbsPath) -> bool {
        let name = path.as_path().file_name().unwrap_or_default();
        let coming = name.as_encoded_bytes().starts_with(b"tmp_");
        let among = |place: &&str| path.is_within(&self.common.join(place.as_ref()));
        !coming && WRITTEN.iter().any(among)
    }
}

pub(super) fn put(layout: &mut Layout, worktree: &Worktree, context: &Context, level: Level) {
    let Worktree { common, own, .. } = worktree;
    // In a bare repository, other checkouts may be inside it.
    let within = |other: &&AbsPath| other.is_within(common) && !context.workspace.is_within(other);
    for other in context.closed.iter().filter(within) {
        layout.put(other, Kind::Closed, true, Cause::OtherCheckout);
    }
    if level < Level::Readwrite {
        for path in [common, own] {
            layout.put(path, Kind::Read, true, Cause::Worktree(WorktreePart::Common));
        }
        return;
    }
    let kind_of = |path: &AbsPath| {
        worktree.present.iter().find(|(known, _)| known == path).map(|(_, directory)| *directory)
    };
    layout.put(common, Kind::Read, true, Cause::Worktree(WorktreePart::Common));
    for name in WRITTEN {
        let path = common.join(name.as_ref());
        if let Some(directory) = kind_of(&path) {
            layout.put(&path, Kind::Write, directory, Cause::Worktree(WorktreePart::NewObjects));
        }
    }
    for name in KEPT {
        let path = common.join(name.as_ref());
        if let Some(directory) = kind_of(&path) {
            layout.put(&path, Kind::Read, directory, Cause::Worktree(WorktreePart::OldObjects));
        }
    }
    layout.put(own, Kind::Write, true, Cause::Worktree(WorktreePart::OwnState));
    for name in OWN_KEPT {
        let path = own.join(name.as_ref());
        if let Some(directory) = kind_of(&path) {
            layout.put(&path, Kind::Read, directory, Cause::Worktree(WorktreePart::Links));
        }
    }
    for dir in &worktree.branch_dirs {
        layout.put(dir, Kind::Write, true, Cause::Worktree(WorktreePart::OwnBranch));
    }
    for (path, directory) in &worktree.others {
        layout.put(path, Kind::Read, *directory, Cause::Worktree(WorktreePart::OtherBranch));
    }
}
