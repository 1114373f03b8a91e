//! [`Context`]: the workspace, and the other places that rules are measured against.

use std::path::PathBuf;

use model::{AbsPath, HookGroup, SettingsRules, Sourced};
use serde_json::Value;

use crate::PathRule;

/// Where the agent works, and what else must be known about the machine to judge it.
#[derive(Debug, Clone)]
pub struct Context {
    /// The directory the agent was started in, with every link resolved.
    pub workspace: AbsPath,
    /// The user's home directory.
    pub home: AbsPath,
    /// Other places of the same repository: the host checkout of a linked worktree, its sibling
    /// worktrees and their git directories. No command may work there.
    pub closed: Vec<AbsPath>,
    /// Why the workspace cannot be used, if it cannot.
    pub unfit: Option<String>,
    /// What the agent itself must read outside the workspace.
    pub agent_files: Vec<Sourced<PathRule>>,
    /// Ringwall's own files, as named and as resolved: state, binary, every configuration file in
    /// use, linked settings of agents. Never writable.
    pub own_files: Vec<AbsPath>,
    /// The file that `ringwall grant` edits.
    pub grant_file: PathBuf,
    /// What must stay true of the agent's settings.
    pub settings: SettingsContext,
}

/// The agent's settings files, and what must stay true of them while it runs.
#[derive(Debug, Clone, Default)]
pub struct SettingsContext {
    /// How the agent's settings can take our hook away.
    pub rules: SettingsRules,
    /// The files that the agent reads, the user's own first.
    pub files: Vec<PathBuf>,
    /// Those in which our hook was installed.
    pub hooked: Vec<HookedSettings>,
    /// The ways in which settings can be written that start this very process. Whatever is known
    /// about installs, one of the files must be written in one of these ways. Empty: no agent
    /// started us.
    pub calls: Vec<Vec<HookGroup>>,
}

/// A settings file in which our hook is installed.
#[derive(Debug, Clone, PartialEq)]
pub struct HookedSettings {
    /// The file.
    pub path: PathBuf,
    /// The groups that call us.
    pub groups: Vec<HookGroup>,
    /// The settings as the user left them when installing; null where that is not known.
    pub accepted: Value,
}
