//! Permission levels.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How much a run may do. Each level allows everything the one below allows.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The workspace can be read; only the phase's own files can be written.
    Readonly,
    /// The workspace can be read and written.
    Readwrite,
    /// The same, and any public name on the network that is not denied.
    Network,
    /// The same, and the user's own files, less deny rules and protected names.
    Full,
}

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Self; 4] = [Self::Readonly, Self::Readwrite, Self::Network, Self::Full];

    /// The word used in configuration and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Readonly => "readonly",
            Self::Readwrite => "readwrite",
            Self::Network => "network",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not the name of a level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown level `{0}`; expected `readonly`, `readwrite`, `network` or `full`")]
pub struct UnknownLevel(pub String);

impl FromStr for Level {
    type Err = UnknownLevel;
    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        Self::ALL
            .into_iter()
            .find(|level| level.name() == text)
            .ok_or_else(|| UnknownLevel(text.into()))
    }
}
