//! Protected names that are created during a run: which may be created, and which may not.
//!
//! A run may create its own repository. Git then writes names that are protected everywhere else,
//! and what it writes there is harmless as long as it names no program.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use model::AbsPath;
use plan::{Entry, Mark, Marked, Protections, Worktree};
use sandbox::Operation;

/// The protected names that existed before the run.
pub(crate) struct NewNames {
    before: BTreeSet<AbsPath>,
    /// Directories that are read-only as a whole: their contents are as old as they are.
    read_only: BTreeSet<AbsPath>,
    /// Protected paths that did not exist, but that a link pointed to.
    dangling: BTreeSet<AbsPath>,
    /// Directories that git took for repositories although their names do not end in `.git`.
    repositories: BTreeSet<AbsPath>,
    worktree: Option<Worktree>,
    /// When the run began.
    since: SystemTime,
    /// Whether the run changes nothing without a call that is judged here. Then every git directory
    /// that it creates is known.
    pub(crate) intercepted: bool,
    /// The git directories that the run created, as far as calls were intercepted.
    made: RefCell<Made>,
}

impl NewNames {
    /// The names that existed before a run, as the survey found them.
    pub(crate) fn before(
        marked: &[Marked],
        dangling: &[AbsPath],
        repositories: &[AbsPath],
        worktree: Option<&Worktree>,
        since: SystemTime,
    ) -> Self {
        let whole =
            |marked: &&Marked| marked.mark == Mark::ReadOnly && marked.entry == Entry::Directory;
        let read_only = marked.iter().filter(whole).map(|marked| marked.path.clone());
        let names = marked.iter().map(|marked| marked.path.clone());
        let (dangling, repositories) = (dangling.to_vec(), repositories.to_vec());
        Self::new(names, read_only, dangling, repositories, worktree, since)
    }

    pub(crate) fn new(
        before: impl IntoIterator<Item = AbsPath>,
        read_only: impl IntoIterator<Item = AbsPath>,
        dangling: impl IntoIterator<Item = AbsPath>,
        repositories: impl IntoIterator<Item = AbsPath>,
        worktree: Option<&Worktree>,
        since: SystemTime,
    ) -> Self {
        let dangling: BTreeSet<_> = dangling.into_iter().collect();
        // The target of a link belongs to the name that existed.
        let before = before.into_iter().chain(dangling.iter().cloned()).collect();
        let (read_only, worktree) = (read_only.into_iter().collect(), worktree.cloned());
        let repositories = repositories.into_iter().collect();
        Self {
            before,
            read_only,
            dangling,
            repositories,
            worktree,
            since,
            intercepted: false,
            made: RefCell::default(),
        }
    }

    /// Protected paths that did not exist, but that a link pointed to.
    pub(crate) fn dangling(&self) -> impl Iterator<Item = &AbsPath> {
        self.dangling.iter()
    }

    /// The git directories that the run created, as far as calls were watched.
    pub(crate) fn made(&self) -> BTreeSet<AbsPath> {
        self.made.borrow().paths.keys().cloned().collect()
    }

    /// Whether a name existed before the run.
    pub(crate) fn is_old(&self, path: &AbsPath) -> bool {
        self.before.contains(path) || self.read_only.iter().any(|dir| path.is_within(dir))
    }

    /// Whether git took a directory for a repository before the run, whatever it is called.
    pub(crate) fn was_repository(&self, dir: &AbsPath) -> bool {
        self.repositories.contains(dir)
    }

    /// Whether a repository is not one that the run has created.
    pub(crate) fn is_old_repository(&self, git: &AbsPath) -> bool {
        self.existed_before(git) || self.is_hosts_repository(git)
    }

    /// Whether a repository existed before the run.
    pub(crate) fn existed_before(&self, git: &AbsPath) -> bool {
        // A bare repository is known by its contents. A repository in a tree that is not scanned
        // beforehand is known by its creation time, which no program can set.
        self.before.range(git..).next().is_some_and(|path| path.is_within(git))
            || made(git).is_some_and(|made| made + COARSE < self.since)
    }

    /// Whether a repository was created during the run by a program on the host.
    pub(crate) fn is_hosts_repository(&self, git: &AbsPath) -> bool {
        self.intercepted && is_directory(git) && !self.made.borrow().has(git)
    }

    /// Whether nothing of such a repository came from the run: every call that would change it was
    /// denied, and no directory of the run was moved to it or to a directory above.
    pub(crate) fn is_only_the_hosts(&self, git: &AbsPath) -> bool {
        self.is_hosts_repository(git) && !self.made.borrow().was_moved_to(git)
    }

