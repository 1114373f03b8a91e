//! What a `ringwall.toml` may say: the tables of [`keys`](crate::keys), and what is around them.
//!
//! The JSON schema is generated from these structs, so their comments are its documentation.

use std::collections::BTreeMap;

use model::Level;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use crate::keys::{
    AuditTable, ConfinementTable, EnvironmentTable, FilesystemTable, GitTable, GuardTable,
    LimitsTable, NetworkTable, PhaseTable, QuarantineTable, ViolationTable,
};
use crate::setting::One;

/// Keys of an older system that are accepted, warned about and ignored.
pub(crate) const REMOVED_KEYS: [&str; 3] =
    ["agentForbiddenTools", "sandboxEscalationPolicy", "sandboxApprovedEscalations"];

type Removed = Option<Spanned<toml::Value>>;

/// What an agent may do, where, and what happens when it tries more.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "ringwall.toml")]
pub(crate) struct File {
    /// The version of this format.
    #[schemars(with = "u32", range(min = 1, max = 1))]
    pub(crate) version: Option<Spanned<u32>>,
    /// How much the agent may do.
    pub(crate) level: One<Level>,
    /// Named stages of work. Each has a level and a few extra writable files.
    pub(crate) phases: BTreeMap<String, PhaseTable>,
    /// Paths. The workspace is always readable; deny rules beat allow rules.
    pub(crate) filesystem: FilesystemTable,
    /// Hosts. The agent's own essential domains are always allowed.
    pub(crate) network: NetworkTable,
    /// Environment variables. Only those that are listed or built in are passed.
    pub(crate) environment: EnvironmentTable,
    /// Where downloaded content must go.
    pub(crate) quarantine: QuarantineTable,
    /// What the guard does when it cannot decide.
    pub(crate) guard: GuardTable,
    /// What happens when a process in the sandbox tries what is not allowed.
    pub(crate) violation: ViolationTable,
    /// Limits on what a run may use.
    pub(crate) limits: LimitsTable,
    /// What happens when the audit log cannot be written.
    pub(crate) audit: AuditTable,
    /// Git.
    pub(crate) git: GitTable,
    /// The weakest sandbox that is accepted.
    pub(crate) confinement: ConfinementTable,

    #[serde(rename = "agentForbiddenTools")]
    #[schemars(skip)]
    pub(crate) agent_forbidden_tools: Removed,
    #[serde(rename = "sandboxEscalationPolicy")]
    #[schemars(skip)]
    pub(crate) sandbox_escalation_policy: Removed,
    #[serde(rename = "sandboxApprovedEscalations")]
    #[schemars(skip)]
    pub(crate) sandbox_approved_escalations: Removed,
}
