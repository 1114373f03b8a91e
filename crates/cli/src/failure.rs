//! [`Failure`]: why a command could not do its job, what the user can do, and the exit status.

use std::process::ExitCode;

use run::ErrorKind;

use crate::terminal::{self, plain};

/// An error message, hints and the exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    error: String,
    hints: Vec<String>,
}

/// Exit statuses, after sysexits.
pub(crate) const USAGE: u8 = 64;
const NOT_PERMITTED: u8 = 77;
const CONFIG: u8 = 78;

impl Failure {
    /// Any other error: exit status 1.
    pub(crate) fn new(error: impl ToString) -> Self {
        Self { code: 1, error: error.to_string(), hints: Vec::new() }
    }

    /// The configuration cannot be used.
    pub(crate) fn config(error: impl ToString) -> Self {
        Self { code: CONFIG, ..Self::new(error) }
    }

    /// The command line is wrong.
    pub(crate) fn usage(error: impl ToString) -> Self {
        // It repeats what was typed, or what a program passes on.
        Self { code: USAGE, ..Self::new(plain(&error.to_string())) }
    }

    /// The first hint.
    #[cfg(test)]
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hints.first().map(String::as_str)
    }

    /// The caller may not do this.
    pub(crate) fn not_permitted(error: impl ToString) -> Self {
        Self { code: NOT_PERMITTED, ..Self::new(error) }
    }

    /// The message.
    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.error
    }

    /// The exit status.
    #[cfg(test)]
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl ToString) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Prints the message and the hints.
    pub(crate) fn report(self) -> ExitCode {
        terminal::error(&self.error);
        self.hints.iter().for_each(|hint| terminal::hint(hint));
        ExitCode::from(self.code)
    }
}

/// Why there was no run. Names and values in it come from elsewhere, so each stays on its line and cannot
/// imitate our own messages.
impl From<&run::Error> for Failure {
    fn from(error: &run::Error) -> Self {
        // Untrusted lines are shown when the user is asked about them.
        let shown = error.problems.iter().filter(|_| error.kind != ErrorKind::Untrusted);
        let problems = shown.map(|problem| format!("\n  {}", plain(problem)));
        let problems: String = problems.collect();
        Self {
            code: error.exit_code(),
            error: plain(&error.message) + &problems,
            hints: error.hints.iter().map(|hint| plain(hint)).collect(),
        }
    }
}
