//! [`open_users_file`]: a file of the user, of which a run gets a copy.
//!
//! This process can read every file of the user. So it must not follow a link that a run has made: a run
//! that can write the directory of such a file could lead it to any other. Dot-files of the home directory
//! are out of reach of runs, so one link there is followed, as people have it whose settings are in a
//! repository. Any other link below the home directory is not.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Opens a file for reading, without waiting for anything. `None`: it is not there, or is led elsewhere.
pub fn open_users_file(path: &Path, home: &Path) -> Option<File> {
    let mut path = plain(path)?;
    let mut links = usize::from(path.starts_with(home));
    loop {
        match open(&path, home) {
            Err(Errno::LOOP) if links > 0 => {
                links -= 1;
                path = follow(&path, home)?;
            }
            opened => return opened.ok(),
        }
    }
}

fn open(path: &Path, home: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Ok(below) = path.strip_prefix(home) else {
        // The system's own links are its administrator's.
        let system = ["/etc", "/usr", "/opt"].iter().any(|dir| path.starts_with(dir));
        let how = if system { ResolveFlags::NO_MAGICLINKS } else { ResolveFlags::NO_SYMLINKS };
        return rustix::fs::openat2(CWD, path, flags, Mode::empty(), how).map(File::from);
    };
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let home = rustix::fs::open(home, directory, Mode::empty())?;
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    rustix::fs::openat2(home, below, flags, Mode::empty(), how).map(File::from)
}

/// The path that the first link below the home directory leads to, if that link is, or is in, a dot-file
/// of the home directory.
fn follow(path: &Path, home: &Path) -> Option<PathBuf> {
    let below = path.strip_prefix(home).ok()?;
    let first = below.components().next()?;
    if !first.as_os_str().as_encoded_bytes().starts_with(b".") {
        return None;
    }
    let mut link = home.to_path_buf();
    let mut rest = below.components();
    while let Some(part) = rest.next() {
        link.push(part);
        if link.is_symlink() {
            let target = std::fs::read_link(&link).ok()?;
            return plain(&link.parent()?.join(target).join(rest.as_path()));
        }
    }
    None
}

/// An absolute path without `..`.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain.is_absolute().then_some(plain)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_one_link_of_the_users_own_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let at = |path: &str| home.join(path);
        for dir in ["app/dot", "other", ".ssh", ".config/git"] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        for file in ["app/npmrc", "app/dot/ignore", "other/ignore", ".ssh/key", ".plain"] {
            fs::write(at(file), file).unwrap();
        }
        let link = |to: &str, path: &str| symlink(to, at(path)).unwrap();
        link("app/npmrc", ".npmrc");
        link("../../app/dot/ignore", ".config/git/ignore");
        link("app/dot", ".dot");
        link("../.ssh/key", "app/planted");
        link("app/planted", ".planted");
        link("../other", "app/led");
        link("app/led/ignore", ".led");
        let reads = |path: &str| {
            let file = open_users_file(&at(path), &home);
            file.map(|file| std::io::read_to_string(file).unwrap())
        };
        for (path, text) in [
            (".plain", Some(".plain")),
            ("app/npmrc", Some("app/npmrc")),
            (".npmrc", Some("app/npmrc")),
            (".config/git/ignore", Some("app/dot/ignore")),
            (".dot/ignore", Some("app/dot/ignore")),
            ("app/../.plain", Some(".plain")),
            ("app/planted", None),
            (".planted", None),
            ("app/led/ignore", None),
            (".led", None),
            ("nothing", None),
        ] {
            assert_eq!(reads(path).as_deref(), text, "{path}");
        }
    }
}
