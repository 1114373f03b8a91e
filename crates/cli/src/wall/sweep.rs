//! After a run: whatever appeared under a protected name is moved aside and told.
//!
//! Such names cannot be mounted over before they exist, and a call that is watched can be made to
//! look like another. So their coming is refused, and looked for once more at the end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use facts::{Step, Visit};
use model::{AbsPath, FileText};
use policy::wall::{Grant, Mark, Marked, Worktree};

use super::births::{Births, repository};
use super::survey;
use crate::setup::Setup;

/// Something that should not be there.
pub(crate) struct Tampering {
    pub(crate) path: PathBuf,
    pub(crate) moved_to: Option<PathBuf>,
    pub(crate) what: String,
}

/// Looks for what appeared during a run, and moves it aside.
pub(crate) fn sweep(
    setup: &Setup,
    grants: &[Grant],
    worktree: Option<&Worktree>,
    births: &Births,
    since: SystemTime,
) -> Vec<Tampering> {
    let mut found = Vec::new();
    for marked in survey::protected_now(&setup.loaded.policy, &setup.ground, grants) {
        if !births.is_old(&marked.path) && marked.mark != Mark::Hidden {
            found.extend(judge(&marked, births));
        }
    }
    found.extend(planted_repositories(setup.ground.workspace.as_path(), since));
    if let Some(worktree) = worktree {
        found.extend(foreign_references(worktree));
        found.extend(foreign_head(worktree));
    }
    found
}

fn judge(marked: &Marked, births: &Births) -> Vec<Tampering> {
    let path = marked.path.as_path();
    let in_new = repository(&marked.path).filter(|(git, _)| !births.is_old_repository(git));
    match in_new {
        // A repository that the run made for itself.
        Some((git, below)) if git == marked.path || below.as_os_str().is_empty() => {
            if path.is_dir() { Vec::new() } else { vec![aside(path, "a git link appeared")] }
        }
        Some((_, below)) if below == Path::new("hooks") => foreign_hooks(path),
        Some((_, below)) if below == Path::new("config") && is_harmless_config(path) => Vec::new(),
        Some((_, below)) if below == Path::new("objects/info/alternates") => Vec::new(),
        _ => vec![aside(path, "a protected name appeared")],
    }
}

fn foreign_hooks(hooks: &Path) -> Vec<Tampering> {
    let Ok(entries) = hooks.read_dir() else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_none_or(|ending| ending != "sample"))
        .map(|path| aside(&path, "a git hook appeared"))
        .collect()
}

/// Whether a repository's configuration names no program: only what `init`, `clone` and commits
/// write by themselves.
fn is_harmless_config(path: &Path) -> bool {
    const HARMLESS: &[(&str, &[&str])] = &[
        (
            "core",
            &[
                "repositoryformatversion",
                "filemode",
                "bare",
                "logallrefupdates",
                "ignorecase",
                "precomposeunicode",
                "symlinks",
            ],
        ),
        ("remote", &["url", "fetch", "pushurl", "tagopt"]),
        ("branch", &["remote", "merge", "rebase"]),
        ("user", &["name", "email"]),
        ("init", &["defaultbranch"]),
        ("extensions", &["objectformat", "refstorage"]),
        ("submodule", &["url", "active"]),
        ("pull", &["rebase", "ff"]),
    ];
    let FileText::Text(text) = facts::read_small(path) else { return false };
    let mut known: &[&str] = &[];
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') || line.starts_with(';') {
            continue;
        }
        if let Some(heading) = line.strip_prefix('[') {
            // A key behind the heading on the same line is nothing that git writes.
            let Some(heading) = heading.strip_suffix(']') else { return false };
            let name = heading.split([' ', '"', '.']).next().unwrap_or_default();
            let name = name.to_ascii_lowercase();
            let Some((_, keys)) = HARMLESS.iter().find(|(section, _)| *section == name) else {
                return false;
            };
            known = keys;
            continue;
        }
        let key = line.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
        let url = line.split_once('=').map(|(_, value)| value.trim()).unwrap_or_default();
        if !known.contains(&key.as_str()) || url.starts_with("ext::") || line.ends_with('\\') {
            return false;
        }
    }
    true
}

/// Directories that git would take for a bare repository, and that are new. Nothing can keep them
/// from being made without keeping ordinary directories from being made.
fn planted_repositories(workspace: &Path, since: SystemTime) -> Vec<Tampering> {
    let mut found = Vec::new();
    facts::walk(workspace, &mut |visit| {
        let Visit::Entry(path, kind) = visit else { return Step::Past };
        if !kind.is_dir() || path.file_name().is_some_and(|name| name == ".git") {
            return Step::Past;
        }
        let config = path.join("config");
        let looks_bare = path.join("HEAD").exists()
            && path.join("objects").is_dir()
            && path.join("refs").is_dir();
        let new =
            config.metadata().and_then(|config| config.modified()).is_ok_and(|time| time >= since);
        if looks_bare && new && !is_harmless_config(&config) {
            let what = "a bare repository whose configuration may name programs appeared".into();
            found.push(Tampering { path: path.to_path_buf(), moved_to: None, what });
            return Step::Past;
        }
        Step::Into
    });
    found
}

/// References of other branches that appeared beside the worktree's own.
fn foreign_references(worktree: &Worktree) -> Vec<Tampering> {
    let mut found = Vec::new();
    for dir in &worktree.branch_dirs {
        let Ok(entries) = dir.as_path().read_dir() else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let known = worktree.others.iter().any(|(other, _)| other.as_path() == path);
            let own = worktree.own_refs.iter().any(|own| own.as_path() == path);
            if !known && !own {
                found.push(aside(&path, "a reference that is not this worktree's appeared"));
            }
        }
    }
    found
}

/// Another branch at which the worktree points now. The next run would take it for the worktree's
/// own, so it points back.
fn foreign_head(worktree: &Worktree) -> Option<Tampering> {
    let head = worktree.own.as_path().join("HEAD");
    let FileText::Text(now) = facts::read_small(&head) else { return None };
    if now.trim() == worktree.head || !now.starts_with("ref:") {
        return None;
    }
    let tampering = aside(&head, "this worktree was switched to another branch");
    // Whatever stands there by now is not written through.
    let new = std::fs::OpenOptions::new().write(true).create_new(true).open(&head);
    let _ = new.and_then(|mut new| writeln!(new, "{}", worktree.head));
    Some(tampering)
}

/// Moves something aside, so that nothing is lost and nothing acts on it.
fn aside(path: &Path, what: &str) -> Tampering {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let moved_to = (1..100).find_map(|number| {
        let target = path.with_file_name(format!("{name}.moved-by-ringwall-{number}"));
        let free = target.symlink_metadata().is_err();
        (free && std::fs::rename(path, &target).is_ok()).then_some(target)
    });
    Tampering { path: path.to_path_buf(), moved_to, what: what.into() }
}

/// The names that stood before a run.
pub(crate) fn before(
    marked: &[Marked],
    dangling: &[AbsPath],
    worktree: Option<&Worktree>,
) -> Births {
    let marked = marked.iter().map(|marked| marked.path.clone());
    Births::new(marked.chain(dangling.iter().cloned()), worktree)
}
