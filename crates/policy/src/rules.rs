//! [`Policy`]: everything the configuration says, each value with its origin.

use std::collections::BTreeMap;

use model::{ByteSize, DomainRule, Enforcement, Level, Publication, Sourced, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PathRule;

/// The effective rules. Built by the `config` crate from layered files.
#[derive(Debug, Clone, Serialize)]
pub struct Policy {
    /// How much the agent may do.
    pub level: Sourced<Level>,
    /// Named stages of work.
    pub phases: BTreeMap<String, Phase>,
    /// Paths.
    pub filesystem: Filesystem,
    /// Hosts.
    pub network: Network,
    /// Environment variables.
    pub environment: Environment,
    /// Where content from outside must land.
    pub quarantine: Quarantine,
    /// How the guard treats what it cannot know.
    pub guard: Guard,
    /// What a denied attempt inside the sandbox does.
    pub violation: Violation,
    /// Resources.
    pub limits: Limits,
    /// What a failing log means.
    pub audit: AuditRules,
    /// Git specifics.
    pub git: Git,
    /// The weakest sandbox that is accepted.
    pub confinement: Confinement,
}

/// A stage of work: a level, and the files it may write whatever the level.
#[derive(Debug, Clone, Serialize)]
pub struct Phase {
    /// The level of this stage.
    pub level: Sourced<Level>,
    /// Extra writable files.
    pub allow_write: Vec<Sourced<PathRule>>,
}

/// Rules about paths. Deny beats allow, whichever file they are in.
#[derive(Debug, Clone, Serialize)]
pub struct Filesystem {
    /// Readable besides the workspace.
    pub allow_read: Vec<Sourced<PathRule>>,
    /// Readable and writable besides the workspace.
    pub allow_write: Vec<Sourced<PathRule>>,
    /// Neither readable nor writable, even in the workspace.
    pub deny_read: Vec<Sourced<PathRule>>,
    /// Not writable, even in the workspace.
    pub deny_write: Vec<Sourced<PathRule>>,
    /// Hidden without counting as a violation.
    pub quiet: Vec<Sourced<PathRule>>,
    /// Whether every open in a run is decided before the file is handed out, also while the host
    /// creates and replaces files.
    pub strict_deny: Sourced<bool>,
}

impl Default for Filesystem {
    fn default() -> Self {
        Self {
            allow_read: Vec::new(),
            allow_write: Vec::new(),
            deny_read: Vec::new(),
            deny_write: Vec::new(),
            quiet: Vec::new(),
            strict_deny: Sourced::built_in(false),
        }
    }
}

/// Rules about hosts.
#[derive(Debug, Clone, Serialize)]
pub struct Network {
    /// Reachable besides the agent's own essential domains.
    pub allowed_domains: Vec<Sourced<DomainRule>>,
    /// Never reachable.
    pub denied_domains: Vec<Sourced<DomainRule>>,
    /// Granted names that may resolve to private or loopback addresses.
    pub private_domains: Vec<Sourced<DomainRule>>,
    /// Ports of the host's loopback that may be reached.
    pub allow_local_ports: Vec<Sourced<u16>>,
    /// Ports of the host that lead to servers inside a run.
    pub publish: Vec<Sourced<Publication>>,
    /// Sockets of the host that may be connected to.
    pub allow_unix: Vec<Sourced<PathRule>>,
    /// Whether a TLS connection may hide which server it is for.
    pub allow_without_sni: Sourced<bool>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            allowed_domains: Vec::new(),
            denied_domains: Vec::new(),
            private_domains: Vec::new(),
            allow_local_ports: Vec::new(),
            publish: Vec::new(),
            allow_unix: Vec::new(),
            allow_without_sni: Sourced::built_in(false),
        }
    }
}

/// Rules about environment variables.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Environment {
    /// Variables that pass into the confinement.
    pub pass: Vec<Sourced<String>>,
}

/// Where content from outside must land. No directory: the feature is off.
#[derive(Debug, Clone, Serialize)]
pub struct Quarantine {
    /// The directory.
    pub dir: Option<Sourced<PathRule>>,
    /// Whether a call is corrected or only denied.
    pub mode: Sourced<QuarantineMode>,
}

