//! [`Later`]: names that act only when the user does something with a tool, such as an editor's
//! settings. A run can write them, and what it wrote is judged here.
//!
//! What was in a commit of the user's repository before the run, at the same path, stays. Anything else
//! is kept aside, and what was there before comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use model::{AbsPath, Digest};
use plan::{Entry, Mark, Marked};
use serde::{Deserialize, Serialize};

use crate::aside::aside;
use crate::committed::{Committed, Content};
use crate::events::Tampering;
use crate::kept::{Keeper, KeptFile, LARGEST};
use crate::lossless;
use crate::place::{Place, Stamp, There};

/// The largest file that can be put back, and the most of all of them. What is larger cannot be written
/// by the run.
const LARGEST_BEFORE: usize = 4 << 20;
const MOST_BEFORE: usize = 32 << 20;
/// The most that is read of what a run left.
const MOST_AFTER: usize = 512 << 20;
/// How long the user's commits are searched at the end of a run.
const PATIENCE: Duration = Duration::from_secs(20);

/// Such names as they were before a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Later(Vec<Was>);

/// A file as it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Was {
    #[serde(with = "lossless")]
    path: PathBuf,
    stamp: Stamp,
    mode: u32,
    /// One character for each byte.
    content: String,
}

impl Later {
    /// Reads the files that were found. Those that cannot be put back are marked: nothing may write
    /// them.
    pub(crate) fn before(files: Vec<AbsPath>, marked: &mut Vec<Marked>) -> Self {
        let mut left = MOST_BEFORE;
        let mut was = Vec::new();
        for path in files {
            let found = Place::at(path.as_path())
                .and_then(|place| place.read(LARGEST_BEFORE.min(left)))
                .ok()
                .flatten();
            // Another name of the file could be written.
            match found.filter(|found| found.links == 1) {
                Some(There { content, mode, stamp, .. }) => {
                    left -= content.len().min(left);
                    let content = lossless::text(&content);
                    was.push(Was { path: path.as_path().to_path_buf(), stamp, mode, content });
                }
                None => marked.push(Marked { path, mark: Mark::ReadOnly, entry: Entry::File }),
            }
        }
        Self(was)
    }

    /// Judges what is there now, and puts back what was there before.
    pub(crate) fn judge(
        &self,
        now: &BTreeSet<AbsPath>,
        (committed, state): (&Committed, &Path),
        since: SystemTime,
        keeper: &mut Keeper<'_>,
    ) -> Vec<Tampering> {
        let mut found = Vec::new();
        let was: BTreeMap<_, _> = self.0.iter().map(|was| (was.path.as_path(), was)).collect();
        let mut changed = Vec::new();
        let mut left = MOST_AFTER;
        for path in now {
            let path = path.as_path();
            let was = was.get(path).copied();
            let place = Place::at(path);
            let stamp = place.as_ref().ok().and_then(Place::stamp);
            if was.is_some_and(|was| Some(was.stamp) == stamp) {
                continue;
            }
            let read = place.and_then(|place| Ok((place.read(LARGEST.min(left))?, place)));
            match read {
                Ok((Some(there), place)) => {
                    left -= there.content.len().min(left);
                    if was.is_none_or(|was| !was.is(&there)) {
                        changed.push(Left { path, was, place, there });
                    } else if there.links > 1 {
                        let _ = place.replace(&there.content, there.mode);
                    }
                }
                Ok((None, _)) => {}
                Err(_) => found.push(aside(path, "a file that cannot be judged appeared")),
            }
        }
        // A commit has files there, never a directory.
        let replaced = self.0.iter().filter(|was| was.path.is_dir() && !was.path.is_symlink());
        let replaced = replaced.filter(|was| std::fs::remove_dir(&was.path).is_err());
        found.extend(
            replaced.map(|was| {
                aside(&was.path, "a directory appeared in the place of a protected file")
            }),
        );
        let removed: Vec<_> = self.0.iter().filter(|was| was.is_removed()).collect();
        let contents: Vec<_> = changed
            .iter()
            .map(Left::content)
            .chain(removed.iter().flat_map(|was| was.removal()))
            .collect();
        if contents.is_empty() {
            return found;
        }
        let texts = contents.iter().map(|(path, bytes, executable)| Content {
            path,
            bytes: bytes.as_deref(),
            executable: *executable,
        });
        let known = committed.have(state, &texts.collect::<Vec<_>>(), Instant::now() + PATIENCE);
        let (of_changed, of_removed) = known.split_at(changed.len().min(known.len()));
        for (left, known) in changed.iter().zip(of_changed) {
            if !known {
                found.extend(left.set_aside(since, keeper));
            } else if left.there.links > 1 {
                // Another name of it could be written later.
                let _ = left.place.replace(&left.there.content, left.there.mode);
            }
        }
        // A commit has the content, and one has none there.
        for (was, known) in removed.iter().zip(of_removed.chunks(2)) {
            if !known.iter().all(|known| *known) {
                found.push(was.put_back());
            }
        }
        found
    }
}

