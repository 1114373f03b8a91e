//! The repository of a linked worktree, as far as a run may write it.

use std::path::{Component, PathBuf};

use facts::Resolver;
use model::{AbsPath, FileText};
use plan::Worktree;

/// The repository of a linked worktree, if both sides refer to each other. A file in a checkout
/// alone could name any directory, and so could anything else in the checkout.
pub(crate) fn worktree(workspace: &AbsPath) -> Option<Worktree> {
    let mut resolver = Resolver::default();
    let mut real = |path: PathBuf| resolver.resolve(&path).ok();
    let own = real(facts::linked_git_dir(workspace.as_path())?)?;
    let text = |path: PathBuf| match facts::read_small(&path) {
        FileText::Text(text) => Some(text.trim().to_owned()),
        _ => None,
    };
    let common = real(own.as_path().join(text(own.as_path().join("commondir"))?))?;
    let back = real(own.as_path().join(text(own.as_path().join("gitdir"))?))?;
    let listed = own.parent() == common.join("worktrees".as_ref());
    let apart = !own.is_within(workspace) && !workspace.is_within(&own);
    if !listed || !apart || !is_genuine(&common) || back != workspace.join(".git".as_ref()) {
        return None;
    }
    let head = text(own.as_path().join("HEAD"))?;
    let branch = head.strip_prefix("ref:").map(|name| PathBuf::from(name.trim()));
    // A run can write this file: the name must not lead out of the branches.
    let plain = |name: &PathBuf| name.components().all(|part| matches!(part, Component::Normal(_)));
    let whole = |name: &PathBuf| name.components().count() > 2;
    let branch = branch.filter(|name| name.starts_with("refs/heads") && whole(name) && plain(name));
    let (mut branch_dirs, mut missing) = (Vec::new(), Vec::new());
    let mut others = Vec::new();
    let mut own_refs = Vec::new();
    for base in ["", "logs"] {
        let Some(branch) = &branch else { continue };
        let Ok(own_ref) = AbsPath::lexical(&common.as_path().join(base).join(branch)) else {
            continue;
        };
        let dir = own_ref.parent();
        if real(dir.as_path().to_path_buf()).as_ref() != Some(&dir) {
            continue;
        }
        if !dir.as_path().is_dir() {
            missing.push(dir.clone());
        }
        for (path, directory) in listing(&dir) {
            if path != own_ref {
                others.push((path, directory));
            }
        }
        branch_dirs.push(dir);
        own_refs.push(own_ref);
    }
    let shared = plan::WRITTEN.iter().chain(plan::KEPT).map(|name| common.as_path().join(name));
    let own_kept = plan::OWN_KEPT.iter().map(|name| own.as_path().join(name));
    let present = shared.chain(own_kept).filter_map(|path| {
        let directory = path.symlink_metadata().ok()?.is_dir();
        Some((AbsPath::lexical(&path).ok()?, directory))
    });
    let present = present.collect();
    Some(Worktree { common, own, head, branch_dirs, missing, own_refs, others, present })
}

/// Whether a directory has the parts of a repository, each of the right kind. Git itself asks for less,
/// but what a run may write is granted by this.
fn is_genuine(common: &AbsPath) -> bool {
    let is_dir = |name: &str| common.as_path().join(name).is_dir();
    common.as_path().join("HEAD").is_file() && is_dir("objects") && is_dir("refs")
}

fn listing(dir: &AbsPath) -> Vec<(AbsPath, bool)> {
    let Ok(entries) = std::fs::read_dir(dir.as_path()) else { return Vec::new() };
    let entry = |entry: std::fs::DirEntry| {
        Some((dir.join(&entry.file_name()), entry.file_type().ok()?.is_dir()))
    };
    entries.flatten().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn checkout(at: &Path, own: &Path, common: &str) {
        std::fs::create_dir_all(at).unwrap();
        std::fs::create_dir_all(own).unwrap();
        std::fs::write(at.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        let back = at.join(".git").display().to_string();
        for (name, text) in
            [("commondir", common), ("gitdir", &back), ("HEAD", "ref: refs/heads/m")]
        {
            std::fs::write(own.join(name), text).unwrap();
        }
    }

    #[test]
    fn only_a_repository_outside_can_say_that_a_checkout_is_its_worktree() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let found = |at: &Path| worktree(&AbsPath::lexical(at).unwrap()).map(|found| found.common);
        let genuine = base.join("genuine");
        for dir in ["objects", "refs"] {
            std::fs::create_dir_all(base.join("repo/.git").join(dir)).unwrap();
        }
        std::fs::write(base.join("repo/.git/HEAD"), "ref: refs/heads/main").unwrap();
        checkout(&genuine, &base.join("repo/.git/worktrees/genuine"), "../..");
        let common = AbsPath::lexical(&base.join("repo/.git")).unwrap();
        assert_eq!(found(&genuine), Some(common));
        // What a checkout may contain, and a directory in which a user keeps checkouts.
        let fake = base.join("worktrees/fake");
        checkout(&fake, &fake, "../..");
        assert_eq!(found(&fake), None);
        let inner = base.join("worktrees/outer/inner");
        checkout(&inner, &base.join("worktrees/outer"), "../..");
        assert_eq!(found(&inner), None);
        let beside = base.join("beside");
        checkout(&beside, &base.join("worktrees/evil"), "../..");
        assert_eq!(found(&beside), None);
        // What git would take for the directory of another worktree.
        for name in ["HEAD", "commondir"] {
            std::fs::write(base.join(name), "").unwrap();
        }
        assert_eq!(found(&beside), None);
        for name in ["HEAD", "commondir"] {
            std::fs::remove_file(base.join(name)).unwrap();
        }
        let deep = base.join("deep/er");
        checkout(&deep, &deep.join("x"), "../..");
        assert_eq!(found(&deep), None);
    }
}
