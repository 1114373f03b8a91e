//! Protected names that come into being while a run goes on: which may, and which may not.
//!
//! A run may make a repository of its own. Then git writes the names that are protected everywhere
//! else, and what it writes there is harmless as long as it names no program.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use model::AbsPath;
use policy::wall::{Interest, Mark};
use sandbox::Operation;

/// The protected names that stood before the run.
pub(crate) struct Births {
    before: BTreeSet<AbsPath>,
}

impl Births {
    pub(crate) fn new(before: impl IntoIterator<Item = AbsPath>) -> Self {
        Self { before: before.into_iter().collect() }
    }

    /// Whether a name stood before the run.
    pub(crate) fn is_old(&self, path: &AbsPath) -> bool {
        self.before.contains(path)
    }

    /// Whether something must not be done to a path although its ground can be written.
    pub(crate) fn forbids(
        &self,
        interest: &Interest<'_>,
        path: &AbsPath,
        operation: Operation,
    ) -> bool {
        let moves =
            matches!(operation, Operation::Rename | Operation::SymbolicLink | Operation::Link);
        let mark = interest.mark(path);
        let shadows = moves && !self.is_new_repository(path) && interest.shadows(path);
        match mark {
            None => shadows || self.is_inside_frozen(interest, path),
            Some(Mark::Hidden) => true,
            Some(Mark::Held) => operation != Operation::MakeDirectory || self.is_old(path),
            Some(Mark::Frozen) => !self.is_part_of_new_repository(path, operation),
        }
    }

    /// Whether a directory above is frozen as a whole.
    fn is_inside_frozen(&self, interest: &Interest<'_>, path: &AbsPath) -> bool {
        let above = path.as_path().ancestors().skip(1);
        above.take(8).any(|dir| {
            let Ok(dir) = AbsPath::lexical(dir) else { return false };
            interest.mark(&dir) == Some(Mark::Frozen)
                && !self.is_part_of_new_repository(path, Operation::Create)
        })
    }

    fn is_new_repository(&self, path: &AbsPath) -> bool {
        repository(path).is_some_and(|(git, _)| !self.is_old(&git))
    }

    /// Whether git itself would write this into a repository that it makes.
    fn is_part_of_new_repository(&self, path: &AbsPath, operation: Operation) -> bool {
        let Some((git, below)) = repository(path) else { return false };
        if self.is_old(&git) {
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

/// The git directory that a path lies in, and the rest of the path.
pub(crate) fn repository(path: &AbsPath) -> Option<(AbsPath, PathBuf)> {
    let mut git = PathBuf::new();
    let mut components = path.as_path().components();
    for component in components.by_ref() {
        git.push(component);
        if component == Component::Normal(".git".as_ref()) {
            return Some((AbsPath::lexical(&git).ok()?, components.as_path().to_path_buf()));
        }
    }
    None
}
