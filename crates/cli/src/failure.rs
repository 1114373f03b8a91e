//! [`Failure`]: why a command could not do its job, what the user can do, and the exit status.

use std::process::ExitCode;

use crate::terminal;

/// An error message, a hint and the exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    error: String,
    hint: Option<String>,
}

/// Exit statuses, after sysexits.
pub(crate) const USAGE: u8 = 64;
const UNAVAILABLE: u8 = 69;
const NOT_PERMITTED: u8 = 77;
const CONFIG: u8 = 78;

impl Failure {
    /// Any other error: exit status 1.
    pub(crate) fn new(error: impl ToString) -> Self {
        Self { code: 1, error: error.to_string(), hint: None }
    }

    /// The configuration cannot be used.
    pub(crate) fn config(error: impl ToString) -> Self {
        Self { code: CONFIG, ..Self::new(error) }
    }

    /// The command line is wrong.
    pub(crate) fn usage(error: impl ToString) -> Self {
        Self { code: USAGE, ..Self::new(error) }
    }

    /// This machine lacks something that is needed.
    pub(crate) fn unavailable(error: impl ToString) -> Self {
        Self { code: UNAVAILABLE, ..Self::new(error) }
    }

    /// The hint.
    #[cfg(test)]
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
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
    pub(crate) fn hint(self, hint: impl ToString) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }

    /// Prints the message and the hint.
    pub(crate) fn report(self) -> ExitCode {
        terminal::error(&self.error);
        if let Some(hint) = self.hint {
            terminal::hint(&hint);
        }
        ExitCode::from(self.code)
    }
}