    /// Takes note that something is about to be moved: a repository of the run stays one under its new
    /// path. False when there is no room for that.
    pub(crate) fn moves(&self, from: &AbsPath, to: &AbsPath) -> bool {
        let mut made = self.made.borrow_mut();
        if is_directory(from) {
            made.move_to(to);
        }
        let inside = made.paths.range(from.clone()..).take_while(|(path, _)| path.is_within(from));
        let inside: Vec<_> = inside.map(|(path, time)| (path.clone(), *time)).collect();
        inside.into_iter().all(|(path, time)| {
            let below = path.as_path().strip_prefix(from.as_path()).unwrap_or(Path::new(""));
            AbsPath::lexical(&to.as_path().join(below)).is_ok_and(|path| made.insert(path, time))
        })
    }

    /// Whether no link may come to a path: git on the host writes through the links that it finds in a
    /// git directory, and makes none there itself.
    pub(crate) fn keeps_links_out(path: &AbsPath) -> bool {
        let mut above = path.ancestors().skip(1);
        above.any(|dir| {
            let name = dir.as_path().file_name().unwrap_or_default();
            name == ".git" || facts::is_repository(dir.as_path())
        })
    }

    /// Whether an operation on a path is denied although the directory is writable.
    pub(crate) fn forbids(
        &self,
        protections: &Protections<'_>,
        path: &AbsPath,
        operation: Operation,
    ) -> bool {
        if self.dangling.contains(path) {
            return true;
        }
        if operation == Operation::SymbolicLink
            && Self::keeps_links_out(path)
            && !is_trial_link(path)
        {
            return true;
        }
        let bare = path.as_path().as_os_str().as_bytes().ends_with(b".git");
        if operation == Operation::MakeDirectory
            && bare
            && path.as_path().symlink_metadata().is_err()
            && !self.made.borrow_mut().insert(path.clone(), SystemTime::now())
        {
            // It would not be checked at the end.
            return true;
        }
        if let Some(worktree) = &self.worktree {
            if let Some(own) = worktree.writes(path) {
                return !own;
            }
            if worktree.is_object(path) {
                return changes_object(path, operation);
            }
        }
        let moves =
            matches!(operation, Operation::Rename | Operation::SymbolicLink | Operation::Link);
        let mark = protections.mark(path);
        let shadows = moves && !self.is_new_repository(path) && protections.shadows(path);
        match mark {
            None => shadows || self.is_inside_read_only(protections, path, operation),
            Some(Mark::Hidden) => true,
            Some(Mark::Pinned) => match operation {
                // If the directory exists, the call creates nothing.
                Operation::MakeDirectory => false,
                // Copying and unpacking set the times, mode and owner of what they create.
                Operation::ChangeTimes
                | Operation::ChangeMode
                | Operation::ChangeOwner
                | Operation::ChangeAttributes => self.is_old_repository(path),
                // A directory that is not empty cannot be removed; git often tries.
                Operation::Remove => self.is_old(path) && !is_directory(path),
                _ => true,
            },
            Some(Mark::ReadOnly) => !self.is_part_of_new_repository(path, operation),
        }
    }

    /// Whether a path is the lock that git takes to check whether a reference is packed, with every
    /// commit in a linked worktree.
    pub(crate) fn is_packed_refs_lock(&self, path: &AbsPath) -> bool {
        let lock = |worktree: &Worktree| worktree.common.join("packed-refs.lock".as_ref());
        self.worktree.as_ref().map(lock).as_ref() == Some(path)
    }

    /// Whether a directory above is read-only as a whole.
    fn is_inside_read_only(
        &self,
        protections: &Protections<'_>,
        path: &AbsPath,
        operation: Operation,
    ) -> bool {
        path.ancestors().skip(1).take(8).any(|dir| {
            protections.mark(&dir) == Some(Mark::ReadOnly)
                && !self.is_part_of_new_repository(path, operation)
        })
    }

    fn is_new_repository(&self, path: &AbsPath) -> bool {
        repository(path).is_some_and(|(git, _)| !self.is_old_repository(&git))
    }

    /// Whether git itself would write this into a repository that it creates.
    fn is_part_of_new_repository(&self, path: &AbsPath, operation: Operation) -> bool {
        let Some((git, below)) = repository(path) else { return false };
        if self.is_old_repository(&git) {
            return false;
        }
        let sample = below.extension().is_some_and(|ending| ending == "sample");
        operation == Operation::Remove
            || below == Path::new("config")
            || below == Path::new("hooks")
            || (below.starts_with("hooks") && sample)
            || below == Path::new("objects/info/alternates")
    }
}

