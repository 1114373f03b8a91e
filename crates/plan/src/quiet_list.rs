//! [`QuietList`]: hidden paths that many programs look for without need. Such an attempt fails and
//! is logged, and never stops the run.

use model::AbsPath;

use super::toolchain::{
    QUIET_HOME, QUIET_NAMES, QUIET_PARENTS, QUIET_SYSTEM, QUIET_TRIES, QUIET_WRITES, SECRET_SYSTEM,
    matches_name,
};
use policy::pattern::Case;
use policy::protected::{protecting, secret, shadows};
use policy::{Context, Policy};

/// The quiet list of a run.
pub struct QuietList<'a> {
    policy: &'a Policy,
    context: &'a Context,
}

impl<'a> QuietList<'a> {
    /// Takes the user's own entries from the policy.
    pub fn new(policy: &'a Policy, context: &'a Context) -> Self {
        Self { policy, context }
    }

    /// Whether programs commonly look for a path without need.
    pub fn covers(&self, path: &AbsPath) -> bool {
        let by_user = self.policy.filesystem.quiet.iter().any(|rule| {
            let prefix = rule.value.prefix(&self.context.workspace);
            rule.value.covers(path, prefix.as_ref(), Case::Exact)
        });
        by_user || self.above_workspace(path) || self.in_home(path) || self.in_system(path)
    }

    /// Whether programs commonly connect to a socket without need.
    pub fn covers_connection(&self, path: &AbsPath) -> bool {
        // `git status` asks it what has changed, and looks itself if no one answers.
        self.covers(path) || path.as_path().ends_with(".git/fsmonitor--daemon.ipc")
    }

    /// Whether programs commonly write a path without need.
    pub fn covers_write(&self, path: &AbsPath) -> bool {
        let common = |name: &std::ffi::OsStr| QUIET_WRITES.iter().any(|quiet| name == *quiet);
        let inside = path.is_within(&self.context.workspace);
        is_index_refresh(path)
            || (!inside && path.as_path().components().any(|part| common(part.as_os_str())))
    }

    /// Whether programs commonly create this directory without need: they create one for their
    /// settings before they have any. Directories that hold secrets, or that other programs read,
    /// are never quiet.
    pub fn covers_new_directory(&self, directory: &AbsPath) -> bool {
        let home = &self.context.home;
        let mut parents = QUIET_PARENTS.iter().map(|place| home.as_path().join(place));
        if self.covers_write(directory) || parents.any(|place| place == directory.as_path()) {
            return true;
        }
        let name = directory.as_path().file_name().unwrap_or_default();
        let above = self.context.workspace.is_within(&directory.parent());
        if above && QUIET_TRIES.iter().any(|tried| matches_name(tried.as_ref(), name)) {
            return true;
        }
        let dotted = name.as_encoded_bytes().starts_with(b".");
        let parent = directory.parent();
        let in_config_dir = (parent == *home && dotted)
            || QUIET_PARENTS.iter().any(|place| parent.as_path() == home.as_path().join(place));
        let guarded = protecting(directory).or_else(|| shadows(directory)).is_some()
            || secret(directory, home).is_some()
            || self.context.own_files.iter().any(|own| own.is_within(directory));
        in_config_dir && !guarded
    }

    /// Whether only someone who wants a well-known secret touches a path, the system's or the user's.
    pub fn is_secret(&self, path: &AbsPath) -> bool {
        is_system_secret(path) || secret(path, &self.context.home).is_some()
    }

    /// Files that programs look for in every directory above the one they work in.
    fn above_workspace(&self, path: &AbsPath) -> bool {
        let above = self.context.workspace.as_path().ancestors().skip(1);
        above.into_iter().any(|dir| {
            let Ok(below) = path.as_path().strip_prefix(dir) else { return false };
            let first = below.components().next();
            first.is_some_and(|name| QUIET_NAMES.iter().any(|quiet| name.as_os_str() == *quiet))
        })
    }

    /// A path of the system, unless it contains the workspace or the home directory.
    fn in_system(&self, path: &AbsPath) -> bool {
        if is_system_secret(path) {
            return false;
        }
        let holds = |place: &str, dir: &AbsPath| dir.as_path().starts_with(place);
        QUIET_SYSTEM.iter().any(|quiet| {
            path.as_path().starts_with(quiet)
                && !holds(quiet, &self.context.home)
                && !holds(quiet, &self.context.workspace)
        })
    }

    fn in_home(&self, path: &AbsPath) -> bool {
        let Ok(below) = path.as_path().strip_prefix(self.context.home.as_path()) else {
            return false;
        };
        // A secret is never quiet, even if the directory around it is.
        let common = QUIET_HOME.iter().any(|quiet| below.starts_with(quiet));
        common && (secret(path, &self.context.home).is_none() || is_commonly_read(below))
    }
}

/// `/etc/shadow-` and `/etc/sudoers.d` are as secret as the files they are named after.
fn is_system_secret(path: &AbsPath) -> bool {
    let text = path.as_path().to_string_lossy();
    SECRET_SYSTEM.iter().any(|secret| text.starts_with(secret))
}

/// Whether this is the lock with which `git status` refreshes the index of a submodule or of
/// another worktree. Git does so unasked and does not need it.
fn is_index_refresh(path: &AbsPath) -> bool {
    let names: Vec<_> = path.as_path().iter().collect();
    let others = ["modules", "worktrees"];
    let kept = others.iter().any(|place| names.windows(2).any(|pair| *pair == [".git", place]));
    kept && names.last().is_some_and(|name| *name == "index.lock")
}

/// Files that hold a secret for some users, and that programs open for all.
fn is_commonly_read(below: &std::path::Path) -> bool {
    [".npmrc", ".netrc", ".bash_history", ".zsh_history"].iter().any(|name| below.starts_with(name))
}
