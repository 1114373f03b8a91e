//! Network hosts as rules write them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Host, HostError};

/// An entry of `allowed_domains` and its kin: a host or `*.name`, perhaps with a port.
///
/// `*.example.org` means one or more labels in front of the name, never the bare name, and never an
/// address. The host is in the one spelling of [`Host`], as the host of a request is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DomainRule {
    host: Host,
    subdomains: bool,
    port: Option<u16>,
}

/// The ports that an entry without a port grants.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// Why a text is not a domain rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// A scheme or path is there: the entry looks like a URL.
    #[error("`{0}` is a URL; write only the host name, such as `example.org`")]
    Url(String),
    /// The port is not a number from 1 to 65535.
    #[error("`{0}` has an invalid port; expected a number from 1 to 65535")]
    Port(String),
    /// `*` is not the first label.
    #[error("`{0}` has a `*` in the wrong place; only a leading `*.` is supported")]
    Wildcard(String),
    /// The rest is not a host.
    #[error("`{0}` is not a host name: {1}")]
    Name(String, HostError),
}

impl DomainRule {
    /// Reads one entry.
    pub fn parse(text: &str) -> Result<Self, DomainError> {
        let (name, subdomains) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        if text.contains('/') {
            return Err(DomainError::Url(text.into()));
        }
        if name.contains('*') {
            return Err(DomainError::Wildcard(text.into()));
        }
        let (host, port) = Host::parse_authority(name).map_err(|error| match error {
            HostError::Url => DomainError::Url(text.into()),
            HostError::Port => DomainError::Port(text.into()),
            other => DomainError::Name(text.into(), other),
        })?;
        if subdomains && host.address().is_some() {
            return Err(DomainError::Wildcard(text.into()));
        }
        Ok(Self { host, subdomains, port })
    }

    /// The rule that covers one host on one port, and nothing else. The usual ports are not named:
    /// a grant of a web site is meant for both of them.
    pub fn exact(host: Host, port: u16) -> Self {
        let port = (!USUAL_PORTS.contains(&port)).then_some(port);
        Self { host, subdomains: false, port }
    }

    /// Whether this rule names the host, on whatever port.
    pub fn names(&self, host: &Host) -> bool {
        match host.name() {
            Some(name) => self.names_text(name),
            None => self.host == *host,
        }
    }

    /// Whether this rule, read as a grant, covers the host on this port: 80 and 443 unless it says
    /// otherwise.
    pub fn grants(&self, host: &Host, port: u16) -> bool {
        let fits = self.port.map_or_else(|| USUAL_PORTS.contains(&port), |own| own == port);
        fits && self.names(host)
    }

    /// Whether this rule, read as a statement about the host, covers this port: every port unless
    /// it names one.
    pub fn covers(&self, host: &Host, port: u16) -> bool {
        self.port.is_none_or(|own| own == port) && self.names(host)
    }

    /// The address it names, where it names one instead of a name.
    pub fn address(&self) -> Option<std::net::IpAddr> {
        self.host.address()
    }

    /// The port it names.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    fn names_text(&self, name: &str) -> bool {
        let Some(own) = self.host.name() else { return false };
        if self.subdomains {
            name.strip_suffix(own)
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|labels| !labels.is_empty())
        } else {
            name == own
        }
    }
}

impl fmt::Display for DomainRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.subdomains {
            f.write_str("*.")?;
        }
        write!(f, "{}", self.host)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl TryFrom<String> for DomainRule {
    type Error = DomainError;
    fn try_from(text: String) -> Result<Self, DomainError> {
        Self::parse(&text)
    }
}

impl From<DomainRule> for String {
    fn from(rule: DomainRule) -> Self {
        rule.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_kept_in_one_spelling() {
        for (text, shown) in [
            ("Example.ORG", "example.org"),
            ("example.org.", "example.org"),
            ("*.internal.example:8443", "*.internal.example:8443"),
            ("localhost:80", "localhost:80"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("127.1:8080", "127.0.0.1:8080"),
            ("[2001:DB8::1]:443", "[2001:db8::1]:443"),
        ] {
            assert_eq!(DomainRule::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_host_name_is_refused() {
        for text in [
            "",
            ".",
            "a..b",
            "*",
            "*.*.org",
            "a.*.org",
            "https://example.org",
            "example.org/x",
            "example.org:",
            "example.org:0",
            "example.org:65536",
            "ex ample.org",
            "-a.org",
            "exa\0mple.org",
            "user@example.org",
            "*.127.0.0.1",
            "*.[::1]",
            "::1:443",
            "exam%70le.org",
        ] {
            assert!(DomainRule::parse(text).is_err(), "{text:?}");
        }
    }

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    #[test]
    fn a_wildcard_means_subdomains_only() {
        let rule = DomainRule::parse("*.example.org").unwrap();
        assert!(rule.names(&host("a.example.org")));
        assert!(rule.names(&host("a.b.Example.org.")));
        assert!(!rule.names(&host("example.org")));
        assert!(!rule.names(&host("evilexample.org")));
    }

    #[test]
    fn ports_are_the_usual_ones_unless_named() {
        let host = Host::parse("example.org").unwrap();
        let plain = DomainRule::parse("example.org").unwrap();
        assert!(plain.grants(&host, 80) && plain.grants(&host, 443) && !plain.grants(&host, 22));
        assert!(plain.covers(&host, 22));
        let ssh = DomainRule::parse("example.org:22").unwrap();
        assert!(ssh.grants(&host, 22) && !ssh.grants(&host, 443) && !ssh.covers(&host, 443));
        assert_eq!(DomainRule::exact(host.clone(), 443).to_string(), "example.org");
        assert_eq!(DomainRule::exact(host, 22), ssh);
    }

    #[test]
    fn an_address_is_only_ever_itself() {
        let rule = DomainRule::parse("10.0.0.1").unwrap();
        assert!(rule.names(&host("10.0.0.1")) && rule.names(&host("167772161")));
        assert!(!rule.names(&host("10.0.0.2")));
        let wild = DomainRule::parse("*.0.0.example").unwrap();
        assert!(!wild.names(&host("10.0.0.1")));
    }
}
