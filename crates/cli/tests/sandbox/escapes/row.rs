//! [`Row`]: one attempt to get out, and how it would be noticed.

use super::env::EscapeEnv;

/// An attempt.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(super) how: How,
    pub(super) sign: Sign,
    /// Shell text that runs outside first, in the process that starts the run.
    pub(super) before: &'static str,
    /// Shell text that runs outside afterwards.
    pub(super) after: &'static str,
    /// Whether the run has a terminal.
    pub(super) terminal: bool,
}

/// What runs inside. Paths, ports and numbers are variables; what is to be found out is not.
#[derive(Clone, Copy)]
pub(super) enum How {
    Bash(&'static str),
    Python(&'static str),
}

/// How success is seen from outside.
#[derive(Clone, Copy)]
pub(super) enum Sign {
    /// The secret is in the output.
    Secret,
    /// A line says `OPEN`, by a probe that did what it says.
    Says,
    /// The mark of the attempt is in this file of the test environment.
    Mark(&'static str),
    /// The neighbour heard the mark.
    Heard,
    /// Something on the host is not as it was.
    Host(fn(&EscapeEnv) -> bool),
}

pub(super) const fn bash(name: &'static str, sign: Sign, text: &'static str) -> Row {
    Row { name, how: How::Bash(text), sign, before: "", after: "", terminal: false }
}

pub(super) const fn python(name: &'static str, sign: Sign, text: &'static str) -> Row {
    Row { name, how: How::Python(text), sign, before: "", after: "", terminal: false }
}

impl Row {
    /// With something that runs outside first, such as `exec 7<file`.
    pub(super) const fn after_outside(self, before: &'static str) -> Self {
        Self { before, ..self }
    }

    /// On a terminal, from which something outside reads afterwards.
    pub(super) const fn on_terminal(self, after: &'static str) -> Self {
        Self { after, terminal: true, ..self }
    }
}
