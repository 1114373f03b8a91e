//! [`Frozen`]: what was protected when a run began, to compare it with what is there at the end.
//!
//! A mount protects a name only as long as the file below it keeps its place. When a program on the
//! host replaces the file, which is how git and editors save, the kernel detaches the mount. So what
//! was replaced is compared at the end. A file that kept its place was out of reach of the run, and
//! whatever its content is now is the host's.

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use facts::git_config::without_harmful_additions;
use facts::read_bytes;
use model::AbsPath;
use plan::{Entry, Mark, Marked};
use serde::{Deserialize, Serialize};

use crate::aside::replace;
use crate::events::{Changed, Tampering};
use crate::lossless;
use crate::new_names::repository;
use crate::sweep::{foreign_hooks, is_new};

/// The largest file whose content is kept, and the most that is kept of all files.
const LARGEST: usize = 256 << 10;
const MOST: usize = 8 << 20;

/// What was protected when a run began.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Frozen(Vec<Was>);

/// One protected name as it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Was {
    #[serde(with = "lossless")]
    path: PathBuf,
    identity: Identity,
    /// Whether the file had no other name.
    #[serde(default)]
    alone: bool,
    /// The content of a small file, or the target of a link; one character for each byte.
    content: Option<String>,
}

/// Which file it is, whatever is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    /// Inodes are used again; the time at which one was created cannot be set.
    born: Option<SystemTime>,
}

impl Identity {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok()?;
        Some(Self { device: found.dev(), inode: found.ino(), born: found.created().ok() })
    }
}

/// What the comparison found.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// What was taken back because it would run a program.
    pub(crate) tampering: Vec<Tampering>,
    /// What was replaced, by the run or by a program on the host.
    pub(crate) changed: Vec<(Changed, Option<Vec<u8>>)>,
}

impl Frozen {
    /// Looks at the names that a sandbox protects from being written: those at which it mounts
    /// something.
    pub(crate) fn before<'a>(
        marked: &[Marked],
        mounts: impl IntoIterator<Item = &'a AbsPath>,
    ) -> Self {
        let mounts: HashSet<_> = mounts.into_iter().collect();
        let mut left = MOST;
        let was = |marked: &Marked| {
            let path = marked.path.as_path();
            let identity = Identity::of(path)?;
            let alone = path.symlink_metadata().is_ok_and(|found| is_alone(&found));
            let content = match &marked.entry {
                Entry::File => read_bytes(path, LARGEST.min(left)).ok(),
                Entry::Link(target) => Some(target.as_os_str().as_encoded_bytes().to_vec()),
                Entry::Directory => None,
            };
            left -= content.as_ref().map_or(0, Vec::len).min(left);
            let content = content.as_deref().map(lossless::text);
            Some(Was { path: path.to_path_buf(), identity, alone, content })
        };
        let is_protected = |it: &&Marked| it.mark == Mark::ReadOnly && mounts.contains(&it.path);
        Self(marked.iter().filter(is_protected).filter_map(was).collect())
    }

    /// Compares it with what is there now. `mounted` says whether mounts protected it.
    pub(crate) fn compare(&self, mounted: bool, since: SystemTime) -> Compared {
        let mut compared = Compared::default();
        for was in &self.0 {
            was.compare(mounted, since, &mut compared);
        }
        compared
    }
}

impl Was {
    fn compare(&self, mounted: bool, since: SystemTime, compared: &mut Compared) {
        let path = self.path.as_path();
        let now = path.symlink_metadata().ok();
        // A file with several names can be written under another one, which can then be removed.
        let alone = self.alone && now.as_ref().is_some_and(is_alone);
        let kept = Identity::of(path) == Some(self.identity);
        if kept && alone && mounted {
            return;
        }
        let Some(now) = now else {
            compared.report(self, "was removed while the run went on");
            return;
        };
        if now.is_dir() {
            if !kept && self.is_part_of_git(&["hooks"]) {
                let new = |hook: &Path| is_new(hook, since);
                compared.tampering.extend(foreign_hooks(path, new));
            } else if !kept {
                compared.report(self, "was replaced while the run went on");
            }
            return;
        }
        let content = if now.is_symlink() {
            std::fs::read_link(path).ok().map(|to| to.into_os_string().into_encoded_bytes())
        } else {
            read_bytes(path, LARGEST).ok()
        };
        let before = self.content.as_deref().and_then(lossless::bytes);
        match (before, content) {
            (Some(before), Some(content)) if before == content => {}
            // Too large to be compared, as before.
            (None, None) if kept => {}
            (Some(before), content) if self.is_part_of_git(&["config", "config.worktree"]) => {
                let clean = match &content {
                    Some(content) if !now.is_symlink() => {
                        without_harmful_additions(&before, content)
                    }
                    _ => Some(before),
                };
                compared.tampering.extend(clean.map(|clean| self.disarm(&clean)));
            }
            _ => compared.report(self, "was replaced while the run went on"),
        }
    }

