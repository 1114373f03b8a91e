//! A plan for a wall without mounts: what only mounts can give is left out, never replaced by the
//! host's own.
//!
//! Landlock can open ground and nothing else. Private ground, layers and made files are not to be
//! had; a protected name inside writable ground is refused by the watcher alone.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::{AbsPath, Kind, Piece, Plan};

/// The plan as far as Landlock can hold it, with one private directory, and what is missing of it.
pub(crate) fn plan(plan: &Plan, private: &AbsPath) -> (Plan, Vec<String>) {
    let mut missing = Vec::new();
    let mut pieces: Vec<_> =
        plan.pieces.iter().filter_map(|piece| keep(plan, piece, &mut missing)).collect();
    let why = "private to this run".to_owned();
    pieces.push(Piece { path: private.clone(), kind: Kind::Write, directory: true, why });
    pieces.sort_by(|a, b| a.path.cmp(&b.path));
    let mut environment = plan.environment.clone();
    environment.retain(|(name, _)| name != "TMPDIR");
    environment.push(("TMPDIR".into(), private.as_path().into()));
    // What is granted before it exists is put into the running tree by a mount.
    let late = Vec::new();
    missing.extend(plan.late.iter().map(|path| format!("{path}: to be made later")));
    (Plan { pieces, links: Vec::new(), environment, late, ..plan.clone() }, missing)
}

fn keep(plan: &Plan, piece: &Piece, missing: &mut Vec<String>) -> Option<Piece> {
    let kind = match &piece.kind {
        kind @ (Kind::Read | Kind::Write | Kind::Pinned | Kind::Closed | Kind::Device) => {
            kind.clone()
        }
        Kind::Overlay | Kind::Processes => Kind::Read,
        // The system's own instead of a made one says nothing that every user may not read.
        Kind::Text(_) if piece.path.as_path().starts_with("/etc") => Kind::Read,
        Kind::Outside => return None,
        // Of these the host has what is not for the run: other users' files, other terminals.
        Kind::Scratch | Kind::Terminals | Kind::Text(_) => {
            if piece.path.as_path().exists() || !piece.path.is_within(&plan.home) {
                missing.push(format!("{}: only mounts could make it private", piece.path));
            }
            return None;
        }
    };
    Some(Piece { kind, ..piece.clone() })
}

/// A directory of the host that only this run writes, and that goes with it.
#[derive(Debug)]
pub(crate) struct Private {
    path: AbsPath,
}

impl Private {
    pub(crate) fn make() -> io::Result<Self> {
        let number = std::process::id();
        let mut result = Err(io::Error::from(io::ErrorKind::AlreadyExists));
        for attempt in 0..1000 {
            let path = PathBuf::from(format!("/tmp/ringwall-{number}-{attempt}"));
            // Made with its rights, so that nobody can be in it before us.
            match rustix::fs::mkdir(&path, rustix::fs::Mode::RWXU) {
                Err(rustix::io::Errno::EXIST) => {}
                made => {
                    let path = AbsPath::lexical(&path).map_err(io::Error::other);
                    result = made.map_err(io::Error::from).and(path);
                    break;
                }
            }
        }
        Ok(Self { path: result? })
    }

    pub(crate) fn path(&self) -> &AbsPath {
        &self.path
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        remove(self.path.as_path());
    }
}

/// Removes a directory with all that is in it, whatever permissions that has.
pub(crate) fn remove(dir: &Path) {
    if std::fs::remove_dir_all(dir).is_err() {
        open_up(dir);
        let _ = std::fs::remove_dir_all(dir);
    }
}

fn open_up(dir: &Path) {
    let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700));
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        // Of the entry itself: a link is no directory.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
