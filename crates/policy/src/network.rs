//! What a connection gets: one set of functions for every way out of the wall.
//!
//! The proxy asks five questions in this order: may the name be looked up, may the host be reached
//! on this port, may this address be dialled for it, does TLS name the same server, does the HTTP
//! request. Each answer is a [`Reason`]. Nothing here resolves or connects.

mod address;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use model::{DomainRule, Host, HostError, Level, Origin, Reason, Sourced, Verdict};

use self::address::not_public;
use crate::Policy;

/// The rules about hosts that hold for one run.
#[derive(Debug, Clone)]
pub struct NetworkRules {
    /// From `network` on, any public name may be reached.
    pub level: Sourced<Level>,
    /// What may be reached: the agent's essential domains and the user's `allowed_domains`.
    pub allowed: Vec<Sourced<DomainRule>>,
    /// What may never be reached. Beats everything.
    pub denied: Vec<Sourced<DomainRule>>,
    /// Names that may resolve to private or loopback addresses.
    pub private: Vec<Sourced<DomainRule>>,
    /// Ports of the host's own loopback that may be reached.
    pub local_ports: Vec<Sourced<u16>>,
    /// Whether TLS may hide which server it is for.
    pub allow_without_sni: Sourced<bool>,
    /// The file that `ringwall grant` edits.
    pub grant_file: PathBuf,
}

/// What the first message of a TLS connection says about its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerName {
    /// This server.
    Named(Host),
    /// Nothing.
    Absent,
    /// The true name is encrypted.
    Encrypted,
    /// Something that cannot be read, and why.
    Unreadable(String),
}

impl NetworkRules {
    /// The rules of a policy. What the agent needs for itself is added to what the user allows,
    /// never replaced by it.
    pub fn new(policy: &Policy, essential: &[Sourced<DomainRule>], grant_file: PathBuf) -> Self {
        let network = &policy.network;
        Self {
            level: policy.level.clone(),
            allowed: [essential, &network.allowed_domains].concat(),
            denied: network.denied_domains.clone(),
            private: network.private_domains.clone(),
            local_ports: network.allow_local_ports.clone(),
            allow_without_sni: network.allow_without_sni.clone(),
            grant_file,
        }
    }

    fn any_public_name(&self) -> bool {
        self.level.value >= Level::Network
    }

    fn grant(&self, host: &Host, port: u16) -> String {
        let rule = DomainRule::exact(host.clone(), port);
        format!(
            "the user can allow it with `ringwall grant domain {rule}`, which sets \
             `network.allowed_domains = [\"{rule}\"]` in {}",
            self.grant_file.display()
        )
    }

    fn line(&self, key: &str, entry: &str) -> String {
        format!(
            "the user can allow it with the line `network.{key} = [{entry}]` in {}",
            self.grant_file.display()
        )
    }
}

/// Whether the host may be reached on this port, whatever its address turns out to be.
///
/// From level `network` on that is any *name*: a bare address says nothing that `denied_domains`
/// could be compared with, so it needs an entry of its own at every level.
pub fn connect(rules: &NetworkRules, host: &Host, port: u16) -> Reason {
    if let Some(rule) = rules.denied.iter().find(|rule| rule.value.covers(host, port)) {
        return denied(rule, &host.with_port(port));
    }
    if let Some(own) = local_port(rules, host, port) {
        return allow("network.allow_local_ports", own.origin.clone(), host, port);
    }
    if let Some(rule) = rules.allowed.iter().find(|rule| rule.value.grants(host, port)) {
        return allow("network.allowed_domains", rule.origin.clone(), host, port);
    }
    if rules.any_public_name() && host.name().is_some() && !host.is_local() {
        return allow("level", rules.level.origin.clone(), host, port);
    }
    let mut reason = Reason {
        verdict: Verdict::Deny,
        rule: "network.allowed_domains".into(),
        origin: Origin::BuiltIn,
        text: format!("connecting to `{host}` on port {port} is refused: no rule grants it"),
        instead: Some(rules.grant(host, port)),
    };
    if let Some(rule) = rules.allowed.iter().find(|rule| rule.value.names(host)) {
        let ports = rule.value.port().map_or_else(|| "80 and 443".into(), |own| own.to_string());
        reason.origin = rule.origin.clone();
        reason.text = format!(
            "connecting to `{host}` on port {port} is refused: the rule `{}` grants port {ports} \
             only",
            rule.value
        );
    }
    if host.is_local() {
        reason.rule = "network.allow_local_ports".into();
        reason.instead = Some(rules.line("allow_local_ports", &port.to_string()));
    }
    reason
}

/// Whether a name may be looked up: whether there is a port on which it might be reached.
pub fn look_up(rules: &NetworkRules, host: &Host) -> Reason {
    let never = |rule: &&Sourced<DomainRule>| rule.value.port().is_none() && rule.value.names(host);
    if let Some(rule) = rules.denied.iter().find(never) {
        return denied(rule, &host.to_string());
    }
    let named = rules.allowed.iter().find(|rule| rule.value.names(host));
    let port = named.and_then(|rule| rule.value.port()).unwrap_or(443);
    if let Some(rule) = named {
        return allow("network.allowed_domains", rule.origin.clone(), host, port);
    }
    let mut reason = connect(rules, host, port);
    // Nobody has said yet on which port.
    if reason.verdict == Verdict::Deny && reason.rule == "network.allowed_domains" {
        reason.text = format!("looking `{host}` up is refused: no rule grants it");
    }
    reason
}

