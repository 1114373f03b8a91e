//! [`References`]: all references of a linked worktree's repository, before and after a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use facts::{Step, Visit, read_bytes};
use model::AbsPath;
use plan::Worktree;
use serde::{Deserialize, Serialize};

use crate::frozen::Identity;
use crate::lossless;

/// The largest list of packed references, or log, that is read.
const LARGEST: usize = 64 << 20;

/// The value of every reference by its name, and which files their logs are. Names and values have
/// one character for each byte.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct References {
    values: BTreeMap<String, String>,
    logs: BTreeMap<String, Identity>,
    /// How long the logs are of what is checked out: what is there already says nothing about a run.
    lengths: BTreeMap<String, usize>,
}

/// The references that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Those that the run may have moved, with the value that each had.
    pub(crate) unknown: Vec<(String, Option<String>)>,
    /// Those that a program on the host moved.
    pub(crate) by_host: Vec<String>,
}

impl Moved {
    /// The names of those that the run may have moved.
    pub(crate) fn unknown_names(&self) -> impl Iterator<Item = String> {
        self.unknown.iter().map(|(name, _)| name.clone())
    }
}

impl References {
    /// Reads all references, but for the worktree's own.
    pub(crate) fn read(worktree: &Worktree) -> Self {
        let common = worktree.common.as_path();
        let own = |path: &Path| {
            worktree.own_refs.iter().any(|own| own.as_path() == path)
                || path.starts_with(worktree.own.as_path())
        };
        let mut read = Self::default();
        let mut add = |name: &Path, value: Vec<u8>| {
            let name = lossless::text(name.as_os_str().as_encoded_bytes());
            read.values.entry(name).or_insert_with(|| lossless::text(value.trim_ascii()));
        };
        for path in files(&worktree.common.join("refs".as_ref())) {
            let Ok(name) = path.strip_prefix(common) else { continue };
            // The lock of a reference that is just being moved is none.
            if !own(&path) && path.extension().is_none_or(|ending| ending != "lock") {
                add(name, value(&path));
            }
        }
        for line in value(&common.join("packed-refs")).split(|byte| *byte == b'\n') {
            let mut words = line.splitn(2, |byte| *byte == b' ');
            let (Some(value), Some(name)) = (words.next(), words.next()) else { continue };
            let name = lossless::text(name);
            if name.starts_with("refs/") && !own(&common.join(&name)) {
                add(Path::new(&name), value.to_vec());
            }
        }
        // In a repository with `reftable`, this file says which tables are valid.
        for name in ["HEAD", "reftable/tables.list"] {
            add(Path::new(name), value(&common.join(name)));
        }
        for dir in common.join("worktrees").read_dir().into_iter().flatten().flatten() {
            let head = dir.path().join("HEAD");
            if let (false, Ok(name)) = (own(&head), head.strip_prefix(common)) {
                add(name, value(&head));
            }
        }
        read.logs = logs(worktree);
        let lengths = head_logs(worktree).into_iter().map(|(name, text)| (name, text.len()));
        read.lengths = lengths.collect();
        read
    }

    /// Compares it with what is there now.
    pub(crate) fn compare(&self, worktree: &Worktree) -> Moved {
        let now = Self::read(worktree);
        let mut moved = Moved::default();
        if now.values == self.values {
            return moved;
        }
        let recorded = Recorded::read(worktree);
        let names: BTreeSet<_> = self.values.keys().chain(now.values.keys()).collect();
        for name in names {
            let (before, after) = (self.values.get(name), now.values.get(name));
            if before == after {
                continue;
            }
            if recorded.by_host(name, after, self, &now, worktree) {
                moved.by_host.push(name.clone());
            } else {
                moved.unknown.push((name.clone(), before.cloned()));
            }
        }
        moved
    }
}

/// What git on the host recorded where the run cannot write.
pub(crate) struct Recorded {
    /// The logs of what was checked out, of all worktrees but the run's own, by name.
    logs: Vec<(String, Vec<u8>)>,
    /// The branches that are checked out there.
    heads: Vec<Vec<u8>>,
}

