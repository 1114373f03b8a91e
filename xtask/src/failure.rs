//! Why a command failed: one line that says what it was doing.

use std::fmt::{self, Display};

/// A message for the developer.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Adds what was being done to an error.
pub(crate) trait Context<T> {
    /// `what` is a lowercase fragment, such as "cannot read `x`".
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("{}: {error}", what())))
    }
}
