//! What a connection gets: one set of functions for every way out of the sandbox.
//!
//! The proxy asks five questions in this order: may the name be looked up, may the host be reached
//! on this port, may this address be dialled for it, does TLS name the same server, does the HTTP
//! request. Each answer is a [`Reason`]. Nothing here resolves or connects.

mod address;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use model::{DomainRule, Host, HostError, Level, Origin, Reason, Remedy, Rule, Sourced, Verdict};

use self::address::not_public;
use crate::Policy;

const NOT_GRANTED: &str = "no rule allows it";

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

    fn grant(&self, host: &Host, port: u16) -> Remedy {
        let rule = DomainRule::exact(host.clone(), port);
        Remedy::GrantDomain { rule, file: self.grant_file.clone() }
    }

    fn line(&self, line: String) -> Remedy {
        Remedy::Configure { line, file: self.grant_file.clone() }
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
        return allow(Rule::LocalPorts, own.origin.clone(), host, port);
    }
    if let Some(rule) = rules.allowed.iter().find(|rule| rule.value.grants(host, port)) {
        return allow(Rule::AllowedDomains, rule.origin.clone(), host, port);
    }
    if rules.any_public_name() && host.name().is_some() && !host.is_local() {
        return allow(Rule::Level, rules.level.origin.clone(), host, port);
    }
    let tried = format!("connecting to `{host}` on port {port} is denied");
    let (origin, cause) = match rules.allowed.iter().find(|rule| rule.value.names(host)) {
        Some(rule) => {
            let ports =
                rule.value.port().map_or_else(|| "80 and 443".into(), |own| own.to_string());
            let cause = format!("the rule `{}` allows only port {ports}", rule.value);
            (rule.origin.clone(), cause)
        }
        None => (Origin::BuiltIn, NOT_GRANTED.to_owned()),
    };
    let (rule, remedy) = if host.is_local() {
        (Rule::LocalPorts, Remedy::GrantPort { port, file: rules.grant_file.clone() })
    } else {
        (Rule::AllowedDomains, rules.grant(host, port))
    };
    Reason::deny_because(rule, origin, &tried, cause).with(remedy)
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
        return allow(Rule::AllowedDomains, rule.origin.clone(), host, port);
    }
    let reason = connect(rules, host, port);
    // A lookup names no port, so the text must not name one either.
    if reason.verdict == Verdict::Deny && reason.rule == Rule::AllowedDomains {
        let tried = format!("looking up `{host}` is denied");
        let Reason { rule, origin, instead, .. } = reason;
        return Reason { instead, ..Reason::deny_because(rule, origin, &tried, NOT_GRANTED) };
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
        return allow(Rule::PublicAddress, Origin::BuiltIn, host, port);
    };
    if literal.is_local()
        && let Some(own) = local_port(rules, host, port)
    {
        return allow(Rule::LocalPorts, own.origin.clone(), host, port);
    }
    // An entry that names an address allows exactly that address.
    let own =
        |rule: &&Sourced<DomainRule>| host.address().is_some() && rule.value.grants(host, port);
    if let Some(rule) = rules.allowed.iter().find(own) {
        return allow(Rule::AllowedDomains, rule.origin.clone(), host, port);
    }
    if let Some(rule) = rules.private.iter().find(|rule| rule.value.covers(host, port)) {
        return allow(Rule::PrivateDomains, rule.origin.clone(), host, port);
    }
    let entry = DomainRule::exact(host.clone(), port);
    let text =
        format!("`{host}` has the address {address}, which is not a public address ({kind})");
    Reason::deny(Rule::PrivateDomains, Origin::BuiltIn, text)
        .with(rules.line(format!("network.private_domains = [\"{entry}\"]")))
}

/// Whether a TLS connection says that it is for the server that was asked for.
pub fn server_name(rules: &NetworkRules, asked: &Host, port: u16, said: &ServerName) -> Reason {
    let hidden = |text: String| {
        Reason::deny(Rule::WithoutSni, rules.allow_without_sni.origin.clone(), text)
            .with(rules.line("network.allow_without_sni = true".into()))
    };
    let may_hide = rules.allow_without_sni.value;
    match said {
        ServerName::Named(name) if name == asked => {
            allow(Rule::ServerName, Origin::BuiltIn, asked, port)
        }
        // An address names no server, so the given name itself must be allowed.
        ServerName::Named(name) if asked.address().is_some() => connect(rules, name, port),
        ServerName::Named(name) => {
            let text = format!("TLS to `{asked}` on port {port} names another server, `{name}`");
            Reason::deny(Rule::ServerName, Origin::BuiltIn, text)
                .with(Remedy::advice(format!("connect to `{name}` directly")))
        }
        ServerName::Absent if asked.address().is_some() => {
            allow(Rule::ServerName, Origin::BuiltIn, asked, port)
        }
        ServerName::Absent | ServerName::Encrypted if may_hide => {
            let origin = rules.allow_without_sni.origin.clone();
            allow(Rule::WithoutSni, origin, asked, port)
        }
        ServerName::Absent => {
            hidden(format!("TLS to `{asked}` on port {port} does not name its server (no SNI)"))
        }
        ServerName::Encrypted => {
            hidden(format!("TLS to `{asked}` on port {port} encrypts the name of its server (ECH)"))
        }
        ServerName::Unreadable(why) => {
            let text =
                format!("TLS to `{asked}` on port {port} starts with a malformed message: {why}");
            Reason::deny(Rule::ServerName, Origin::BuiltIn, text)
        }
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
        return allow(Rule::RequestHost, Origin::BuiltIn, asked, port);
    }
    if same_port && asked.address().is_some() && said.name().is_some() {
        return connect(rules, said, port);
    }
    let said = said_port.map_or_else(|| said.to_string(), |port| said.with_port(port));
    let text = format!("an HTTP request to `{asked}` on port {port} names another host, `{said}`");
    Reason::deny(Rule::RequestHost, Origin::BuiltIn, text)
        .with(Remedy::advice(format!("connect to `{said}` directly")))
}

/// The denial of a host that cannot be parsed.
pub fn unreadable_host(text: &str, error: HostError) -> Reason {
    let text = format!("`{}` is not a valid host: {error}", text.escape_debug());
    Reason::deny(Rule::HostName, Origin::BuiltIn, text)
        .with(Remedy::advice("write a plain host name such as `example.org`"))
}

fn allow(rule: Rule, origin: Origin, host: &Host, port: u16) -> Reason {
    Reason::allow(rule, origin, format!("connecting to `{host}` on port {port} is allowed"))
}

pub(crate) fn denied(rule: &Sourced<DomainRule>, target: &str) -> Reason {
    let tried = format!("connecting to `{target}` is denied");
    let cause = format!("it matches the rule `{}`", rule.value);
    Reason::deny_because(Rule::DeniedDomains, rule.origin.clone(), &tried, cause)
        .with(Remedy::RemoveEntry(rule.origin.clone()))
}

fn local_port<'a>(rules: &'a NetworkRules, host: &Host, port: u16) -> Option<&'a Sourced<u16>> {
    let local = host.name() == Some("localhost")
        || host.address() == Some(Ipv4Addr::LOCALHOST.into())
        || host.address() == Some(Ipv6Addr::LOCALHOST.into());
    rules.local_ports.iter().find(|own| local && own.value == port)
}

#[cfg(test)]
mod tests;
