//! Between two attempts: everything as it was.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use fixtures::TestEnv;

/// The directories that each attempt gets anew.
pub(super) const RENEWED: [&str; 4] = ["project", "project-evil", "outside", "home"];

/// What stands where.
pub(super) type Looks = BTreeMap<PathBuf, Look>;

/// What tells whether something is still what it was. A directory changes with what is in it, so
/// of that only its own settings count.
#[derive(PartialEq, Eq)]
pub(super) enum Look {
    Directory { number: u64, mode: u32, owner: u32 },
    File { number: u64, changed: (i64, i64) },
}

/// Makes everything as it was, by taking away what is new or changed and copying what is missing.
pub(super) fn renew(env: &TestEnv, looks: &Looks) -> Looks {
    let now = look(env);
    for path in now.keys().filter(|path| now.get(*path) != looks.get(*path)) {
        let removed = match path.symlink_metadata() {
            Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
            Ok(_) => std::fs::remove_file(path),
            // It went with a directory.
            Err(_) => Ok(()),
        };
        if removed.is_err() {
            let _ = Command::new("chmod").args(["-R", "u+rwx"]).arg(path).status();
            std::fs::remove_dir_all(path).unwrap();
        }
    }
    let (kept, here) = (env.path("kept"), env.path(""));
    let whole = RENEWED.iter().map(|dir| here.join(dir)).collect::<Vec<_>>();
    for path in whole.iter().chain(looks.keys()) {
        if path.symlink_metadata().is_err() {
            let from = kept.join(path.strip_prefix(&here).unwrap());
            let copied = Command::new("cp").arg("-a").arg(from).arg(path).status();
            assert!(copied.unwrap().success());
        }
    }
    if now == *looks { now } else { look(env) }
}

fn look(env: &TestEnv) -> Looks {
    let mut looks = Looks::new();
    let mut paths: Vec<_> = RENEWED.iter().map(|dir| env.path(dir)).collect();
    while let Some(path) = paths.pop() {
        let Ok(found) = path.symlink_metadata() else { continue };
        let number = found.ino();
        let look = if found.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            paths.extend(entries.map(|entry| entry.path()));
            Look::Directory { number, mode: found.mode(), owner: found.uid() }
        } else {
            Look::File { number, changed: (found.ctime(), found.ctime_nsec()) }
        };
        looks.insert(path, look);
    }
    looks
}
