//! What a `ringwall.toml` may say: one struct per table, one field per key.
//!
//! The JSON schema is generated from these structs, so their comments are its documentation.

use std::collections::BTreeMap;

use model::{Enforcement, Level, Verdict};
use policy::{OnAuditFailure, OnError, QuarantineMode, ViolationAction};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

/// Keys of an older system that are accepted, warned about and ignored.
pub(crate) const REMOVED_KEYS: [&str; 3] =
    ["agentForbiddenTools", "sandboxEscalationPolicy", "sandboxApprovedEscalations"];

type At<T> = Option<Spanned<T>>;
type List<T> = Vec<Spanned<T>>;

/// What an agent may do, where, and what happens when it tries more.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "ringwall.toml")]
pub(crate) struct File {
    /// The version of this format.
    #[schemars(with = "u32", range(min = 1, max = 1))]
    pub(crate) version: At<u32>,
    /// How much ground the agent gets.
    #[schemars(with = "Level")]
    pub(crate) level: At<Level>,
    /// Named stages of work, each with a level and a few extra writable files.
    pub(crate) phases: BTreeMap<String, PhaseTable>,
    /// Paths. The workspace is always readable; deny rules beat allow rules.
    pub(crate) filesystem: FilesystemTable,
    /// Hosts. The agent's own essential domains are always there.
    pub(crate) network: NetworkTable,
    /// Environment variables. Nothing passes that is not listed or built in.
    pub(crate) environment: EnvironmentTable,
    /// Where content from outside must land.
    pub(crate) quarantine: QuarantineTable,
    /// How the guard treats what it cannot know.
    pub(crate) guard: GuardTable,
    /// What a refused attempt inside the wall does.
    pub(crate) violation: ViolationTable,
    /// Limits on what a run may use.
    pub(crate) limits: LimitsTable,
    /// What a failing audit log means.
    pub(crate) audit: AuditTable,
    /// Git specifics.
    pub(crate) git: GitTable,
    /// The least wall that is accepted.
    pub(crate) confinement: ConfinementTable,

    #[serde(rename = "agentForbiddenTools")]
    #[schemars(skip)]
    pub(crate) agent_forbidden_tools: At<toml::Value>,
    #[serde(rename = "sandboxEscalationPolicy")]
    #[schemars(skip)]
    pub(crate) sandbox_escalation_policy: At<toml::Value>,
    #[serde(rename = "sandboxApprovedEscalations")]
    #[schemars(skip)]
    pub(crate) sandbox_approved_escalations: At<toml::Value>,
}

/// A stage of work.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PhaseTable {
    /// The level of this stage.
    #[schemars(with = "Level")]
    pub(crate) level: At<Level>,
    /// Files that may be written in this stage whatever its level.
    #[schemars(with = "Vec<String>")]
    pub(crate) allow_write: List<String>,
}

/// Paths: `~` is home, relative paths start at this file's directory, `**/` matches anywhere.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FilesystemTable {
    /// Readable besides the workspace.
    #[schemars(with = "Vec<String>")]
    pub(crate) allow_read: List<String>,
    /// Readable and writable besides the workspace.
    #[schemars(with = "Vec<String>")]
    pub(crate) allow_write: List<String>,
    /// Neither readable nor writable, even in the workspace.
    #[schemars(with = "Vec<String>")]
    pub(crate) deny_read: List<String>,
    /// Not writable, even in the workspace.
    #[schemars(with = "Vec<String>")]
    pub(crate) deny_write: List<String>,
    /// Hidden without counting as a violation.
    #[schemars(with = "Vec<String>")]
    pub(crate) quiet: List<String>,
}

/// Hosts: `example.org`, `*.example.org` for subdomains only, with `:port` where it is not 80 or
/// 443.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NetworkTable {
    /// Reachable besides the agent's own essential domains.
    #[schemars(with = "Vec<String>")]
    pub(crate) allowed_domains: List<String>,
    /// Never reachable.
    #[schemars(with = "Vec<String>")]
    pub(crate) denied_domains: List<String>,
    /// Granted names that may resolve to private or loopback addresses.
    #[schemars(with = "Vec<String>")]
    pub(crate) private_domains: List<String>,
    /// Ports of the host's loopback that may be reached.
    #[schemars(with = "Vec<u16>")]
    pub(crate) allow_local_ports: List<u16>,
    /// Lets TLS connections pass that do not say which server they are for.
    #[schemars(with = "bool")]
    pub(crate) allow_without_sni: At<bool>,
}

/// Environment variables.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EnvironmentTable {
    /// Variables that pass into the confinement.
    #[schemars(with = "Vec<String>")]
    pub(crate) pass: List<String>,
}

/// Where content from outside must land.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct QuarantineTable {
    /// The directory. Without one, downloads are not redirected.
    #[schemars(with = "String")]
    pub(crate) dir: At<String>,
    /// `redirect` corrects the call; `block` only refuses it.
    #[schemars(with = "QuarantineMode")]
    pub(crate) mode: At<QuarantineMode>,
}

/// How the guard treats what it cannot know.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GuardTable {
    /// What an opaque part of a command gets.
    #[schemars(with = "Verdict")]
    pub(crate) on_unknown: At<Verdict>,
    /// What a call gets when judging it fails.
    #[schemars(with = "OnError")]
    pub(crate) on_error: At<OnError>,
}

/// What a refused attempt inside the wall does.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ViolationTable {
    /// `stop` kills the process tree before the call returns; `deny` only refuses.
    #[schemars(with = "ViolationAction")]
    pub(crate) action: At<ViolationAction>,
    /// The same for a name that is looked up, before anything connects to it. Tools look names up
    /// without need, so the default is `deny`.
    #[schemars(with = "ViolationAction")]
    pub(crate) lookups: At<ViolationAction>,
}

/// Limits on what a run may use.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsTable {
    /// Memory of the whole process tree, such as `8GiB`.
    #[schemars(with = "String")]
    pub(crate) memory: At<String>,
    /// Processes and threads of the whole tree.
    #[schemars(with = "u32")]
    pub(crate) processes: At<u32>,
    /// The largest file that can be written, such as `2GiB`.
    #[schemars(with = "String")]
    pub(crate) file_size: At<String>,
    /// Seconds until a run is ended.
    #[schemars(with = "u64")]
    pub(crate) wall_seconds: At<u64>,
    /// Seconds without output or event until a run is ended.
    #[schemars(with = "u64")]
    pub(crate) idle_seconds: At<u64>,
}

/// What a failing audit log means.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditTable {
    /// `warn` says so on every decision; `deny` refuses the call.
    #[schemars(with = "OnAuditFailure")]
    pub(crate) on_failure: At<OnAuditFailure>,
}

/// Git specifics.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GitTable {
    /// Exports `GIT_DIR` and `GIT_WORK_TREE` for a linked worktree.
    #[schemars(with = "bool")]
    pub(crate) pin_env: At<bool>,
}

/// The least wall that is accepted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConfinementTable {
    /// A run on less than this is refused.
    #[schemars(with = "Enforcement")]
    pub(crate) minimum: At<Enforcement>,
}
