//! [`Rule`]: which rule decided, as a type. Code compares variants; people and JSON see names.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One row per rule: its documentation, its variant and its name.
macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Every rule that can decide: a built-in rule, or a key of the configuration.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])* $variant,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in messages, events and the audit log. Part of their format: it never
            /// changes.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

rules! {
    /// The paths that an agent needs for itself.
    AgentFiles = "agent-files",
    /// `allow_read` under `[filesystem]`.
    AllowRead = "filesystem.allow_read",
    /// `allow_unix` under `[network]`.
    AllowUnix = "network.allow_unix",
    /// `allow_write` under `[filesystem]`.
    AllowWrite = "filesystem.allow_write",
    /// `allowed_domains` under `[network]`.
    AllowedDomains = "network.allowed_domains",
    /// The agent would have to ask a person.
    Ask = "ask",
    /// `on_failure` under `[audit]`.
    AuditOnFailure = "audit.on_failure",
    /// Shell text, whose commands are judged one by one.
    Command = "command",
    /// The configuration itself cannot be used.
    Config = "config",
    /// `denied_domains` under `[network]`.
    DeniedDomains = "network.denied_domains",
    /// `deny_read` under `[filesystem]`.
    DenyRead = "filesystem.deny_read",
    /// `deny_write` under `[filesystem]`.
    DenyWrite = "filesystem.deny_write",
    /// The user could not do it outside either.
    HostPermissions = "host-permissions",
    /// A host must be readable.
    HostName = "host-name",
    /// No tool may wait for a person.
    InteractiveTool = "interactive-tool",
    /// `level`.
    Level = "level",
    /// `allow_local_ports` under `[network]`.
    LocalPorts = "network.allow_local_ports",
    /// An address that the proxy's name service never gave out.
    MadeUpAddress = "made-up-address",
    /// A call must have the fields its tool needs.
    MalformedCall = "malformed-call",
    /// Connections of the agent itself that no rule denies.
    Network = "network",
    /// The call reaches nothing that the policy governs.
    NoEffect = "no-effect",
    /// `on_unknown` under `[guard]`.
    OnUnknown = "guard.on_unknown",
    /// The proxy must not be asked to connect to itself.
    OwnListener = "own-listener",
    /// A path must be readable and resolvable.
    Path = "path",
    /// `private_domains` under `[network]`.
    PrivateDomains = "network.private_domains",
    /// Protected names and Ringwall's own files.
    Protected = "protected",
    /// Public addresses may be dialled.
    PublicAddress = "public-address",
    /// `dir` under `[quarantine]`.
    QuarantineDir = "quarantine.dir",
    /// Attempts that many programs make without need; they fail and are not reported as violations.
    Quiet = "quiet",
    /// Reads by commands are allowed unless something denies them.
    Read = "read",
    /// The command must run as corrected.
    Redirect = "redirect",
    /// A plain HTTP request must be for the host of its connection.
    RequestHost = "request-host",
    /// Downloaded content must not run unseen.
    RunFetched = "run-fetched",
    /// No call may switch the agent's sandbox off.
    SandboxSwitch = "sandbox-switch",
    /// Directories for temporary files.
    Scratch = "scratch",
    /// Files that hold credentials.
    Secrets = "secrets",
    /// TLS must name the server of its connection.
    ServerName = "server-name",
    /// The agent's settings must keep calling the hook.
    Settings = "settings",
    /// `allow_without_sni` under `[network]`.
    WithoutSni = "network.allow_without_sni",
    /// The workspace.
    Workspace = "workspace",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Self::ALL.iter().find(|known| known.name() == name);
        found.copied().ok_or_else(|| serde::de::Error::custom(format!("unknown rule `{name}`")))
    }
}