/// What happens to a call that would fetch content to another place.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum QuarantineMode {
    /// The corrected call is sent back where the agent supports that, else the call is denied.
    Redirect,
    /// Always denied.
    Block,
}

/// How the guard treats what it cannot know.
#[derive(Debug, Clone, Serialize)]
pub struct Guard {
    /// What an opaque part of a command gets.
    pub on_unknown: Sourced<Verdict>,
    /// What a call gets when judging it fails.
    pub on_error: Sourced<OnError>,
}

/// What a call gets when judging it fails.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The call runs, and every record says so.
    Allow,
    /// Is denied.
    Deny,
}

/// What a denied attempt inside the sandbox does.
#[derive(Debug, Clone, Serialize)]
pub struct Violation {
    /// Stop the run, or only deny the attempt.
    pub action: Sourced<ViolationAction>,
    /// The same for names that are looked up and not connected to.
    pub lookups: Sourced<ViolationAction>,
}

/// What a denied attempt inside the sandbox does.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ViolationAction {
    /// The attempt is denied and the run continues.
    Deny,
    /// The whole process tree is killed before the call returns.
    Stop,
}

/// Limits on what a run may use. `None`: no limit of ours.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Limits {
    /// Memory of the whole tree.
    pub memory: Option<Sourced<ByteSize>>,
    /// What the directories that are private to the run hold.
    pub private_files: Option<Sourced<ByteSize>>,
    /// What the private caches of a workspace may take.
    pub caches: Option<Sourced<ByteSize>>,
    /// Processes and threads of the whole tree.
    pub processes: Option<Sourced<u32>>,
    /// The largest file that can be written.
    pub file_size: Option<Sourced<ByteSize>>,
    /// Seconds until a run is ended.
    pub wall_seconds: Option<Sourced<u64>>,
    /// Seconds without output or event until a run is ended.
    pub idle_seconds: Option<Sourced<u64>>,
}

/// What a failing log means.
#[derive(Debug, Clone, Serialize)]
pub struct AuditRules {
    /// Deny the call, or let it pass with a warning.
    pub on_failure: Sourced<OnAuditFailure>,
}

/// What a call gets when its record cannot be written.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OnAuditFailure {
    /// Its own decision, with a warning each time.
    Warn,
    /// It is denied.
    Deny,
}

/// Git specifics.
#[derive(Debug, Clone, Serialize)]
pub struct Git {
    /// Whether `GIT_DIR` and `GIT_WORK_TREE` are exported for a linked worktree.
    pub pin_env: Sourced<bool>,
}

/// The weakest sandbox that is accepted.
#[derive(Debug, Clone, Serialize)]
pub struct Confinement {
    /// A run with less than this is denied.
    pub minimum: Sourced<Enforcement>,
}

impl Policy {
    /// What holds before any file is read: the strictest useful setting of every key.
    pub fn built_in() -> Self {
        let phase = |level, files: &[&str]| Phase {
            level: Sourced::built_in(level),
            allow_write: files
                .iter()
                .map(|name| Sourced::built_in(PathRule::in_workspace(name)))
                .collect(),
        };
        Self {
            level: Sourced::built_in(Level::Readwrite),
            phases: BTreeMap::from([
                ("plan".into(), phase(Level::Readonly, &["TODO.md"])),
                ("build".into(), phase(Level::Readwrite, &[])),
                ("learn".into(), phase(Level::Readonly, &["AGENTS.md"])),
            ]),
            filesystem: Filesystem::default(),
            network: Network::default(),
            environment: Environment::default(),
            quarantine: Quarantine { dir: None, mode: Sourced::built_in(QuarantineMode::Redirect) },
            guard: Guard {
                on_unknown: Sourced::built_in(Verdict::Ask),
                on_error: Sourced::built_in(OnError::Deny),
            },
            violation: Violation {
                action: Sourced::built_in(ViolationAction::Stop),
                lookups: Sourced::built_in(ViolationAction::Deny),
            },
            limits: Limits::default(),
            audit: AuditRules { on_failure: Sourced::built_in(OnAuditFailure::Warn) },
            git: Git { pin_env: Sourced::built_in(false) },
            confinement: Confinement { minimum: Sourced::built_in(Enforcement::Namespaces) },
        }
    }
}
