//! A linked worktree: its commits go to its own branch, the rest of the repository stays as it is.

use model::{AbsPath, Kind};

use super::Layout;

/// The repository of a linked worktree, as it was when the run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The directory that all worktrees share.
    pub common: AbsPath,
    /// The worktree's own part of it.
    pub own: AbsPath,
    /// The directories that hold the branch's reference and its log, where they exist.
    pub branch_dirs: Vec<AbsPath>,
    /// The branch's reference and its log.
    pub own_refs: Vec<AbsPath>,
    /// Everything else in those directories, with whether it is a directory.
    pub others: Vec<(AbsPath, bool)>,
    /// Directories and files that are there, with whether they are directories.
    pub present: Vec<(AbsPath, bool)>,
}

/// Below the shared directory: what a commit writes.
pub const WRITTEN: &[&str] = &["objects"];
/// Below that: what no commit needs to write.
pub const KEPT: &[&str] = &["objects/pack", "objects/info"];
/// In the worktree's own part: what says where it belongs.
pub const OWN_KEPT: &[&str] = &["commondir", "gitdir", "config.worktree"];

pub(super) fn put(layout: &mut Layout, worktree: &Worktree) {
    let Worktree { common, own, .. } = worktree;
    let kind_of = |path: &AbsPath| {
        worktree.present.iter().find(|(known, _)| known == path).map(|(_, directory)| *directory)
    };
    layout.put(common, Kind::Read, true, "the repository of this worktree");
    for name in WRITTEN {
        let path = common.join(name.as_ref());
        if let Some(directory) = kind_of(&path) {
            layout.put(&path, Kind::Write, directory, "new objects");
        }
    }
    for name in KEPT {
        let path = common.join(name.as_ref());
        if let Some(directory) = kind_of(&path) {
            layout.put(&path, Kind::Read, directory, "objects that are there");
        }
    }
    layout.put(own, Kind::Write, true, "this worktree's own state");
    for name in OWN_KEPT {
        let path = own.join(name.as_ref());
        if let Some(directory) = kind_of(&path) {
            layout.put(&path, Kind::Read, directory, "where this worktree belongs");
        }
    }
    for dir in &worktree.branch_dirs {
        layout.put(dir, Kind::Write, true, "this worktree's branch");
    }
    for (path, directory) in &worktree.others {
        layout.put(path, Kind::Read, *directory, "another branch");
    }
}
