//! After a run: everything that appeared under a protected name is moved aside and reported.
//!
//! Such names cannot be mounted over before they exist, and a program can change the arguments of a
//! system call after it was checked. So creating them is denied during the run, and the tree is
//! checked once more at the end.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use model::{AbsPath, FileText, Level};
use plan::{Entry, Grant, Mark, Marked, Worktree};
use policy::{Context, Policy};

use crate::aside::{Opened, aside, replace};
use crate::checkout;
use crate::committed::Committed;
use crate::git_state::{self, Unfinished};
use crate::kept::Keeper;
use crate::later::Later;
use crate::new_names::{NewNames, is_directory, repository};
use crate::references::Recorded;
use crate::{scan, survey};
use facts::git_config::{Role, is_harmless};

use crate::build_files::BuildFiles;
use crate::events::Tampering;

/// A run that is over, as far as a sweep must know it.
pub(crate) struct Swept<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) context: &'a Context,
    pub(crate) grants: &'a [Grant],
    pub(crate) worktree: Option<&'a Worktree>,
    pub(crate) new_names: &'a NewNames,
    pub(crate) unfinished: &'a Unfinished,
    pub(crate) later: &'a Later,
    pub(crate) committed: &'a Committed,
    pub(crate) state_dir: &'a Path,
    /// When it began.
    pub(crate) since: SystemTime,
}

/// What a sweep found.
pub(crate) struct Left {
    pub(crate) tampering: Vec<Tampering>,
    /// The files that the user's own build acts on.
    pub(crate) build: BuildFiles,
    /// Whether everything was searched. If not, it has to be searched again.
    pub(crate) whole: bool,
}

