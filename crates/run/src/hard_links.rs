//! [`HardLinks`]: other names of protected files.
//!
//! A mount protects a name. A file with several names can be written under another one, which an earlier
//! run may have created before the file was protected. So a file with several names is looked for among
//! the protected files before it is written.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

use facts::{Step, Visit};
use model::AbsPath;
use plan::{Entry, Mark, Marked};
use sandbox::Operation;

/// The protected files that have several names.
pub(crate) struct HardLinks<'a> {
    marked: &'a [Marked],
    /// One protected name of each file. Few runs write a file with several names, so they are looked
    /// for only then.
    files: OnceCell<HashMap<(u64, u64), AbsPath>>,
}

impl<'a> HardLinks<'a> {
    pub(crate) fn new(marked: &'a [Marked]) -> Self {
        Self { marked, files: OnceCell::new() }
    }

    /// The protected name of the file at a path, if it has one.
    pub(crate) fn protected_name(&self, path: &AbsPath) -> Option<&AbsPath> {
        let file = shared_file(path)?;
        self.files.get_or_init(|| find(self.marked)).get(&file)
    }

    /// The protected name of the file that an operation would change.
    pub(crate) fn changed_by(&self, operation: Operation, path: &AbsPath) -> Option<&AbsPath> {
        let changes = matches!(
            operation,
            Operation::Write
                | Operation::Create
                | Operation::Truncate
                | Operation::ChangeMode
                | Operation::ChangeOwner
                | Operation::ChangeAttributes
        );
        changes.then(|| self.protected_name(path)).flatten()
    }
}

/// The device and inode of a file with more than one name.
fn shared_file(path: &AbsPath) -> Option<(u64, u64)> {
    let found = path.as_path().symlink_metadata().ok()?;
    (found.is_file() && found.nlink() > 1).then(|| (found.dev(), found.ino()))
}

fn find(marked: &[Marked]) -> HashMap<(u64, u64), AbsPath> {
    let mut files = HashMap::new();
    let mut note = |path: &AbsPath| {
        if let Some(file) = shared_file(path) {
            files.entry(file).or_insert_with(|| path.clone());
        }
    };
    for Marked { path, mark, entry } in marked {
        match (mark, entry) {
            (Mark::Hidden, _) | (_, Entry::Link(_)) | (Mark::Pinned, Entry::Directory) => {}
            (_, Entry::File) => note(path),
            (Mark::ReadOnly, Entry::Directory) => facts::walk(path, &mut |visit| match visit {
                // Clones share objects, and git runs none of them.
                Visit::Entry(path, _) if path.as_path().ends_with("objects") => Step::Past,
                Visit::Entry(path, _) => {
                    note(path);
                    Step::Into
                }
                Visit::Unreadable(_) => Step::Past,
            }),
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_a_protected_name_is_found_by_its_other_names() {
        let dir = tempfile::tempdir().unwrap();
        let dir = AbsPath::lexical(&dir.path().canonicalize().unwrap()).unwrap();
        let at = |name: &str| dir.join(name.as_ref());
        std::fs::create_dir_all(at(".git/hooks").as_path()).unwrap();
        for name in [".git/config", ".git/hooks/x", "plain", "both"] {
            std::fs::write(at(name).as_path(), name).unwrap();
        }
        let link = |from: &str, to: &str| {
            std::fs::hard_link(at(from).as_path(), at(to).as_path()).unwrap();
        };
        link(".git/config", "a");
        link(".git/hooks/x", "b");
        link("plain", "both2");
        let mark = |name: &str, mark, entry| Marked { path: at(name), mark, entry };
        let marked = [
            mark(".git", Mark::Pinned, Entry::Directory),
            mark(".git/config", Mark::ReadOnly, Entry::File),
            mark(".git/hooks", Mark::ReadOnly, Entry::Directory),
        ];
        let links = HardLinks::new(&marked);
        let name = |path: &str| links.changed_by(Operation::Write, &at(path)).cloned();
        assert_eq!(name("a"), Some(at(".git/config")));
        assert_eq!(name("b"), Some(at(".git/hooks/x")));
        for other in ["plain", "both", "both2", "absent", ".git"] {
            assert_eq!(name(other), None, "{other}");
        }
        assert_eq!(links.changed_by(Operation::Remove, &at("a")), None);
    }
}
