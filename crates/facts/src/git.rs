//! How a directory belongs to git: read from its files, never by running git in it.

use std::path::{Path, PathBuf};

use model::{AbsPath, FileText};

use crate::{Resolver, read_small};

/// The top of the git checkout or linked worktree that holds a directory.
pub fn git_root(directory: &Path) -> Option<PathBuf> {
    let holds_git = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
    directory.ancestors().find(holds_git).map(Path::to_path_buf)
}

/// Whether git takes a directory for a repository, or for the git directory of a linked worktree.
/// Like git, this asks whether the parts exist, and not what they are.
pub fn is_repository(dir: &Path) -> bool {
    let exists = |name: &str| dir.join(name).symlink_metadata().is_ok();
    exists("HEAD") && (exists("commondir") || (exists("objects") && exists("refs")))
}

/// Every other place of the same repository: the host checkout of a linked worktree, its git
/// directory, and all sibling worktrees. Empty where there is no repository, or only this checkout.
pub fn other_checkouts(workspace: &Path) -> Vec<AbsPath> {
    let Some(top) = git_root(workspace) else { return Vec::new() };
    let Some(common) = common_dir(&top) else { return Vec::new() };
    let mut places = Vec::new();
    if common.parent() != Some(&top) && common.file_name().is_some_and(|name| name == ".git") {
        places.extend(common.parent().map(Path::to_path_buf));
    }
    if !common.starts_with(&top) {
        places.push(common.clone());
    }
    places.extend(linked_worktrees(&common).into_iter().filter(|place| *place != top));
    let mut resolver = Resolver::default();
    let mut resolved: Vec<_> =
        places.iter().filter_map(|place| resolver.resolve(place).ok()).collect();
    resolved.sort();
    resolved.dedup();
    resolved
}

/// The git directory of a linked worktree; `None` for an ordinary checkout.
pub fn linked_git_dir(top: &Path) -> Option<PathBuf> {
    let FileText::Text(text) = read_small(&top.join(".git")) else { return None };
    Some(top.join(text.trim().strip_prefix("gitdir:")?.trim()))
}

/// The directory that all worktrees of a repository share.
fn common_dir(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let own = linked_git_dir(top)?;
    let shared = match read_small(&own.join("commondir")) {
        FileText::Text(text) => own.join(text.trim()),
        _ => own.clone(),
    };
    Some(Resolver::default().resolve(&shared).ok()?.as_path().to_path_buf())
}

/// The checkouts that a repository has linked.
fn linked_worktrees(common: &Path) -> Vec<PathBuf> {
    let Ok(entries) = common.join("worktrees").read_dir() else { return Vec::new() };
    let gitdir = |entry: std::io::Result<std::fs::DirEntry>| {
        let FileText::Text(text) = read_small(&entry.ok()?.path().join("gitdir")) else {
            return None;
        };
        Path::new(text.trim()).parent().map(Path::to_path_buf)
    };
    entries.filter_map(gitdir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_what_git_takes_for_one() {
        for (names, expected) in [
            (&["HEAD", "objects", "refs"][..], true),
            (&["HEAD", "commondir"], true),
            (&["HEAD", "objects"], false),
            (&["HEAD"], false),
            (&["objects", "refs"], false),
            (&[], false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            for name in names {
                std::fs::write(dir.path().join(name), "").unwrap();
            }
            assert_eq!(is_repository(dir.path()), expected, "{names:?}");
        }
    }
}
