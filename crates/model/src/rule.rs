//! [`Rule`]: which rule decided, as a type. Code compares variants; people and JSON see names.

use std::fmt;

use serde::{Serialize, Serializer};

/// Every rule that can decide: a built-in rule, or a key of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The paths that an agent needs for itself.
    AgentFiles,
    /// `allow_read` under `[filesystem]`.
    AllowRead,
    /// `allow_write` under `[filesystem]`.
    AllowWrite,
    /// `allowed_domains` under `[network]`.
    AllowedDomains,
    /// The agent would have to ask a person.
    Ask,
    /// `on_failure` under `[audit]`.
    AuditOnFailure,
    /// Shell text, whose commands are judged one by one.
    Command,
    /// The configuration itself cannot be used.
    Config,
    /// `denied_domains` under `[network]`.
    DeniedDomains,
    /// `deny_read` under `[filesystem]`.
    DenyRead,
    /// `deny_write` under `[filesystem]`.
    DenyWrite,
    /// A host must be readable.
    HostName,
    /// No tool may wait for a person.
    InteractiveTool,
    /// `level`.
    Level,
    /// `allow_local_ports` under `[network]`.
    LocalPorts,
    /// An address that the proxy's name service never gave out.
    MadeUpAddress,
    /// A call must have the fields its tool needs.
    MalformedCall,
    /// Connections of the agent itself that no rule denies.
    Network,
    /// The call reaches nothing that the policy governs.
    NoEffect,
    /// `on_unknown` under `[guard]`.
    OnUnknown,
    /// The proxy must not be asked to connect to itself.
    OwnListener,
    /// A path must be readable and resolvable.
    Path,
    /// `private_domains` under `[network]`.
    PrivateDomains,
    /// Protected names and Ringwall's own files.
    Protected,
    /// Public addresses may be dialled.
    PublicAddress,
    /// `dir` under `[quarantine]`.
    QuarantineDir,
    /// Attempts that programs make by habit; they fail and are not reported as violations.
    Quiet,
    /// Reads by commands are allowed unless something denies them.
    Read,
    /// The command must run as corrected.
    Redirect,
    /// A plain HTTP request must be for the host of its connection.
    RequestHost,
    /// Downloaded content must not run unseen.
    RunFetched,
    /// No call may switch the agent's sandbox off.
    SandboxSwitch,
    /// Directories for temporary files.
    Scratch,
    /// Files that hold credentials.
    Secrets,
    /// TLS must name the server of its connection.
    ServerName,
    /// The agent's settings must keep calling the hook.
    Settings,
    /// `allow_without_sni` under `[network]`.
    WithoutSni,
    /// The workspace.
    Workspace,
}

impl Rule {
    /// The name in messages, events and the audit log. Part of their format: it never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::AgentFiles => "agent-files",
            Self::AllowRead => "filesystem.allow_read",
            Self::AllowWrite => "filesystem.allow_write",
            Self::AllowedDomains => "network.allowed_domains",
            Self::Ask => "ask",
            Self::AuditOnFailure => "audit.on_failure",
            Self::Command => "command",
            Self::Config => "config",
            Self::DeniedDomains => "network.denied_domains",
            Self::DenyRead => "filesystem.deny_read",
            Self::DenyWrite => "filesystem.deny_write",
            Self::HostName => "host-name",
            Self::InteractiveTool => "interactive-tool",
            Self::Level => "level",
            Self::LocalPorts => "network.allow_local_ports",
            Self::MadeUpAddress => "made-up-address",
            Self::MalformedCall => "malformed-call",
            Self::Network => "network",
            Self::NoEffect => "no-effect",
            Self::OnUnknown => "guard.on_unknown",
            Self::OwnListener => "own-listener",
            Self::Path => "path",
            Self::PrivateDomains => "network.private_domains",
            Self::Protected => "protected",
            Self::PublicAddress => "public-address",
            Self::QuarantineDir => "quarantine.dir",
            Self::Quiet => "quiet",
            Self::Read => "read",
            Self::Redirect => "redirect",
            Self::RequestHost => "request-host",
            Self::RunFetched => "run-fetched",
            Self::SandboxSwitch => "sandbox-switch",
            Self::Scratch => "scratch",
            Self::Secrets => "secrets",
            Self::ServerName => "server-name",
            Self::Settings => "settings",
            Self::WithoutSni => "network.allow_without_sni",
            Self::Workspace => "workspace",
        }
    }
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