impl Recorded {
    pub(crate) fn read(worktree: &Worktree) -> Self {
        let dirs = other_git_dirs(worktree);
        Self {
            logs: head_logs(worktree),
            heads: dirs.iter().map(|dir| value(&dir.join("HEAD"))).collect(),
        }
    }

    /// Whether a branch is checked out in another worktree.
    pub(crate) fn is_checked_out(&self, name: &str) -> bool {
        let head = format!("ref: {name}");
        self.heads.iter().any(|text| text.trim_ascii() == head.as_bytes())
    }

    fn by_host(
        &self,
        name: &str,
        after: Option<&String>,
        before: &References,
        now: &References,
        worktree: &Worktree,
    ) -> bool {
        let path = worktree.common.as_path().join(name);
        let reachable = |dir: &AbsPath| path.starts_with(dir.as_path());
        // Elsewhere the repository is read-only as a whole.
        if !worktree.branch_dirs.iter().any(reachable) {
            return true;
        }
        let Some(after) = after else { return false };
        // A log that kept its place was protected all the time, and git on the host adds to it.
        let log = before.logs.get(name).filter(|log| now.logs.get(name) == Some(log));
        let own_log = log.map(|_| value(&worktree.common.as_path().join("logs").join(name)));
        let is_last = |log: &Vec<u8>| {
            let last = log.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
            last.is_some_and(|line| is_new_value(line, after))
        };
        let records = |(name, log): &(String, Vec<u8>)| {
            let before = before.lengths.get(name).copied().unwrap_or_default();
            let since = log.get(before..).unwrap_or_default();
            since.split(|byte| *byte == b'\n').any(|line| is_new_value(line, after))
        };
        own_log.is_some_and(|log| is_last(&log)) || self.logs.iter().any(records)
    }
}

/// The shared git directory and those of the other worktrees.
fn other_git_dirs(worktree: &Worktree) -> Vec<PathBuf> {
    let common = worktree.common.as_path();
    let others = common.join("worktrees").read_dir().into_iter().flatten().flatten();
    let others = others.map(|entry| entry.path()).filter(|dir| dir != worktree.own.as_path());
    others.chain([common.to_path_buf()]).collect()
}

/// The logs of what was checked out, but for the worktree's own.
fn head_logs(worktree: &Worktree) -> Vec<(String, Vec<u8>)> {
    let log = |dir: PathBuf| {
        let path = dir.join("logs/HEAD");
        (lossless::text(path.as_os_str().as_encoded_bytes()), value(&path))
    };
    other_git_dirs(worktree).into_iter().map(log).collect()
}

/// Whether a line of a log says that a reference got this value.
fn is_new_value(line: &[u8], value: &str) -> bool {
    line.split(|byte| *byte == b' ').nth(1) == Some(value.as_bytes())
}

/// Which files the logs of branches beside the worktree's own are.
fn logs(worktree: &Worktree) -> BTreeMap<String, Identity> {
    let base = worktree.common.join("logs".as_ref());
    let dirs = worktree.branch_dirs.iter().filter(|dir| dir.is_within(&base));
    let files = dirs.flat_map(files);
    let named = files.filter_map(|path| {
        let name = path.strip_prefix(base.as_path()).ok()?;
        Some((lossless::text(name.as_os_str().as_encoded_bytes()), Identity::of(&path)?))
    });
    named.collect()
}

/// All files in a tree.
fn files(dir: &AbsPath) -> Vec<PathBuf> {
    let mut files = Vec::new();
    facts::walk(dir, &mut |visit| {
        if let Visit::Entry(path, kind) = visit
            && !kind.is_dir()
        {
            files.push(path.as_path().to_path_buf());
        }
        Step::Into
    });
    files
}

/// The content of a file, or the target of a link.
fn value(path: &Path) -> Vec<u8> {
    match std::fs::read_link(path) {
        Ok(target) => target.into_os_string().into_encoded_bytes(),
        Err(_) => read_bytes(path, LARGEST).unwrap_or_default(),
    }
}
