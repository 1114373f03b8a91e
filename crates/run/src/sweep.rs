//! After a run: everything that appeared under a protected name is moved aside and reported.
//!
//! Such names cannot be mounted over before they exist, and a program can change the arguments of a
//! system call after it was checked. So creating them is denied during the run, and the tree is
//! checked once more at the end.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{ErrorKind, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::{AbsPath, FileText, Level};
use plan::{Grant, Mark, Marked, Worktree};
use rustix::fs::{AtFlags, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use crate::new_names::{NewNames, is_directory, repository};
use crate::survey;
use config::setup::Setup;
use facts::git_config::is_harmless;

use crate::build_files::BuildFiles;
use crate::events::Tampering;

/// The mode bits with which an owner can list and change a directory.
const OPEN: u32 = 0o700;

/// Looks for what appeared during a run, and moves it aside. Returns what that was, and the files
/// that the user's own build acts on.
pub(crate) fn sweep(
    setup: &Setup,
    grants: &[Grant],
    worktree: Option<&Worktree>,
    new_names: &NewNames,
    since: SystemTime,
) -> (Vec<Tampering>, BuildFiles) {
    // Elsewhere another program created it: a repository can have links that lead anywhere.
    let written = |path: &AbsPath| {
        let given = |grant: &Grant| grant.write && path.is_within(&grant.path);
        path.is_within(&setup.context.workspace) || grants.iter().any(given)
    };
    let made = |path: &&AbsPath| written(path) && path.as_path().symlink_metadata().is_ok();
    let led = |path: &AbsPath| aside(path.as_path(), "the target of a protected link appeared");
    let mut found: Vec<_> = new_names.dangling().filter(made).map(led).collect();
    let (policy, context) = (&setup.loaded.policy, &setup.context);
    let mut now = survey::protected_now(policy, context, grants);
    // What the run created in a tree that is too large to be scanned.
    let unseen = |git: &AbsPath| {
        policy.level.value == Level::Full && git.is_within(&context.home) && !written(git)
    };
    let repositories: Vec<_> = new_names.made().into_iter().filter(unseen).collect();
    let elsewhere = survey::look_now(policy, context, &repositories);
    now.marked.extend(elsewhere.marked);
    now.unreadable.extend(elsewhere.unreadable);
    // A file in an unreadable directory can still be used by its name.
    let mut opened = Vec::new();
    while let Some(dir) = now.unreadable.pop() {
        let gone = dir.as_path().symlink_metadata();
        let gone = gone.is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if new_names.is_old(&dir) || gone {
            continue;
        }
        opened.extend(Opened::new(dir.as_path()));
        let inside = survey::look_now(policy, context, std::slice::from_ref(&dir));
        if inside.unreadable.contains(&dir) {
            let what = "a directory became unreadable".into();
            found.push(Tampering { path: dir.to_string(), moved_to: None, what });
            continue;
        }
        now.marked.extend(inside.marked);
        now.heads.extend(inside.heads);
        now.build.extend(inside.build);
        now.unreadable.extend(inside.unreadable);
    }
    for marked in &now.marked {
        if !new_names.is_old(&marked.path) && marked.mark != Mark::Hidden {
            found.extend(judge(marked, new_names));
        }
    }
    for dir in &now.heads {
        let since = new_names.was_repository(dir).then_some(since);
        found.extend(disarm(dir.as_path(), since));
    }
    // The innermost first: the directories above it must still be accessible.
    opened.into_iter().rev().for_each(Opened::close);
    if let Some(worktree) = worktree {
        found.extend(foreign_references(worktree));
        found.extend(foreign_parts(worktree));
        found.extend(foreign_head(worktree));
    }
    (found, now.build)
}

/// A directory that was made readable and writable, so that it can be searched and repaired. No
/// component of its path is a link: another run may be active here, and could lead us anywhere.
struct Opened {
    directory: OwnedFd,
    mode: u32,
}

impl Opened {
    fn new(dir: &Path) -> Option<Self> {
        let directory = rustix::fs::openat2(
            rustix::fs::CWD,
            dir,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        )
        .ok()?;
        let mode = rustix::fs::fstat(&directory).ok()?.st_mode & 0o7777;
        let opened = Self { directory, mode };
        // If that fails, the next operation fails too, and that is reported.
        opened.set(mode | OPEN);
        Some(opened)
    }

    fn set(&self, mode: u32) {
        if self.mode & OPEN != OPEN {
            let path = format!("/proc/self/fd/{}", self.directory.as_raw_fd());
            let _ = std::fs::set_permissions(path, Permissions::from_mode(mode));
        }
    }

    /// Renames an entry to a name that is free. Returns whether that worked.
    fn rename(&self, from: &OsStr, to: &str) -> bool {
        let dir = &self.directory;
        match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
            // Not every file system can do it in one step.
            Err(Errno::INVAL) => {
                let free = rustix::fs::statat(dir, to, AtFlags::SYMLINK_NOFOLLOW).is_err();
                free && rustix::fs::renameat(dir, from, dir, to).is_ok()
            }
            renamed => renamed.is_ok(),
        }
    }

    fn close(self) {
        self.set(self.mode);
    }
}

