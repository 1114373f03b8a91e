//! What enforces a sandbox, and what reports its denials: the two scales by which sandboxes are
//! compared.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What enforces the sandbox, weakest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// Landlock and seccomp alone.
    Landlock,
    /// Namespaces and mounts, with Landlock and seccomp on top.
    Namespaces,
}

/// What reports which path was denied to which program, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// Nothing does; only that something failed can be seen.
    Inferred,
    /// Every open is watched.
    Notify,
    /// A file system over what is denied; changes and connections are watched.
    Tripwire,
}

impl Enforcement {
    /// All of them, weakest first.
    pub const ALL: [Self; 2] = [Self::Landlock, Self::Namespaces];

    /// The word used in configuration, on the command line and in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Namespaces => "namespaces",
        }
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Attribution {
    /// All of them, worst first.
    pub const ALL: [Self; 3] = [Self::Inferred, Self::Notify, Self::Tripwire];

    /// The word used on the command line and in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inferred => "inferred",
            Self::Notify => "notify",
            Self::Tripwire => "tripwire",
        }
    }
}

impl fmt::Display for Attribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