/// Looks for what appeared during a run, and moves it aside.
pub(crate) fn sweep(run: &Swept<'_>, keeper: &mut Keeper<'_>) -> Left {
    let mut whole = has_descriptors();
    let Swept { policy, context, grants, worktree, new_names, unfinished, since, .. } = *run;
    // Elsewhere another program created it: a repository can have links that lead anywhere.
    let written = |path: &AbsPath| {
        let given = |grant: &Grant| grant.write && path.is_within(&grant.path);
        path.is_within(&context.workspace) || grants.iter().any(given)
    };
    let made = |path: &&AbsPath| written(path) && path.as_path().symlink_metadata().is_ok();
    let led = |path: &AbsPath| aside(path.as_path(), "the target of a protected link appeared");
    let mut found: Vec<_> = new_names.dangling().filter(made).map(led).collect();
    let mut now = survey::protected_now(policy, context, grants, since);
    // What the run created in a tree that is too large to be scanned.
    let unseen = |git: &AbsPath| {
        policy.level.value == Level::Full && git.is_within(&context.home) && !written(git)
    };
    let repositories: Vec<_> = new_names.made().into_iter().filter(unseen).collect();
    let elsewhere = survey::look_now(policy, context, &repositories, since);
    now.marked.extend(elsewhere.marked);
    now.unreadable.extend(elsewhere.unreadable);
    now.named.extend(elsewhere.named);
    now.full |= elsewhere.full;
    // A file in an unreadable directory can still be used by its name.
    let mut opened = Vec::new();
    while let Some(dir) = now.unreadable.pop() {
        let gone = dir.as_path().symlink_metadata();
        let gone = gone.is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if new_names.is_old(&dir) || gone {
            continue;
        }
        opened.extend(Opened::new(dir.as_path()));
        let inside = survey::look_now(policy, context, std::slice::from_ref(&dir), since);
        if inside.unreadable.contains(&dir) {
            if !is_closed(dir.as_path()) {
                whole = false;
                continue;
            }
            let what = "a directory became unreadable".into();
            found.push(Tampering { path: dir.to_string(), moved_to: None, what });
            continue;
        }
        now.marked.extend(inside.marked);
        now.heads.extend(inside.heads);
        now.build.extend(inside.build);
        now.named.extend(inside.named);
        now.later.extend(inside.later);
        now.full |= inside.full;
        now.unreadable.extend(inside.unreadable);
    }
    if now.full {
        let what = "more directories appeared than can be searched for what git would run".into();
        found.push(Tampering { path: context.workspace.to_string(), moved_to: None, what });
    }
    for marked in &now.marked {
        if !new_names.is_old(&marked.path) && marked.mark != Mark::Hidden {
            found.extend(judge(marked, new_names, (run.committed, run.state_dir)));
        }
    }
    let known = (run.committed, run.state_dir);
    found.extend(run.later.judge(&now.later, known, since, keeper));
    for dir in &now.heads {
        let known = new_names.was_repository(dir) || is_old_inside_git(dir.as_path(), since);
        found.extend(disarm(dir.as_path(), known.then_some(since)));
    }
    for (path, role) in &now.named {
        found.extend(named_later(path, *role, new_names, since));
    }
    let is_git = |marked: &&Marked| marked.mark == Mark::Pinned && marked.entry == Entry::Directory;
    let gits = now.marked.iter().filter(is_git).map(|marked| &marked.path);
    let bare = now.heads.iter().filter(|dir| facts::is_repository(dir.as_path()));
    let gits: Vec<_> = gits.collect();
    // The git directories of worktrees that were added meanwhile.
    let added = gits.iter().map(|git| git.join("worktrees".as_ref()));
    let added = added.filter(|dir| !new_names.is_old(dir)).flat_map(|dir| {
        let entries = dir.as_path().read_dir().into_iter().flatten().flatten();
        entries.map(move |entry| dir.join(&entry.file_name())).collect::<Vec<_>>()
    });
    let added: Vec<_> = added.collect();
    let own = worktree.map(|worktree| &worktree.own);
    let there = gits.iter().copied().chain(now.heads.iter());
    run.committed.record(run.state_dir, there);
    for git in gits.into_iter().chain(bare).chain(own).chain(&added) {
        found.extend(git_state::sweep(git, unfinished, since));
    }
    // The innermost first: the directories above it must still be accessible.
    opened.into_iter().rev().for_each(Opened::close);
    if let Some(worktree) = worktree {
        found.extend(foreign_references(worktree));
        found.extend(foreign_parts(worktree));
        found.extend(foreign_head(worktree));
    }
    whole &= has_descriptors();
    if !whole {
        let what =
            "not everything could be searched for what the run left; the next run there, or \
                    `ringwall doctor`, searches again"
                .into();
        found.push(Tampering { path: context.workspace.to_string(), moved_to: None, what });
    }
    Left { tampering: found, build: now.build, whole }
}

/// Whether this process can open what a search needs. A run without namespaces shares the user's
/// limits, and the machine can be out of files.
pub(crate) fn has_descriptors() -> bool {
    const NEEDED: usize = 16;
    let opened: Vec<_> = (0..NEEDED).map_while(|_| File::open("/").ok()).collect();
    opened.len() == NEEDED
}

/// Whether a directory cannot be read for a reason that stays: it belongs to someone else, or no path
/// is long enough.
fn is_closed(dir: &Path) -> bool {
    dir.read_dir().is_err_and(|error| {
        matches!(
            error.kind(),
            ErrorKind::PermissionDenied | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
        )
    })
}

fn judge(marked: &Marked, new_names: &NewNames, committed: (&Committed, &Path)) -> Vec<Tampering> {
    let path = marked.path.as_path();
    if path.as_os_str().len() >= facts::PATH_MAX {
        // Nothing can be read there by its path, and no ordinary program works there.
        return vec![aside(path, "a protected name appeared, deeper than a path can be long")];
    }
    let hosts = |(git, _): (AbsPath, _)| new_names.is_only_the_hosts(&git);
    if repository(&marked.path).is_some_and(hosts) {
        return Vec::new();
    }
    let below = repository(&marked.path).map(|(_, below)| below);
    if below.is_some_and(|below| below == Path::new("worktrees"))
        && git_state::are_plain_worktrees(path)
    {
        return Vec::new();
    }
    let in_new = repository(&marked.path).filter(|(git, _)| !new_names.existed_before(git));
    match in_new {
        // A repository that the run created, or moved.
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
        _ if checkout::is_committed(committed, &marked.path) => Vec::new(),
        _ => vec![aside(path, "a protected name appeared")],
    }
}

