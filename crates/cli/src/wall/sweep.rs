//! After a run: whatever appeared under a protected name is moved aside and told.
//!
//! Such names cannot be mounted over before they exist, and a call that is watched can be made to
//! look like another. So their coming is refused, and looked for once more at the end.

use std::fs::Permissions;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::{AbsPath, FileText, Level};
use policy::wall::{Entry, Grant, Mark, Marked, Worktree};
use rustix::fs::{OFlags, ResolveFlags};

use super::births::{Births, is_directory, repository};
use super::git_config::is_harmless;
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
    // Elsewhere somebody else made it: a repository can have links that lead anywhere.
    let written = |path: &AbsPath| {
        let given = |grant: &Grant| grant.write && path.is_within(&grant.path);
        path.is_within(&setup.ground.workspace) || grants.iter().any(given)
    };
    let made = |path: &&AbsPath| written(path) && path.as_path().symlink_metadata().is_ok();
    let led = |path: &AbsPath| aside(path.as_path(), "what a protected name leads to appeared");
    let mut found: Vec<_> = births.dangling().filter(made).map(led).collect();
    let (policy, ground) = (&setup.loaded.policy, &setup.ground);
    let mut now = survey::protected_now(policy, ground, grants);
    // What the run made where nobody looks, because there is too much.
    let unseen = |git: &AbsPath| {
        policy.level.value == Level::Full && git.is_within(&ground.home) && !written(git)
    };
    let repositories: Vec<_> = births.made().into_iter().filter(unseen).collect();
    let elsewhere = survey::look_now(policy, ground, &repositories);
    now.marked.extend(elsewhere.marked);
    now.unreadable.extend(elsewhere.unreadable);
    // A name in a directory that cannot be looked into can be used all the same.
    let mut opened = Vec::new();
    while let Some(dir) = now.unreadable.pop() {
        if births.is_old(&dir) {
            continue;
        }
        opened.extend(Opened::new(&dir));
        let inside = survey::look_now(policy, ground, std::slice::from_ref(&dir));
        if inside.unreadable.contains(&dir) {
            let what = "a directory cannot be looked into any more".into();
            found.push(Tampering { path: dir.as_path().to_path_buf(), moved_to: None, what });
            continue;
        }
        now.marked.extend(inside.marked);
        now.heads.extend(inside.heads);
        now.unreadable.extend(inside.unreadable);
    }
    for marked in &now.marked {
        if !births.is_old(&marked.path) && marked.mark != Mark::Hidden {
            found.extend(judge(marked, births));
        }
    }
    // The innermost first: the way to it must still be open.
    opened.into_iter().rev().for_each(Opened::close);
    found.extend(now.heads.iter().flat_map(|dir| disarm(dir.as_path(), since)));
    if let Some(worktree) = worktree {
        found.extend(foreign_references(worktree));
        found.extend(foreign_head(worktree));
    }
    found
}

/// A directory that was made readable, to be looked through.
struct Opened {
    directory: OwnedFd,
    mode: u32,
}

impl Opened {
    fn new(dir: &AbsPath) -> Option<Self> {
        // Another run may be at work here, and put a link in the way.
        let directory = rustix::fs::openat2(
            rustix::fs::CWD,
            dir.as_path(),
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        )
        .ok()?;
        let mode = rustix::fs::fstat(&directory).ok()?.st_mode & 0o7777;
        let opened = Self { directory, mode };
        opened.set(mode | 0o700).then_some(opened)
    }

    fn set(&self, mode: u32) -> bool {
        let path = format!("/proc/self/fd/{}", self.directory.as_raw_fd());
        std::fs::set_permissions(path, Permissions::from_mode(mode)).is_ok()
    }

    fn close(self) {
        self.set(self.mode);
    }
}

fn judge(marked: &Marked, births: &Births) -> Vec<Tampering> {
    let path = marked.path.as_path();
    let in_new = repository(&marked.path).filter(|(git, _)| !births.is_old_repository(git));
    match in_new {
        // A repository that the run made for itself.
        Some((git, below)) if git == marked.path || below.as_os_str().is_empty() => {
            if is_directory(&marked.path) {
                Vec::new()
            } else {
                vec![aside(path, "a git link appeared")]
            }
        }
        // What a link leads to is not the repository's own.
        Some((_, below)) if below == Path::new("hooks") && !path.is_symlink() => {
            foreign_hooks(path, |_| true)
        }
        Some((_, below)) if below == Path::new("config") && is_harmless(path) => Vec::new(),
        Some((_, below)) if below == Path::new("objects/info/alternates") => Vec::new(),
        _ => vec![aside(path, "a protected name appeared")],
    }
}

fn foreign_hooks(hooks: &Path, counts: impl Fn(&Path) -> bool) -> Vec<Tampering> {
    let Ok(entries) = hooks.read_dir() else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_none_or(|ending| ending != "sample") && counts(path))
        .map(|path| aside(&path, "a git hook appeared"))
        .collect()
}

/// A directory that git would take for a repository although it is not called `.git`. Nothing can
/// keep it from being made without keeping ordinary directories from being made, so what names
/// programs in it is moved aside if it is new.
fn disarm(dir: &Path, since: SystemTime) -> Vec<Tampering> {
    let apart = dir.join("commondir").symlink_metadata().is_ok();
    // Git takes parts that lie in a common directory.
    if !(apart || dir.join("objects").is_dir() && dir.join("refs").is_dir()) {
        return Vec::new();
    }
    let (config, hooks) = (dir.join("config"), dir.join("hooks"));
    let mut found = Vec::new();
    if is_new(&config, since) && !is_harmless(&config) {
        found.push(aside(&config, "a repository's configuration that may name programs appeared"));
    }
    for name in ["commondir", "config.worktree"] {
        if is_new(&dir.join(name), since) {
            found.push(aside(&dir.join(name), "a part of a repository appeared"));
        }
    }
    if hooks.is_symlink() && is_new(&hooks, since) {
        found.push(aside(&hooks, "a directory of git hooks appeared"));
    } else {
        found.extend(foreign_hooks(&hooks, |hook| is_new(hook, since)));
    }
    found
}

/// Whether something was made, moved or changed since. The time of the last change of what is
/// known about a file, unlike that of its text, cannot be set.
fn is_new(path: &Path, since: SystemTime) -> bool {
    let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let changed = |file: std::fs::Metadata| (file.ctime(), file.ctime_nsec());
    let since = (since.as_secs().cast_signed(), i64::from(since.subsec_nanos()));
    path.symlink_metadata().is_ok_and(|file| changed(file) >= since)
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
    if now.trim() == worktree.head || !now.trim().starts_with("ref:") {
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
    dangling: Vec<AbsPath>,
    worktree: Option<&Worktree>,
    since: SystemTime,
) -> Births {
    let whole = |marked: &&Marked| marked.mark == Mark::Frozen && marked.entry == Entry::Directory;
    let frozen = marked.iter().filter(whole).map(|marked| marked.path.clone());
    let names = marked.iter().map(|marked| marked.path.clone());
    Births::new(names, frozen, dangling, worktree, since)
}
