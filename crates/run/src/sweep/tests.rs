//! A table of what is moved aside of what appeared during a run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::AbsPath;
use plan::{Entry, Mark, Marked};

use super::{disarm, judge};
use crate::committed::Committed;
use crate::new_names::NewNames;

/// What was moved aside, as paths below the directory, in order.
fn moved(dir: &Path, found: Vec<super::Tampering>) -> Vec<String> {
    let mut names: Vec<_> = found
        .into_iter()
        .map(|tampering| {
            // Nothing is lost, and nothing acts on it.
            assert!(Path::new(&tampering.path).symlink_metadata().is_err(), "{:?}", tampering.path);
            assert!(Path::new(&tampering.moved_to.unwrap()).symlink_metadata().is_ok());
            Path::new(&tampering.path).strip_prefix(dir).unwrap().display().to_string()
        })
        .collect();
    names.sort();
    names
}

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => symlink(target, path).unwrap(),
            None if text.is_empty() => fs::create_dir_all(path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
}

const HARMLESS: &str = "[core]\n\tbare = false\n";
const NAMES_A_PROGRAM: &str = "[core]\n\tfsmonitor = ./evil\n";

#[test]
fn what_appeared_is_kept_only_as_git_writes_it() {
    for (marked, files, aside) in [
        // A repository that the run made.
        ("new/.git", &[("new/.git", "")][..], &[][..]),
        ("new/.git", &[("new/.git", "gitdir: /elsewhere\n")], &["new/.git"]),
        ("new/.git", &[("new/.git", "-> /elsewhere")], &["new/.git"]),
        ("new/.git/config", &[("new/.git/config", HARMLESS)], &[]),
        ("new/.git/config", &[("new/.git/config", NAMES_A_PROGRAM)], &["new/.git/config"]),
        ("new/.git/config", &[("new/.git/config", "-> ../../harmless")], &["new/.git/config"]),
        ("new/.git/hooks", &[("new/.git/hooks/a.sample", "x")], &[]),
        (
            "new/.git/hooks",
            &[("new/.git/hooks/a.sample", "x"), ("new/.git/hooks/pre-commit", "x")],
            &["new/.git/hooks/pre-commit"],
        ),
        ("new/.git/hooks", &[("new/.git/hooks", "-> ../../evil")], &["new/.git/hooks"]),
        ("new/.git/objects/info/alternates", &[("new/.git/objects/info/alternates", "x")], &[]),
        ("new/.git/commondir", &[("new/.git/commondir", "x")], &["new/.git/commondir"]),
        // One that was there.
        ("old/.git/config", &[("old/.git/config", HARMLESS)], &["old/.git/config"]),
        ("old/.git/hooks", &[("old/.git/hooks/a.sample", "x")], &["old/.git/hooks"]),
        // Every other protected name.
        (".envrc", &[(".envrc", "x")], &[".envrc"]),
        (
            "sub/.claude/settings.json",
            &[("sub/.claude/settings.json", "{}")],
            &["sub/.claude/settings.json"],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| AbsPath::lexical(&dir.path().join(path)).unwrap();
        write(dir.path(), &[("harmless", HARMLESS), ("evil/pre-commit", "x")]);
        write(dir.path(), files);
        // Nothing is old by its age: only what was listed before the run is.
        let new_names = NewNames::new([at("old/.git")], [], [], [], None, SystemTime::UNIX_EPOCH);
        let name = Marked { path: at(marked), mark: Mark::ReadOnly, entry: Entry::File };
        let found = judge(&name, &new_names, (&Committed::default(), dir.path()));
        assert_eq!(moved(dir.path(), found), aside, "{marked} of {files:?}");
        // What a link leads to is not touched.
        assert!(dir.path().join("evil/pre-commit").exists());
        assert!(dir.path().join("harmless").exists());
    }
}

#[test]
fn a_directory_that_git_takes_for_a_repository_names_no_programs() {
    let repository = [("r/HEAD", "ref: refs/heads/main\n"), ("r/objects", ""), ("r/refs", "")];
    let linked = [("r/HEAD", "ref: refs/heads/main\n"), ("r/commondir", "../elsewhere\n")];
    let plain = [("r/HEAD", "just a file\n")];
    let armed =
        [("r/config", NAMES_A_PROGRAM), ("r/hooks/post-checkout", "x"), ("r/hooks/a.sample", "x")];
    for (what, more, aside) in [
        (&repository[..], &[][..], &[][..]),
        (&repository, &armed, &["r/config", "r/hooks/post-checkout"]),
        (&repository, &[("r/config", HARMLESS)], &[]),
        (&repository, &[("r/config", "-> ../other")], &["r/config"]),
        (&repository, &[("r/hooks", "-> ../other")], &["r/hooks"]),
        (&repository, &[("r/config.worktree", "x")], &["r/config.worktree"]),
        (&linked, &armed, &["r/commondir", "r/config", "r/hooks/post-checkout"]),
        // Git takes it for nothing.
        (&plain, &armed, &[]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), what);
        write(dir.path(), more);
        let r: PathBuf = dir.path().join("r");
        // If it was a repository before, what is older than the run is the user's.
        let later = SystemTime::now() + std::time::Duration::from_mins(1);
        assert!(disarm(&r, Some(later)).is_empty(), "{what:?} {more:?}");
        let found = disarm(&r, None);
        assert_eq!(moved(dir.path(), found), aside, "{what:?} {more:?}");
    }
}
