//! Every entry of a tree, without following links or being stopped by what cannot be read.

use std::ffi::OsString;
use std::fs::{FileType, ReadDir};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use model::AbsPath;
use rustix::fs::{Mode, OFlags, ResolveFlags};

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

/// The kernel accepts no longer paths.
pub const PATH_MAX: usize = 4096;
/// The longest path that is walked. A directory beyond it counts as unreadable.
const LONGEST: usize = 8 * PATH_MAX;
/// The most that is looked up in one step of a longer path.
const STEP: usize = PATH_MAX - 512;

/// Walks a tree, as far as paths can be used in system calls.
pub fn walk(root: &AbsPath, visit: &mut dyn FnMut(Visit<'_>) -> Step) {
    walk_deep(root, &mut |visited| {
        let (Visit::Entry(path, _) | Visit::Unreadable(path)) = &visited;
        if path.as_path().as_os_str().len() >= PATH_MAX { Step::Past } else { visit(visited) }
    });
}

/// Walks a tree, also where paths are longer than what a system call takes. What is still to be walked is
/// kept by name: there may be many directories, and their paths may be long.
pub fn walk_deep(root: &AbsPath, visit: &mut dyn FnMut(Visit<'_>) -> Step) {
    let mut dir = root.clone();
    let mut left = vec![enter(&dir, visit)];
    while let Some(names) = left.last_mut() {
        if let Some(name) = names.pop() {
            dir = dir.join(&name);
            left.push(enter(&dir, visit));
        } else {
            left.pop();
            dir = dir.parent();
        }
    }
}

/// Visits the entries of a directory. Returns the directories among them that are to be walked.
fn enter(dir: &AbsPath, visit: &mut dyn FnMut(Visit<'_>) -> Step) -> Vec<OsString> {
    let mut names = Vec::new();
    // Kept open while its entries are read: they are looked up through it.
    let Ok((entries, _open)) = entries(dir.as_path()) else {
        visit(Visit::Unreadable(dir));
        return names;
    };
    for entry in entries {
        let Ok(entry) = entry else {
            visit(Visit::Unreadable(dir));
            break;
        };
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => {
                visit(Visit::Unreadable(dir));
                break;
            }
        };
        let path = dir.join(&entry.file_name());
        if visit(Visit::Entry(&path, kind)) == Step::Into && kind.is_dir() {
            names.push(entry.file_name());
        }
    }
    names
}

fn entries(dir: &Path) -> io::Result<(ReadDir, Option<OwnedFd>)> {
    match dir.as_os_str().len() {
        ..PATH_MAX => Ok((std::fs::read_dir(dir)?, None)),
        PATH_MAX..LONGEST => {
            let open = open_directory(dir)?;
            let entries = std::fs::read_dir(format!("/proc/self/fd/{}", open.as_raw_fd()))?;
            Ok((entries, Some(open)))
        }
        _ => Err(io::ErrorKind::InvalidFilename.into()),
    }
}

/// Opens a directory as a place to look things up in, however long its path is. No component of the
/// path may be a link.
pub fn open_directory(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |at: BorrowedFd<'_>, step: &Path| {
        rustix::fs::openat2(at, step, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
    };
    if dir.as_os_str().len() < STEP {
        return Ok(open(rustix::fs::CWD, dir)?);
    }
    let mut at = open(rustix::fs::CWD, Path::new("/"))?;
    let mut step = PathBuf::new();
    for name in dir.components().skip(1) {
        step.push(name);
        if step.as_os_str().len() > STEP {
            at = open(at.as_fd(), &step)?;
            step = PathBuf::new();
        }
    }
    if !step.as_os_str().is_empty() {
        at = open(at.as_fd(), &step)?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_walked_beyond_the_longest_path_of_a_system_call() {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::lexical(&dir.path().canonicalize().unwrap()).unwrap();
        let mut deep = root.clone();
        while deep.as_path().as_os_str().len() < PATH_MAX + 600 {
            let parent = open_directory(deep.as_path()).unwrap();
            let name = "d".repeat(200);
            rustix::fs::mkdirat(&parent, &*name, Mode::RWXU).unwrap();
            deep = deep.join(name.as_ref());
        }
        let parent = open_directory(deep.as_path()).unwrap();
        rustix::fs::mkdirat(&parent, "last", Mode::RWXU).unwrap();
        let mut found = false;
        walk_deep(&root, &mut |visit| {
            found |= matches!(visit, Visit::Entry(path, _) if path.as_path().ends_with("last"));
            Step::Into
        });
        assert!(found);
    }
}