fn judge(marked: &Marked, new_names: &NewNames) -> Vec<Tampering> {
    let path = marked.path.as_path();
    let in_new = repository(&marked.path).filter(|(git, _)| !new_names.is_old_repository(git));
    match in_new {
        // A repository that the run created.
        Some((git, below)) if git == marked.path || below.as_os_str().is_empty() => {
            if is_directory(&marked.path) {
                Vec::new()
            } else {
                vec![aside(path, "a `.git` file that points to a repository appeared")]
            }
        }
        // The target of a link is not part of the repository.
        Some((_, below)) if below == Path::new("hooks") && !path.is_symlink() => {
            foreign_hooks(path, |_| true)
        }
        Some((_, below))
            if below == Path::new("config") && !path.is_symlink() && is_harmless(path) =>
        {
            Vec::new()
        }
        Some((_, below)) if below == Path::new("objects/info/alternates") => Vec::new(),
        _ => vec![aside(path, "a protected name appeared")],
    }
}

fn foreign_hooks(hooks: &Path, counts: impl Fn(&Path) -> bool) -> Vec<Tampering> {
    if hooks.symlink_metadata().is_err() {
        return Vec::new();
    }
    let new = counts(hooks);
    // A hook can be run even if its directory cannot be listed.
    let opened = Opened::new(hooks);
    let found = match hooks.read_dir() {
        Ok(entries) => entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_none_or(|ending| ending != "sample") && counts(path))
            .map(|path| aside(&path, "a git hook appeared"))
            .collect(),
        Err(_) if new => vec![aside(hooks, "an unreadable directory of git hooks appeared")],
        Err(_) => Vec::new(),
    };
    opened.into_iter().for_each(Opened::close);
    found
}

/// Handles a directory that git would take for a repository although it is not called `.git`.
/// Creating one cannot be denied without denying ordinary directories. So everything in it that can
/// name programs is moved aside: what is newer than the run if it was a repository before, and
/// otherwise all of it.
fn disarm(dir: &Path, since: Option<SystemTime>) -> Vec<Tampering> {
    if !facts::is_repository(dir) {
        return Vec::new();
    }
    let is_new = |path: &Path| match since {
        Some(since) => is_new(path, since),
        None => path.symlink_metadata().is_ok(),
    };
    let (config, hooks) = (dir.join("config"), dir.join("hooks"));
    let mut found = Vec::new();
    if is_new(&config) && (config.is_symlink() || !is_harmless(&config)) {
        found.push(aside(&config, "a git configuration that can run programs appeared"));
    }
    for name in ["commondir", "config.worktree"] {
        if is_new(&dir.join(name)) {
            found.push(aside(&dir.join(name), "a file that controls a git repository appeared"));
        }
    }
    if hooks.is_symlink() && is_new(&hooks) {
        found.push(aside(&hooks, "a directory of git hooks appeared"));
    } else {
        found.extend(foreign_hooks(&hooks, is_new));
    }
    found
}

/// Whether an entry was created, moved or changed since. The change time (`ctime`) cannot be set,
/// unlike the modification time.
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
                found.push(aside(
                    &path,
                    "a git reference that is not of this worktree's branch appeared",
                ));
            }
        }
    }
    found
}

/// What appeared in the worktree's own git directory although only the user may create it.
fn foreign_parts(worktree: &Worktree) -> Vec<Tampering> {
    let parts = plan::OWN_KEPT.iter().map(|name| worktree.own.join(name.as_ref()));
    let existed = |part: &AbsPath| worktree.present.iter().any(|(path, _)| path == part);
    let new = parts.filter(|part| !existed(part) && part.as_path().symlink_metadata().is_ok());
    new.map(|part| aside(part.as_path(), "a file that controls a git repository appeared"))
        .collect()
}

/// Checks whether the worktree was switched to another branch. The next run would take that for the
/// worktree's own, so `HEAD` is restored.
fn foreign_head(worktree: &Worktree) -> Option<Tampering> {
    let head = worktree.own.as_path().join("HEAD");
    let FileText::Text(now) = facts::read_small(&head) else { return None };
    if now.trim() == worktree.head || !now.trim().starts_with("ref:") {
        return None;
    }
    let tampering = aside(&head, "this worktree was switched to another branch");
    // `create_new` does not write through anything that exists there by now.
    let new = std::fs::OpenOptions::new().write(true).create_new(true).open(&head);
    let _ = new.and_then(|mut new| writeln!(new, "{}", worktree.head));
    Some(tampering)
}

/// Moves an entry aside, so that nothing is lost and nothing acts on it. The target of a link on
/// the way is not touched, because it may belong to another program.
fn aside(path: &Path, what: &str) -> Tampering {
    let moved_to = move_aside(path).map(|to| to.display().to_string());
    Tampering { path: path.display().to_string(), moved_to, what: what.into() }
}

fn move_aside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let opened = Opened::new(path.parent()?)?;
    // The run can create some names beforehand, but it does not know the time.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let numbers = (1..100).chain([now.as_nanos()]);
    let beginning: String = name.to_string_lossy().chars().take(MOST_NAME).collect();
    let moved = numbers
        .map(|number| format!("{beginning}.moved-by-ringwall-{number}"))
        .find(|target| opened.rename(name, target));
    opened.close();
    moved.map(|target| path.with_file_name(target))
}

/// The number of characters kept of a name, so that there is room for the suffix.
const MOST_NAME: usize = 40;

#[cfg(test)]
mod tests;
