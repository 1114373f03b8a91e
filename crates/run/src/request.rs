//! [`Request`]: what to run and how. [`Error`]: why there was no run.

use std::ffi::OsString;
use std::path::PathBuf;

use agents::Agent;
use config::Problem;
use config::setup::{Options, SetupError};
use policy::ViolationAction;
use sandbox::{Lack, Requested, SandboxError};
use serde::{Deserialize, Serialize};

use crate::report::{KILLED, Report};

/// What to run, and how.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Request {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The agent that the command is; `None` recognises it by the program's name.
    pub agent: Option<&'static Agent>,
    /// Workspace, configuration file, phase and level.
    pub options: Options,
    /// Paths that may be read, besides those of the configuration.
    pub allow_read: Vec<String>,
    /// Paths that may be written, besides those of the configuration.
    pub allow_write: Vec<String>,
    /// Sockets of the host that may be connected to, besides those of the configuration.
    pub allow_unix: Vec<String>,
    /// Ports of the host that lead to servers inside, besides those of the configuration.
    pub publish: Vec<String>,
    /// Hosts that may be reached, besides those of the configuration.
    pub allow_domain: Vec<String>,
    /// Variables to pass, or to set to a value, besides those of the configuration.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// Stop at violations or deny them, whatever the configuration says.
    pub on_violation: Option<ViolationAction>,
    /// The command is a shell in which a person types. Unless something else is configured, violations are
    /// denied and do not stop it.
    pub interactive: bool,
    /// Accept a workspace that contains the home directory.
    pub accept_wide_workspace: bool,
    /// Run without the lines of project files that the user has not trusted, instead of failing.
    pub ignore_untrusted: bool,
    /// Go on after violations, and report what would have allowed them.
    pub learn: bool,
    /// Neither use nor change the private layer of the workspace.
    pub fresh: bool,
    /// The best mechanisms to use.
    pub mechanisms: Requested,
    /// Where events go, if that is a file: the run may not write it.
    pub events_file: Option<PathBuf>,
}

impl Request {
    /// A run of a command with the built-in defaults and the user's configuration.
    pub fn new<W: Into<OsString>>(command: impl IntoIterator<Item = W>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The agent by name, or by the program that is run.
    pub(crate) fn recognised_agent(&self) -> Option<&'static Agent> {
        let program = self.command.first().map(PathBuf::from).unwrap_or_default();
        let is_it = |agent: &&Agent| program.file_name().is_some_and(|name| name == agent.program);
        self.agent.or_else(|| agents::ALL.iter().copied().find(is_it))
    }
}

/// Why there was no run.
#[derive(Debug, Clone, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Error {
    /// The kind, which decides the exit status.
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// The lines of the configuration that this is about.
    pub problems: Vec<String>,
    /// What to do about it.
    pub hints: Vec<String>,
    /// What this machine lacks, where that is the reason.
    pub lacking: Vec<Lack>,
    /// What happened until then, where the command had been started.
    pub report: Option<Box<Report>>,
}

/// The kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// The request makes no sense.
    Usage,
    /// The configuration cannot be used.
    Config,
    /// Project files have lines that the user has not trusted.
    Untrusted,
    /// This machine cannot do it.
    Unavailable,
    /// The sandbox failed after the command was started, and everything in it was killed.
    Broken,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl ToString) -> Self {
        Self {
            kind,
            message: message.to_string(),
            problems: Vec::new(),
            hints: Vec::new(),
            lacking: Vec::new(),
            report: None,
        }
    }

    pub(crate) fn usage(message: impl ToString) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    pub(crate) fn config(message: impl ToString) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    pub(crate) fn unavailable(message: impl ToString) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// A failure while the command ran.
    pub(crate) fn broken(error: &SandboxError) -> Self {
        Self::new(ErrorKind::Broken, format!("the sandbox failed while the command ran: {error}"))
            .hint("the command was killed; what it did until then is still there")
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl ToString) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// The exit status, as sysexits has it.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            ErrorKind::Usage => 64,
            ErrorKind::Unavailable => 69,
            ErrorKind::Broken => KILLED,
            ErrorKind::Config | ErrorKind::Untrusted => 78,
        }
    }
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Config(error) => {
                let in_file = |problem: &Problem| problem.origin.file().is_some();
                // A flag that was mistyped here has nothing to do with the hook.
                let affects_hook = error.problems.iter().any(in_file);
                let hint = affects_hook.then_some("an agent that is guarded with this file has all calls denied until it is fixed");
                Self {
                    problems: error.problems.iter().map(ToString::to_string).collect(),
                    hints: hint.into_iter().map(Into::into).collect(),
                    ..Self::config("invalid configuration")
                }
            }
            SetupError::Workspace(_) => Self::usage(error),
            SetupError::Places(_) => Self::unavailable(error)
                .hint("set HOME to your home directory, and start in a directory that exists"),
        }
    }
}

impl From<&SandboxError> for Error {
    fn from(error: &SandboxError) -> Self {
        let mut failed = Self::unavailable(format!("cannot start the sandbox: {error}"));
        failed.lacking = error.diagnosis().to_vec();
        if let SandboxError::DoesNotHold(_) = error {
            failed = failed.hint("nothing was run; `ringwall doctor` shows which part fails");
        }
        for Lack { what, name, remedy } in error.diagnosis() {
            failed.hints.push(format!("{what} ({name}); {remedy}"));
        }
        failed
    }
}
