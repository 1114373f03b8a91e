//! What a tool call would do: one [`Action`] per effect.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Edit;

/// One effect of a tool call. Lowering produces these; policy judges them; the audit keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    /// Reads or writes a file, or everything below a directory.
    Path {
        /// What happens to the path.
        access: Access,
        /// Which path.
        path: PathRef,
        /// The command of a shell text that does it; none where the tool itself does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Runs shell text.
    Run {
        /// The text, as the shell would get it.
        command: String,
        /// The input field that holds the text; none where it is nested, or where no tool call
        /// brought it. Needed for a correction only, so no record keeps it.
        #[serde(skip)]
        field: Option<String>,
    },
    /// A command works in another directory, or on the repository there.
    Enter {
        /// The directory.
        path: PathRef,
        /// The command.
        by: String,
    },
    /// A command puts a whole tree at a path, or takes one away, with all names in it.
    Place {
        /// The path.
        path: PathRef,
        /// The command.
        by: String,
    },
    /// A command downloads or unpacks content to a file or directory.
    Fetch(Box<Fetch>),
    /// A command runs downloaded content that no one has reviewed.
    RunFetched {
        /// The part that does.
        part: String,
    },
    /// A part of a command that cannot be known before it runs.
    Opaque {
        /// The part.
        part: String,
        /// Why it cannot be known.
        why: String,
    },
    /// Opens a connection on the agent's behalf.
    Connect {
        /// The URL or host as the call names it.
        target: String,
    },
    /// Asks to run outside the agent's own sandbox.
    LeaveSandbox {
        /// The input field that asks for it.
        field: String,
    },
    /// Waits for a person who is not there.
    AskPerson {
        /// The tool that would wait.
        tool: String,
    },
    /// Changes the agent's own settings while it runs.
    ChangeSettings {
        /// The settings file that changed.
        path: PathBuf,
    },
    /// A tool that reaches nothing this policy governs.
    NoEffect {
        /// The tool's name.
        tool: String,
    },
    /// A field that cannot mean what its tool needs: wrong type, empty, a NUL byte.
    Invalid {
        /// The input field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// A download on its way to disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetch {
    /// The program, in words: `git clone`.
    pub by: String,
    /// Where the content would land.
    pub to: PathRef,
    /// Where it lands once the edits are made.
    pub corrected: PathBuf,
    /// What makes the command land there; empty where no edit can.
    pub edits: Vec<Edit>,
    /// The byte offset of the command in its text.
    pub at: usize,
    /// How to get the content in an allowed way where no edit can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// What an action does to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads, lists or searches.
    Read,
    /// Creates, changes or removes.
    Write,
}

impl Access {
    /// The infinitive used in messages and in `ringwall grant`.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// "reading …", for messages.
    pub fn gerund(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Write => "writing",
        }
    }

    /// "may be read", for allowances.
    pub fn participle(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "written",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())
    }
}

/// A path as a call gave it, and the absolute path that this means.
///
/// `at` may still hold `..`: what those reach is a question for the file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRef {
    /// The text in the call.
    pub given: String,
    /// The same with `~` expanded and joined to the effective directory.
    pub at: PathBuf,
}
