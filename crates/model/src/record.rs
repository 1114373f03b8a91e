//! What the audit keeps of a decision.

use serde::{Deserialize, Serialize};

use crate::{Action, Verdict};

/// One decision, as it is remembered. Holds no file content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When, as RFC 3339 in UTC.
    pub time: String,
    /// Which agent asked.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// The workspace it was given.
    pub workspace: String,
    /// The tool or event.
    pub tool: String,
    /// What the call would have done.
    pub actions: Vec<Action>,
    /// What it got.
    pub verdict: Verdict,
    /// The rules that decided, each with its origin.
    pub rules: Vec<String>,
    /// SHA-256 over the configuration in force, shortened.
    pub config: String,
    /// How long the decision took, in microseconds.
    pub micros: u64,
    /// What else must be known: errors, ignored rules, features that are off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
