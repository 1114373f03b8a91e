//! [`BuildFiles`]: which files that the user's own build acts on a run created, changed or removed.
//!
//! They are found in the searches before and after a run. What a run can create is unlimited, and
//! what it should not be able to do is to push the one change that matters out of the list: so what
//! existed before comes first, then what is nearest to the top, and a directory counts as one.

use std::collections::BTreeMap;
use std::fs::{FileType, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::{AbsPath, FileText};
use policy::{BuildFile, BuildFileTable};
use serde::{Deserialize, Serialize};

/// A file that the user's own build acts on, and that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildFileChange {
    /// The file, or a directory that is listed as a whole.
    pub path: String,
    /// What happened to it.
    pub change: Change,
    /// Who acts on it.
    pub acts: String,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Created,
    /// It is another file, or it was written.
    Changed,
    /// It is gone.
    Removed,
}

/// Changes that are reported; more are counted.
const MOST_REPORTED: usize = 1000;
/// Files that are remembered, those nearest to the top.
const MOST_KEPT: usize = 20_000;
/// Entries of a directory that are compared.
const MOST_COMPARED: usize = 2000;

/// Files that the user's own build acts on, and what they were.
#[derive(Default)]
pub(crate) struct BuildFiles {
    table: BuildFileTable,
    found: BTreeMap<Place, (&'static str, u64)>,
    /// Whether some were left out.
    full: bool,
}

/// The order in which files are kept and reported: names that can occur once in a directory before
/// those that can occur often.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    by_ending: bool,
    depth: usize,
    path: AbsPath,
}

impl BuildFiles {
    /// Remembers an entry if it is such a file.
    pub(crate) fn note(&mut self, path: &AbsPath, kind: FileType) {
        let Some(file) = self.table.find(path) else { return };
        let BuildFile { acts, whole, parents, by_ending } = file;
        // A link may lead to a directory.
        if !kind.is_symlink() && whole != kind.is_dir() {
            return;
        }
        let Some(state) = state(path.as_path()) else { return };
        // `.github/workflows` is as near to the top as `Makefile`.
        let depth = path.as_path().components().count().saturating_sub(parents);
        self.found.insert(Place { by_ending, depth, path: path.clone() }, (acts, state));
        if self.found.len() > MOST_KEPT {
            self.found.pop_last();
            self.full = true;
        }
    }

    /// What is not as it was, given what is found now, and how much more there is than is listed.
    pub(crate) fn changes(&self, now: &Self) -> (Vec<BuildFileChange>, u64) {
        let change = |place: &Place, acts: &str, change| BuildFileChange {
            path: place.path.to_string(),
            change,
            acts: acts.into(),
        };
        // What existed is looked at by its name: the list of what is there now may be full.
        let old = self.found.iter().filter_map(|(place, (acts, was))| {
            let is = state(place.path.as_path());
            let what = match is {
                None => Change::Removed,
                Some(is) if is != *was => Change::Changed,
                Some(_) => return None,
            };
            Some(change(place, acts, what))
        });
        // Beyond the last one that was remembered it is not known what is new.
        let last = self.found.last_key_value().filter(|_| self.full).map(|(place, _)| place);
        let new = now.found.iter().filter(|(place, _)| {
            !self.found.contains_key(place) && last.is_none_or(|last| *place <= last)
        });
        let new = new.map(|(place, (acts, _))| change(place, acts, Change::Created));
        let mut all: Vec<_> = old.chain(new).collect();
        let more = all.len().saturating_sub(MOST_REPORTED);
        all.truncate(MOST_REPORTED);
        (all, more.try_into().unwrap_or(u64::MAX))
    }

    /// Adds what was found elsewhere.
    pub(crate) fn extend(&mut self, other: Self) {
        self.found.extend(other.found);
        while self.found.len() > MOST_KEPT {
            self.found.pop_last();
            self.full = true;
        }
    }
}

