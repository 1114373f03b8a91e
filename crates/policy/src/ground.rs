//! The ground an agent was given: the places that rules are measured against.

use std::path::PathBuf;

use model::{AbsPath, OffSwitch, Sourced};

use crate::PathRule;

/// Where the agent works, and what else must be known about the machine to judge it.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The directory the agent was started in, with every link resolved.
    pub workspace: AbsPath,
    /// The user's home directory.
    pub home: AbsPath,
    /// Why the workspace is no ground to stand on, if it is not.
    pub unfit: Option<String>,
    /// What the agent itself must read outside the workspace.
    pub agent_files: Vec<Sourced<PathRule>>,
    /// Ringwall's own files as they are named: configuration, state, binary. Never writable.
    pub own_files: Vec<AbsPath>,
    /// The file that `ringwall grant` edits.
    pub grant_file: PathBuf,
    /// Settings files that must keep calling our hook.
    pub hooked: Vec<HookedSettings>,
    /// The keys with which this agent's settings switch hooks off.
    pub off_switches: &'static [OffSwitch],
}

/// A settings file in which our hook is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookedSettings {
    /// The file.
    pub path: PathBuf,
    /// The command our hook entry runs.
    pub command: String,
}