/// The git directories that a run created, or tried to: a call that fails is not known here. So each
/// has the time of the call, which its creation follows at once.
#[derive(Debug, Default)]
struct Made {
    paths: BTreeMap<AbsPath, SystemTime>,
    bytes: usize,
    /// How many were turned away since there was no room.
    refused: usize,
    /// Where the run moved directories: what they contain is not known.
    destinations: BTreeSet<AbsPath>,
    /// Whether more were moved than there is room for.
    moved_more: bool,
}

/// How many git directories of a run are remembered, and how many bytes of paths.
const MOST_MADE: usize = 20_000;
const MOST_MADE_BYTES: usize = 4 << 20;

impl Made {
    /// Adds a path. False when there is no room for it.
    fn insert(&mut self, path: AbsPath, now: SystemTime) -> bool {
        let bytes = path.as_path().as_os_str().len();
        if let Some(time) = self.paths.get_mut(&path) {
            *time = now;
            return true;
        }
        if !self.has_room(bytes) {
            // To look at all of them takes time, so not each call does.
            if self.refused.is_multiple_of(MOST_MADE / 4) {
                self.paths.retain(|path, _| is_directory(path));
                let kept = self.paths.keys().chain(&self.destinations);
                let lengths = kept.map(|path| path.as_path().as_os_str().len());
                self.bytes = lengths.sum();
            }
            self.refused = self.refused.wrapping_add(1);
        }
        let room = self.has_room(bytes);
        if room {
            self.bytes += bytes;
            self.paths.insert(path, now);
        }
        room
    }

    /// Whether a directory is one that the run created, and not one that the host put in its place.
    fn has(&self, path: &AbsPath) -> bool {
        let Some(call) = self.paths.get(path) else { return false };
        made(path).is_none_or(|made| made + COARSE >= *call && made <= *call + AT_ONCE)
    }

    fn move_to(&mut self, path: &AbsPath) {
        let bytes = path.as_path().as_os_str().len();
        if self.destinations.contains(path) {
            return;
        }
        self.moved_more |= !self.has_room(bytes) || self.destinations.len() >= MOST_MADE;
        if !self.moved_more {
            self.bytes += bytes;
            self.destinations.insert(path.clone());
        }
    }

    /// Whether the run moved a directory to a path or to one above it, or may have.
    fn was_moved_to(&self, path: &AbsPath) -> bool {
        self.moved_more || path.ancestors().any(|dir| self.destinations.contains(&dir))
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.paths.len() < MOST_MADE && self.bytes + bytes <= MOST_MADE_BYTES
    }
}

/// Whether `git init` would make a link of this name, to learn whether there are links: `.git/tXXXXXX`.
/// It writes nothing through it, and removes it at once.
fn is_trial_link(path: &AbsPath) -> bool {
    let name = path.as_path().file_name().unwrap_or_default().as_bytes();
    let directory = path.parent();
    directory.as_path().file_name().is_some_and(|name| name.as_bytes().ends_with(b".git"))
        && matches!(name, [b't', rest @ ..] if rest.len() == 6 && rest.iter().all(u8::is_ascii_alphanumeric))
}

/// How long the supervisor may take from judging a call to making it.
const AT_ONCE: Duration = Duration::from_secs(1);

/// How far the times of files may be behind the clock.
const COARSE: Duration = Duration::from_millis(50);

/// When something was created, if the file system knows.
fn made(path: &AbsPath) -> Option<SystemTime> {
    path.as_path().symlink_metadata().ok()?.created().ok()
}

/// Whether a directory exists there, and not a link to one.
pub(crate) fn is_directory(path: &AbsPath) -> bool {
    path.as_path().symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Whether an object that other branches may need would be changed. New objects may be added.
fn changes_object(path: &AbsPath, operation: Operation) -> bool {
    match operation {
        Operation::MakeDirectory | Operation::ChangeTimes => false,
        Operation::Create | Operation::Link | Operation::Rename => {
            path.as_path().symlink_metadata().is_ok()
        }
        _ => true,
    }
}

/// The git directory that contains a path, and the rest of the path. Bare ones are called
/// `name.git`.
pub(crate) fn repository(path: &AbsPath) -> Option<(AbsPath, PathBuf)> {
    let components: Vec<_> = path.as_path().components().collect();
    let ends = |component: &Component<'_>| component.as_os_str().as_bytes().ends_with(b".git");
    let plain = components.iter().position(|part| part.as_os_str() == ".git");
    let at = plain.or_else(|| components.iter().rposition(ends))?;
    let git: PathBuf = components.iter().take(at + 1).collect();
    let below = components.iter().skip(at + 1).collect();
    Some((AbsPath::lexical(&git).ok()?, below))
}

#[cfg(test)]
mod tests;
