//! A plan for a wall without mounts: what only mounts can give is left out, never replaced by the
//! host's own.
//!
//! Landlock can open ground and nothing else. Private ground, layers and made files are not to be
//! had; a protected name inside writable ground is refused by the watcher alone.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use model::{AbsPath, Kind, Piece, Plan};
use rustix::fs::Mode;

/// A plan as far as Landlock can hold it.
pub(crate) struct LandlockOnly {
    pub(crate) plan: Plan,
    /// A directory of the host for this run alone, to be made and removed with it.
    pub(crate) private: AbsPath,
    /// The user's settings of git, as the run is to see them. Git gives up where it may not read
    /// those that are there.
    gitconfig: String,
    /// What is not there.
    pub(crate) missing: Vec<String>,
}

impl LandlockOnly {
    pub(crate) fn of(plan: &Plan) -> Self {
        let private = private();
        let mut missing = Vec::new();
        let (made, others): (Vec<_>, Vec<_>) = plan
            .pieces
            .iter()
            .partition(|piece| piece.path == plan.home.join(GIT_SETTINGS.as_ref()));
        let gitconfig = made.iter().find_map(|piece| match &piece.kind {
            Kind::Text(text) => Some(text.clone()),
            _ => None,
        });
        let mut pieces: Vec<_> =
            others.into_iter().filter_map(|piece| keep(plan, piece, &mut missing)).collect();
        let (path, why) = (private.clone(), model::Cause::Temporary);
        pieces.push(Piece { path, kind: Kind::Write, directory: true, why });
        pieces.sort_by(|a, b| a.path.cmp(&b.path));
        let mut environment = plan.environment.clone();
        environment.retain(|(name, _)| name != "TMPDIR");
        environment.push(("TMPDIR".into(), private.as_path().into()));
        if !environment.iter().any(|(name, _)| name == GIT_VARIABLE) {
            environment
                .push((GIT_VARIABLE.into(), private.join(GIT_SETTINGS.as_ref()).as_path().into()));
        }
        // What is granted before it exists would be put into the running tree by a mount.
        missing.extend(
            plan.late
                .iter()
                .map(|path| format!("{path}: cannot be added during the run without mounts")),
        );
        let (links, late) = (Vec::new(), Vec::new());
        let plan = Plan { pieces, links, late, environment, ..plan.clone() };
        Self { plan, private, gitconfig: gitconfig.unwrap_or_default(), missing }
    }

    /// Makes the directory with what belongs into it.
    pub(crate) fn make(&self) -> io::Result<()> {
        // Made with its rights, so that nobody can be in it before us.
        rustix::fs::mkdir(self.private.as_path(), Mode::RWXU)?;
        std::fs::write(self.private.join(GIT_SETTINGS.as_ref()).as_path(), &self.gitconfig)
    }
}

/// What the user's settings of git are called at home, and the variable that names others.
const GIT_SETTINGS: &str = ".gitconfig";
const GIT_VARIABLE: &str = "GIT_CONFIG_GLOBAL";

fn keep(plan: &Plan, piece: &Piece, missing: &mut Vec<String>) -> Option<Piece> {
    let kind = match &piece.kind {
        kind @ (Kind::Read | Kind::Write | Kind::Pinned | Kind::Closed | Kind::Device) => {
            kind.clone()
        }
        Kind::Overlay | Kind::Processes => Kind::Read,
        // The system's own instead of a made one: every user may read it.
        Kind::Text(_) if piece.path.as_path().starts_with("/etc") => Kind::Read,
        Kind::Outside => return None,
        // What the host has there is not for the run: files of others, other terminals.
        Kind::Scratch | Kind::Terminals | Kind::Text(_) => {
            if !piece.path.is_within(&plan.home) || piece.path.as_path().exists() {
                missing
                    .push(format!("{}: cannot be private to the run without mounts", piece.path));
            }
            return None;
        }
    };
    Some(Piece { kind, ..piece.clone() })
}

fn private() -> AbsPath {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let name = format!("ringwall-{}-{:x}", std::process::id(), since.as_nanos());
    AbsPath::lexical(Path::new("/tmp")).unwrap_or_else(|_| AbsPath::root()).join(name.as_ref())
}

/// Removes a directory with all that is in it, whatever permissions that has.
pub(crate) fn remove(dir: &Path) {
    let gone = |done: &io::Result<()>| {
        done.as_ref().err().is_none_or(|error| error.kind() == io::ErrorKind::NotFound)
    };
    if !gone(&std::fs::remove_dir_all(dir)) {
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