/// What a file is, as one number that is another one after any change; `None` if there is nothing. The
/// change time (`ctime`) cannot be set.
fn state(path: &Path) -> Option<u64> {
    let found = path.symlink_metadata().ok()?;
    let mut hasher = DefaultHasher::new();
    let mut look = |found: &Metadata| {
        if !found.is_dir() {
            let changed = (found.ctime(), found.ctime_nsec());
            (found.dev(), found.ino(), changed, found.size(), found.mode()).hash(&mut hasher);
        }
    };
    look(&found);
    // Whoever writes the target of a link changes what the name means.
    let target = if found.is_symlink() { path.metadata().ok() } else { None };
    target.iter().for_each(&mut look);
    if found.is_dir() || target.is_some_and(|target| target.is_dir()) {
        let mut sum = 0_u64;
        let (mut todo, mut left) = (vec![path.to_path_buf()], MOST_COMPARED);
        while let Some(dir) = todo.pop() {
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else { break };
                left = rest;
                // The order of a listing means nothing.
                sum = sum.wrapping_add(entry_state(&entry.path(), &mut todo));
            }
        }
        sum.hash(&mut hasher);
    }
    Some(hasher.finish())
}

/// The same for an entry of a directory; directories in it are left to the caller.
fn entry_state(path: &Path, todo: &mut Vec<PathBuf>) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    if let Ok(found) = path.symlink_metadata() {
        if found.is_dir() {
            todo.push(path.to_path_buf());
        } else {
            let changed = (found.ctime(), found.ctime_nsec());
            (found.ino(), changed, found.size(), found.mode()).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Whether a path is a file that chooses a toolchain, and names a program for that. Tools act on it
/// without being asked.
pub(crate) fn names_toolchain(path: &AbsPath, kind: FileType) -> bool {
    let name = path.as_path().file_name().unwrap_or_default().to_string_lossy();
    let name = policy::pattern::fold(&name);
    if kind.is_dir() || !policy::chooses_toolchain(&name) {
        return false;
    }
    match facts::read_small(path.as_path()) {
        FileText::Text(text) => !policy::names_no_program(&name, &text),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(dir: &Path) -> BuildFiles {
        let mut files = BuildFiles::default();
        let dir = AbsPath::lexical(dir).unwrap();
        facts::walk(&dir, &mut |visit| {
            if let facts::Visit::Entry(path, kind) = visit {
                files.note(path, kind);
            }
            facts::Step::Into
        });
        files
    }

    #[test]
    fn what_existed_comes_first_then_what_is_nearest_and_a_directory_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        };
        for name in ["deep/er/Makefile", "setup.py", "node_modules/.bin/tsc", "go.mod", "script"] {
            write(name, "before");
        }
        std::os::unix::fs::symlink("script", at("gradlew")).unwrap();
        let before = look(dir.path());
        assert_eq!(before.changes(&look(dir.path())), (Vec::new(), 0));
        write("deep/er/Makefile", "after!");
        write("script", "after!");
        std::fs::remove_file(at("setup.py")).unwrap();
        for number in 0..3 {
            write(&format!("node_modules/.bin/{number}"), "x");
        }
        for number in 0..2000 {
            write(&format!("a{number}.config.js"), "x");
        }
        write("package.json", "{}");
        let (changes, more) = before.changes(&look(dir.path()));
        let first: Vec<_> = changes
            .iter()
            .take(6)
            .map(|it| (it.path.strip_prefix(dir.path().to_str().unwrap()).unwrap(), it.change))
            .collect();
        let expected = [
            ("/gradlew", Change::Changed),
            ("/node_modules/.bin", Change::Changed),
            ("/setup.py", Change::Removed),
            ("/deep/er/Makefile", Change::Changed),
            ("/package.json", Change::Created),
            ("/a0.config.js", Change::Created),
        ];
        assert_eq!(first, expected);
        assert_eq!((changes.len(), more), (1000, 1005));
    }
}
