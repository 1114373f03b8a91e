//! What a command says when it cannot do its job.

use std::process::ExitCode;

use crate::terminal;

/// A message for the user, a way out, and the exit status.
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
    /// Something went wrong on the way.
    pub(crate) fn new(error: impl ToString) -> Self {
        Self { code: 1, error: error.to_string(), hint: None }
    }

    /// The configuration cannot be used.
    pub(crate) fn config(error: impl ToString) -> Self {
        Self { code: CONFIG, ..Self::new(error) }
    }

    /// The command line makes no sense.
    pub(crate) fn usage(error: impl ToString) -> Self {
        Self { code: USAGE, ..Self::new(error) }
    }

    /// What is needed is not to be had here.
    pub(crate) fn unavailable(error: impl ToString) -> Self {
        Self { code: UNAVAILABLE, ..Self::new(error) }
    }

    /// The exit status.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// The message, for those who do not print it.
    pub(crate) fn message(&self) -> &str {
        &self.error
    }

    /// The caller may not do this.
    pub(crate) fn not_permitted(error: impl ToString) -> Self {
        Self { code: NOT_PERMITTED, ..Self::new(error) }
    }

    /// Adds the way out.
    #[must_use]
    pub(crate) fn hint(self, hint: impl ToString) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }

    /// Prints the message.
    pub(crate) fn report(self) -> ExitCode {
        terminal::error_line(&format!("error: {}", self.error));
        if let Some(hint) = self.hint {
            terminal::error_line(&format!("hint: {hint}"));
        }
        ExitCode::from(self.code)
    }
}
