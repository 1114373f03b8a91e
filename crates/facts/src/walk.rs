//! Every entry of a tree, without following links or being stopped by what cannot be read.

use std::fs::FileType;

use model::AbsPath;

/// What to do about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Look into it, if it is a directory.
    Into,
    /// Leave it.
    Past,
}

/// What a walk found.
#[derive(Debug)]
pub enum Visit<'a> {
    /// An entry.
    Entry(&'a AbsPath, FileType),
    /// A directory that cannot be read.
    Unreadable(&'a AbsPath),
}

/// The kernel accepts no longer paths, so nothing there can be reported.
const PATH_MAX: usize = 4096;

/// Walks a tree.
pub fn walk(root: &AbsPath, visit: &mut dyn FnMut(Visit<'_>) -> Step) {
    let mut todo = vec![root.clone()];
    while let Some(dir) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(dir.as_path()) else {
            visit(Visit::Unreadable(&dir));
            continue;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                visit(Visit::Unreadable(&dir));
                break;
            };
            let kind = match entry.file_type() {
                Ok(kind) => kind,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(_) => {
                    visit(Visit::Unreadable(&dir));
                    break;
                }
            };
            let path = dir.join(&entry.file_name());
            if path.as_path().as_os_str().len() >= PATH_MAX {
                continue;
            }
            if visit(Visit::Entry(&path, kind)) == Step::Into && kind.is_dir() {
                todo.push(path);
            }
        }
    }
}
