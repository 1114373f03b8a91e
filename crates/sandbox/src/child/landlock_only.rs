//! [`LandlockOnly`]: a plan for a sandbox without mounts. What only mounts can provide is left out,
//! and never replaced by what the host has there.
//!
//! Landlock can only allow paths. Private directories, overlays and generated files are not
//! available; protected names inside of what may be written are denied by intercepted calls alone.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use model::{AbsPath, Cause, Kind, Piece, Plan};
use rustix::fs::Mode;

/// A plan as far as Landlock can enforce it.
pub(crate) struct LandlockOnly {
    pub(crate) plan: Plan,
    /// A directory of the host for this run alone, created and removed with it.
    pub(crate) private: AbsPath,
    /// The user's git configuration, as the run is to see it. Git fails where it may not read the
    /// real one.
    gitconfig: String,
    /// What is left out.
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
        let (path, why) = (private.clone(), Cause::Temporary);
        pieces.push(Piece { path, kind: Kind::Write, directory: true, why });
        pieces.sort_by(|a, b| a.path.cmp(&b.path));
        let mut environment = plan.environment.clone();
        environment.retain(|(name, _)| name != "TMPDIR");
        environment.push(("TMPDIR".into(), private.as_path().into()));
        if !environment.iter().any(|(name, _)| name == GIT_VARIABLE) {
            environment
                .push((GIT_VARIABLE.into(), private.join(GIT_SETTINGS.as_ref()).as_path().into()));
        }
        // A path that is granted before it exists would need a mount when it is created.
        missing.extend(
            plan.granted_later
                .iter()
                .map(|path| format!("{path}: cannot be added during the run without mounts")),
        );
        let (links, granted_later) = (Vec::new(), Vec::new());
        let plan = Plan { pieces, links, granted_later, environment, ..plan.clone() };
        Self { plan, private, gitconfig: gitconfig.unwrap_or_default(), missing }
    }

    /// Creates the directory and its files.
    pub(crate) fn make(&self) -> io::Result<()> {
        // Created with its final mode, so that no other user can enter it first.
        rustix::fs::mkdir(self.private.as_path(), Mode::RWXU)?;
        std::fs::write(self.private.join(GIT_SETTINGS.as_ref()).as_path(), &self.gitconfig)
    }
}

/// The name of the user's git configuration, and the variable that names another.
const GIT_SETTINGS: &str = ".gitconfig";
const GIT_VARIABLE: &str = "GIT_CONFIG_GLOBAL";

fn keep(plan: &Plan, piece: &Piece, missing: &mut Vec<String>) -> Option<Piece> {
    // Landlock does not close sockets, and the directory around one would have to be listed.
    if matches!(piece.why, Cause::HostSocket) {
        return None;
    }
    let kind = match &piece.kind {
        kind @ (Kind::Read | Kind::Write | Kind::Pinned | Kind::Closed | Kind::Device) => {
            kind.clone()
        }
        Kind::Overlay | Kind::Processes => Kind::Read,
        // Without mounts there is no copy: the host's file is shown only if it is the same.
        Kind::Text(_) | Kind::Scratch if hides(&piece.why) => Kind::Closed,
        // The system's own file instead of a generated one: every user may read it.
        Kind::Text(_) if piece.path.as_path().starts_with("/etc") => Kind::Read,
        Kind::Text(_) if matches!(piece.why, Cause::WithoutSecrets { .. }) => Kind::Read,
        Kind::Outside => return None,
        Kind::Scratch if matches!(piece.why, Cause::PrivateHome) => {
            missing
                .push("new names in the home directory: cannot be private without mounts".into());
            return None;
        }
        // What the host has there is not for the run: other users' files, other terminals.
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

/// Whether a piece with this cause hides what the host has there because it may hold secrets.
fn hides(why: &Cause) -> bool {
    match why {
        Cause::WithoutSecrets { removed } => removed.as_ref().is_none_or(|names| !names.is_empty()),
        Cause::PrivateToolchain => true,
        _ => false,
    }
}

fn private() -> AbsPath {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let name = format!("ringwall-{}-{:x}", std::process::id(), since.as_nanos());
    AbsPath::lexical(Path::new("/tmp")).unwrap_or_else(|_| AbsPath::root()).join(name.as_ref())
}

/// Removes a directory and everything in it, whatever its permissions are.
pub(crate) fn remove(dir: &Path) {
    let gone = |done: &io::Result<()>| {
        done.as_ref().err().is_none_or(|error| error.kind() == io::ErrorKind::NotFound)
    };
    if !gone(&std::fs::remove_dir_all(dir)) {
        make_accessible(dir);
        let _ = std::fs::remove_dir_all(dir);
    }
}

fn make_accessible(dir: &Path) {
    let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700));
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        // The type of the entry itself: a link is not a directory.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_accessible(&entry.path());
        }
    }
}
