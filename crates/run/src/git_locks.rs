//! [`left`]: the locks of git that a run made and left when it was ended. Git refuses to work until they
//! are gone.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Directories that are searched, and locks that are named.
const MOST_DIRECTORIES: usize = 2000;
const MOST_LOCKS: usize = 5;

/// Locks in the repository of a workspace that were made since then. Objects have no locks.
pub(crate) fn left(workspace: &Path, since: SystemTime) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut coming = vec![workspace.join(".git")];
    let mut seen = 0;
    while let Some(directory) = coming.pop() {
        seen += 1;
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && entry.file_name() != "objects" && seen < MOST_DIRECTORIES {
                coming.push(entry.path());
            }
            let lock = kind.is_file() && entry.path().extension().is_some_and(|end| end == "lock");
            let made = || entry.metadata().and_then(|found| found.modified());
            if lock && made().is_ok_and(|made| made >= since) && found.len() < MOST_LOCKS {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_new_locks_of_git_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in [".git/refs/heads/a", ".git/objects/ab", "src"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let locks =
            [".git/index.lock", ".git/refs/heads/a/b.lock", ".git/objects/ab/x.lock", "src/c.lock"];
        for name in locks {
            std::fs::write(at(name), "").unwrap();
        }
        let now = SystemTime::now();
        let found = left(dir.path(), now - Duration::from_mins(1));
        assert_eq!(found, [at(".git/index.lock"), at(".git/refs/heads/a/b.lock")]);
        assert!(left(dir.path(), now + Duration::from_mins(1)).is_empty());
    }
}