/// Whether this address may be dialled for the host. Asked about the very address that is dialled,
/// so that a name cannot lead somewhere else a moment after it was looked up.
pub fn dial(rules: &NetworkRules, host: &Host, port: u16, address: IpAddr) -> Reason {
    let literal = Host::from(address);
    if let Some(rule) = rules.denied.iter().find(|rule| rule.value.covers(&literal, port)) {
        return denied(rule, &literal.with_port(port));
    }
    let Some(kind) = not_public(address) else {
        return allow("public-address", Origin::BuiltIn, host, port);
    };
    if literal.is_local()
        && let Some(own) = local_port(rules, host, port)
    {
        return allow("network.allow_local_ports", own.origin.clone(), host, port);
    }
    // Whoever grants an address by itself means that address.
    let own =
        |rule: &&Sourced<DomainRule>| host.address().is_some() && rule.value.grants(host, port);
    if let Some(rule) = rules.allowed.iter().find(own) {
        return allow("network.allowed_domains", rule.origin.clone(), host, port);
    }
    if let Some(rule) = rules.private.iter().find(|rule| rule.value.covers(host, port)) {
        return allow("network.private_domains", rule.origin.clone(), host, port);
    }
    let entry = DomainRule::exact(host.clone(), port);
    Reason {
        verdict: Verdict::Deny,
        rule: "network.private_domains".into(),
        origin: Origin::BuiltIn,
        text: format!("`{host}` is at {address}, which is {kind}, not a public address"),
        instead: Some(rules.line("private_domains", &format!("\"{entry}\""))),
    }
}

/// Whether a TLS connection says that it is for the server that was asked for.
pub fn server_name(rules: &NetworkRules, asked: &Host, port: u16, said: &ServerName) -> Reason {
    let hidden = |text: String| Reason {
        verdict: Verdict::Deny,
        rule: "network.allow_without_sni".into(),
        origin: rules.allow_without_sni.origin.clone(),
        text,
        instead: Some(format!(
            "the user can allow it with the line `network.allow_without_sni = true` in {}",
            rules.grant_file.display()
        )),
    };
    let may_hide = rules.allow_without_sni.value;
    match said {
        ServerName::Named(name) if name == asked => {
            allow("server-name", Origin::BuiltIn, asked, port)
        }
        // An address names no server, so the name that is given has to stand for itself.
        ServerName::Named(name) if asked.address().is_some() => connect(rules, name, port),
        ServerName::Named(name) => Reason {
            verdict: Verdict::Deny,
            rule: "server-name".into(),
            origin: Origin::BuiltIn,
            text: format!("TLS to `{asked}` on port {port} is meant for another server, `{name}`"),
            instead: Some(format!("connect to `{name}` by its own name")),
        },
        ServerName::Absent if asked.address().is_some() => {
            allow("server-name", Origin::BuiltIn, asked, port)
        }
        ServerName::Absent | ServerName::Encrypted if may_hide => {
            let origin = rules.allow_without_sni.origin.clone();
            allow("network.allow_without_sni", origin, asked, port)
        }
        ServerName::Absent => {
            hidden(format!("TLS to `{asked}` on port {port} does not say which server it is for"))
        }
        ServerName::Encrypted => {
            hidden(format!("TLS to `{asked}` on port {port} encrypts which server it is for"))
        }
        ServerName::Unreadable(why) => Reason {
            verdict: Verdict::Deny,
            rule: "server-name".into(),
            origin: Origin::BuiltIn,
            text: format!("TLS to `{asked}` on port {port} begins with a broken message: {why}"),
            instead: None,
        },
    }
}

/// Whether a plain HTTP request is for the host and port that were asked for.
pub fn request_host(
    rules: &NetworkRules,
    asked: &Host,
    port: u16,
    said: &Host,
    said_port: Option<u16>,
) -> Reason {
    let same_port = said_port.is_none_or(|said| said == port);
    if same_port && said == asked {
        return allow("request-host", Origin::BuiltIn, asked, port);
    }
    if same_port && asked.address().is_some() && said.name().is_some() {
        return connect(rules, said, port);
    }
    let said = said_port.map_or_else(|| said.to_string(), |port| said.with_port(port));
    Reason {
        verdict: Verdict::Deny,
        rule: "request-host".into(),
        origin: Origin::BuiltIn,
        text: format!("a request to `{asked}` on port {port} is meant for another host, `{said}`"),
        instead: Some(format!("connect to `{said}` by its own name")),
    }
}

/// The refusal of a host that cannot be read.
pub fn unreadable_host(text: &str, error: HostError) -> Reason {
    Reason {
        verdict: Verdict::Deny,
        rule: "host-name".into(),
        origin: Origin::BuiltIn,
        text: format!("`{}` names no host: {error}", text.escape_debug()),
        instead: Some("write the host plainly, such as `example.org`".into()),
    }
}

fn allow(rule: &str, origin: Origin, host: &Host, port: u16) -> Reason {
    Reason {
        verdict: Verdict::Allow,
        rule: rule.into(),
        origin,
        text: format!("`{host}` may be reached on port {port}"),
        instead: None,
    }
}

fn denied(rule: &Sourced<DomainRule>, target: &str) -> Reason {
    Reason {
        verdict: Verdict::Deny,
        rule: "network.denied_domains".into(),
        origin: rule.origin.clone(),
        text: format!("connecting to `{target}` is refused by the rule `{}`", rule.value),
        instead: Some(format!("remove that entry ({}) to allow it", rule.origin)),
    }
}

fn local_port<'a>(rules: &'a NetworkRules, host: &Host, port: u16) -> Option<&'a Sourced<u16>> {
    let local = host.name() == Some("localhost")
        || host.address() == Some(Ipv4Addr::LOCALHOST.into())
        || host.address() == Some(Ipv6Addr::LOCALHOST.into());
    rules.local_ports.iter().find(|own| local && own.value == port)
}

#[cfg(test)]
mod tests;
