//! [`Report`]: what is known after a run.

use std::path::PathBuf;

use sandbox::{End, Outcome, Usage};
use serde::{Deserialize, Serialize};

use crate::build_files::BuildFileChange;
use crate::events::{Changed, Counts, Ending, KeptAside, Tampering, Violation};
use crate::suspects::Suspect;

/// The exit status of a run that a violation stopped.
pub const STOPPED: u8 = 77;
/// The exit status of a run that a limit stopped: as `timeout` has it.
const LIMIT: u8 = 124;
/// The exit status of a run that its caller cancelled: as after SIGTERM.
const CANCELLED: u8 = 143;
/// The exit status of a run that was killed from outside: as after SIGKILL.
pub(crate) const KILLED: u8 = 137;
/// The exit status of a shell if there is no such program.
pub(crate) const NOT_FOUND: u8 = 127;
/// The exit status of a shell if a program cannot be run.
const NOT_EXECUTABLE: u8 = 126;

/// What is known after a run, for people and programs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The run.
    pub run: String,
    /// The exit status.
    pub exit: u8,
    /// How it ended.
    pub end: Ending,
    /// The signal that ended the command, if one did.
    pub signal: Option<i32>,
    /// The violation that stopped it.
    pub stopped_by: Option<Violation>,
    /// The limit that stopped it.
    pub limit: Option<String>,
    /// Why the command could not be started.
    pub not_run: Option<String>,
    /// Violations that did not stop the run, up to a thousand.
    pub denied: Vec<Violation>,
    /// How many violations there were.
    pub counts: Counts,
    /// Limits that were enforced and did not stop the run.
    pub limits_reached: Vec<String>,
    /// What appeared under protected names.
    pub tampering: Vec<Tampering>,
    /// Files that act when the user runs the project's own build, and that the run changed.
    pub build_files: Vec<BuildFileChange>,
    /// How many more of them there are.
    pub more_build_files: u64,
    /// What was kept aside, and what it would act on.
    #[serde(default)]
    pub kept: Vec<KeptAside>,
    /// What was protected and is not as it was.
    #[serde(default)]
    pub changed: Vec<Changed>,
    /// Files that were written beside a granted file and are lost.
    pub lost: Vec<String>,
    /// Programs on `PATH` that the run did not see, with the command that would allow each.
    pub unseen_programs: Vec<(PathBuf, String)>,
    /// Which limits a control group enforced, and which the limits of each process.
    pub limited_by: String,
    /// What the run used.
    pub usage: Option<Usage>,
    /// What may have made the command fail without a word, the most likely first.
    #[serde(default)]
    pub suspects: Vec<Suspect>,
    /// Locks of git that the run made and left when it was ended.
    #[serde(default)]
    pub left_locks: Vec<PathBuf>,
    /// The smallest configuration that would have allowed what was denied, after a learning run.
    pub learned: Option<String>,
    /// What the user should know besides.
    pub notices: Vec<String>,
}

/// The exit status of a run, and how it ended.
pub(crate) fn ending(outcome: &Outcome) -> (u8, Ending) {
    match &outcome.end {
        End::Exited { code, .. } => (*code, Ending::Exited),
        End::Violation => (STOPPED, Ending::Violation),
        End::Cancelled => (CANCELLED, Ending::Cancelled),
        End::Limit(_) => (LIMIT, Ending::Limit),
        End::NotRun(failed) => {
            let missing = failed.errno == Some(rustix::io::Errno::NOENT.raw_os_error());
            (if missing { NOT_FOUND } else { NOT_EXECUTABLE }, Ending::NotRun)
        }
        End::Lost => (KILLED, Ending::Killed),
    }
}