/// Moves aside what the run wrote, and git reads or runs because of a configuration that was changed
/// while the run went on. What a configuration named before was protected.
fn named_later(
    path: &AbsPath,
    role: Role,
    new_names: &NewNames,
    since: SystemTime,
) -> Vec<Tampering> {
    let is_new = |path: &Path| is_new(path, since);
    let file = path.as_path();
    if new_names.is_old(path) || file.symlink_metadata().is_err() {
        return Vec::new();
    }
    if role == Role::Hooks && is_directory(path) {
        // The names of programs: a checkout, and what is a template of one, has other files as well.
        let is_hook = |hook: &Path| is_new(hook) && scan::is_hook(hook);
        let inside = ["", "hooks"].map(|name| file.join(name));
        return inside.iter().flat_map(|dir| foreign_hooks(dir, is_hook)).collect();
    }
    if is_directory(path) || !is_new(file) {
        return Vec::new();
    }
    vec![aside(file, "a file appeared that a git configuration names, and git reads or runs it")]
}

/// Moves aside what may run as a hook. `counts` says which entries are meant.
pub(crate) fn foreign_hooks(hooks: &Path, counts: impl Fn(&Path) -> bool) -> Vec<Tampering> {
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
    if dir.as_os_str().len() + 40 >= facts::PATH_MAX {
        return disarm_deep(dir);
    }
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

/// The same where paths are too long for system calls: everything that may name programs is moved.
fn disarm_deep(dir: &Path) -> Vec<Tampering> {
    let Some(opened) = Opened::new(dir) else { return Vec::new() };
    let there = |name: &&str| opened.look(name.as_ref()).is_some();
    let armed = ["config", "hooks", "commondir", "config.worktree"];
    let found = armed.iter().filter(|name| there(name)).map(|name| dir.join(name));
    let found = found.map(|path| {
        aside(&path, "a part of a git repository appeared, deeper than a path can be long")
    });
    let found = found.collect();
    opened.close();
    found
}

/// Whether a repository inside a `.git` directory is as old as the run. Nothing looks there before a
/// run, so each of the parts that make it one must be older.
fn is_old_inside_git(dir: &Path, since: SystemTime) -> bool {
    let inside = dir.ancestors().skip(1).any(|dir| dir.file_name().is_some_and(|it| it == ".git"));
    let parts = ["HEAD", "objects", "refs", "commondir"];
    inside && !parts.iter().any(|part| is_new(&dir.join(part), since))
}

/// Whether an entry was created, moved or changed since. The change time (`ctime`) cannot be set,
/// unlike the modification time.
pub(crate) fn is_new(path: &Path, since: SystemTime) -> bool {
    let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let changed = |file: std::fs::Metadata| (file.ctime(), file.ctime_nsec());
    let since = (since.as_secs().cast_signed(), i64::from(since.subsec_nanos()));
    path.symlink_metadata().is_ok_and(|file| changed(file) >= since)
}

/// References of other branches that appeared beside the worktree's own.
fn foreign_references(worktree: &Worktree) -> Vec<Tampering> {
    let mut found = Vec::new();
    let recorded = Recorded::read(worktree);
    for dir in &worktree.branch_dirs {
        let Ok(entries) = dir.as_path().read_dir() else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let known = worktree.others.iter().any(|(other, _)| other.as_path() == path);
            let own = worktree.own_refs.iter().any(|own| own.as_path() == path);
            // Another worktree has it checked out, and says so where the run cannot write.
            let name = path.strip_prefix(worktree.common.as_path()).unwrap_or(&path);
            let name = name.strip_prefix("logs").unwrap_or(name);
            let others = name.to_str().is_some_and(|name| recorded.is_checked_out(name));
            if !known && !own && !others {
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
    let before = format!("{}\n", worktree.head);
    let what = "this worktree was switched to another branch, and is back on its own; the files are \
                still the other branch's, and `git status` shows them";
    Some(replace(&head, before.as_bytes(), what))
}

#[cfg(test)]
mod tests;