    fn is_part_of_git(&self, names: &[&str]) -> bool {
        let Ok(path) = AbsPath::lexical(&self.path) else { return false };
        let below = repository(&path).map(|(_, below)| below);
        below.is_some_and(|below| names.iter().any(|name| below == Path::new(name)))
    }

    /// Puts a configuration without programs in place of one that names programs which it did not
    /// name before. The other is kept under another name.
    fn disarm(&self, clean: &[u8]) -> Tampering {
        let what = "a git configuration was changed while the run went on, and has settings that it \
                    did not have before and that may run a program";
        replace(&self.path, clean, what)
    }
}

/// Whether a file has one name. Directories always do.
fn is_alone(found: &Metadata) -> bool {
    found.is_dir() || found.nlink() == 1
}

impl Compared {
    fn report(&mut self, was: &Was, what: &str) {
        let changed =
            Changed { path: was.path.display().to_string(), what: what.into(), look: None };
        self.changed.push((changed, was.content.as_deref().and_then(lossless::bytes)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "[core]\n\tbare = false\n";
    const EVIL: &str = "[core]\n\tbare = false\n\tfsmonitor = ./evil\n";
    const NOTED: &str = "[core]\n\tbare = false\n[branch \"x\"]\n\tremote = origin\n";

    /// Changes a file during a run. Returns what was taken back, and what was reported.
    fn changed(name: &str, change: impl Fn(&Path), mounted: bool) -> (String, usize, usize) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, OLD).unwrap();
        let marked = Marked {
            path: AbsPath::lexical(&path).unwrap(),
            mark: Mark::ReadOnly,
            entry: Entry::File,
        };
        let frozen = Frozen::before(std::slice::from_ref(&marked), [&marked.path]);
        let text = serde_json::to_string(&frozen).unwrap();
        change(&path);
        let read = serde_json::from_str::<Frozen>(&text).unwrap();
        let compared = read.compare(mounted, SystemTime::now());
        let now = std::fs::read_to_string(&path).unwrap_or_default();
        (now, compared.tampering.len(), compared.changed.len())
    }

    fn replace(with: &'static str) -> impl Fn(&Path) {
        move |path| {
            std::fs::write(path.with_extension("new"), with).unwrap();
            std::fs::rename(path.with_extension("new"), path).unwrap();
        }
    }

    #[test]
    fn only_what_may_have_been_the_run_is_reported_and_only_programs_are_taken_back() {
        let write = |path: &Path| std::fs::write(path, EVIL).unwrap();
        for (name, change, mounted, expected) in [
            (".git/config", &replace(EVIL) as &dyn Fn(&Path), true, (OLD, 1, 0)),
            (".git/config", &replace(NOTED), true, (NOTED, 0, 0)),
            (".git/config", &replace(OLD), true, (OLD, 0, 0)),
            // The mount was in its place: only the host can have written it.
            (".git/config", &write, true, (EVIL, 0, 0)),
            (".git/config", &write, false, (OLD, 1, 0)),
            (".envrc", &replace(EVIL), true, (EVIL, 0, 1)),
            (".envrc", &replace(OLD), true, (OLD, 0, 0)),
            (".envrc", &write, true, (EVIL, 0, 0)),
            (".envrc", &|path: &Path| std::fs::remove_file(path).unwrap(), true, ("", 0, 1)),
        ] {
            let (now, tampering, reported) = changed(name, change, mounted);
            assert_eq!((&*now, tampering, reported), expected, "{name}");
        }
    }

    #[test]
    fn a_file_with_two_names_is_compared_although_it_kept_its_place() {
        let change = |path: &Path| {
            std::fs::hard_link(path, path.with_extension("other")).unwrap();
            std::fs::write(path.with_extension("other"), EVIL).unwrap();
        };
        assert_eq!(changed(".git/config", change, true), (OLD.into(), 1, 0));
    }

    #[test]
    fn a_file_that_had_two_names_is_compared_although_it_has_one_now() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (path, other) = (dir.join(".git/config"), dir.join("other"));
        std::fs::create_dir(dir.join(".git")).unwrap();
        std::fs::write(&path, OLD).unwrap();
        std::fs::hard_link(&path, &other).unwrap();
        let at = AbsPath::lexical(&path).unwrap();
        let marked = Marked { path: at.clone(), mark: Mark::ReadOnly, entry: Entry::File };
        let frozen = Frozen::before(&[marked], [&at]);
        std::fs::write(&other, EVIL).unwrap();
        std::fs::remove_file(&other).unwrap();
        assert_eq!(frozen.compare(true, SystemTime::now()).tampering.len(), 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), OLD);
    }
}