impl Was {
    fn bytes(&self) -> Vec<u8> {
        lossless::bytes(&self.content).unwrap_or_default()
    }

    fn is(&self, there: &There) -> bool {
        is_executable(self.mode) == is_executable(there.mode) && self.bytes() == there.content
    }

    fn is_removed(&self) -> bool {
        self.path.symlink_metadata().is_err()
    }

    /// What has to be committed if the file is gone.
    fn removal(&self) -> [(&Path, Option<Vec<u8>>, bool); 2] {
        let executable = is_executable(self.mode);
        [(&self.path, Some(self.bytes()), executable), (&self.path, None, executable)]
    }

    fn put_back(&self) -> Tampering {
        let place = Place::create(&self.path);
        let done = place.and_then(|place| place.replace(&self.bytes(), self.mode));
        let path = self.path.display().to_string();
        let what = match &done {
            Ok(()) => "a protected file was removed, and is there again".to_owned(),
            Err(error) => format!("a protected file was removed, and cannot be restored: {error}"),
        };
        Tampering { path: path.clone(), moved_to: done.is_ok().then_some(path), what }
    }
}

/// What a run left.
struct Left<'a> {
    path: &'a Path,
    was: Option<&'a Was>,
    place: Place,
    there: There,
}

impl Left<'_> {
    fn content(&self) -> (&Path, Option<Vec<u8>>, bool) {
        (self.path, Some(self.there.content.clone()), is_executable(self.there.mode))
    }

    fn set_aside(&self, since: SystemTime, keeper: &mut Keeper<'_>) -> Option<Tampering> {
        let before = self.was.map(Was::bytes);
        let kept = keeper.keep(
            KeptFile {
                path: self.path.to_path_buf(),
                acts: acts(self.path),
                mode: self.there.mode,
                digest: Digest::of(&self.there.content),
                before: before.as_deref().map(Digest::of),
            },
            &self.there.content,
        );
        if kept.is_err() {
            let moved =
                aside(self.path, "a protected file was written, and cannot be kept elsewhere");
            if let (Some(was), Some(before)) = (self.was, before) {
                let _ = self.place.replace(&before, was.mode);
            }
            return Some(moved);
        }
        let done = match (self.was, before) {
            (Some(was), Some(before)) => self.place.replace(&before, was.mode),
            _ => self.place.remove(),
        };
        remove_empty(self.path, since);
        done.err().map(|error| {
            let what = format!("a protected file was written, and cannot be taken away: {error}");
            Tampering { path: self.path.display().to_string(), moved_to: None, what }
        })
    }
}

/// Who would act on a file.
pub(crate) fn acts(path: &Path) -> String {
    let name = AbsPath::lexical(path).ok().and_then(|path| policy::protected::protecting(&path));
    name.map_or_else(String::new, |name| name.why.into())
}

/// Removes the directories above a path that the run made and that are empty.
pub(crate) fn remove_empty(path: &Path, since: SystemTime) {
    for dir in path.ancestors().skip(1) {
        let born = dir.symlink_metadata().and_then(|found| found.created());
        if born.is_ok_and(|born| born < since) || std::fs::remove_dir(dir).is_err() {
            return;
        }
    }
}

fn is_executable(mode: u32) -> bool {
    mode & 0o100 != 0
}
