//! Where a value or rule comes from.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The place that set a value, precise enough to open it in an editor.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Part of Ringwall itself.
    BuiltIn,
    /// Part of an agent's table.
    Agent(String),
    /// A line of a configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// A command-line flag.
    Flag(String),
}

impl Origin {
    /// The file that holds the rule, where there is one.
    pub fn file(&self) -> Option<&std::path::Path> {
        match self {
            Self::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The line in that file.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::File { line, .. } => Some(*line),
            _ => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::Agent(name) => write!(f, "built in for {name}"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value and the place that set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it is set.
    pub origin: Origin,
}

impl<T> Sourced<T> {
    /// A value that Ringwall itself sets.
    pub fn built_in(value: T) -> Self {
        Self { value, origin: Origin::BuiltIn }
    }
}
