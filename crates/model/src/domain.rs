//! Names of network hosts as rules write them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An entry of `allowed_domains` and its kin: a name or `*.name`, perhaps with a port.
///
/// `*.example.org` means one or more labels in front of the name, never the bare name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DomainRule {
    name: String,
    subdomains: bool,
    port: Option<u16>,
}

/// Why a text is no domain rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// A scheme or path is there: the entry looks like a URL.
    #[error("`{0}` is a URL; write only the host name, such as `example.org`")]
    Url(String),
    /// The port is no number from 1 to 65535.
    #[error("`{0}` has no valid port; a port is a number from 1 to 65535")]
    Port(String),
    /// `*` stands somewhere else than as the first label.
    #[error("`{0}` uses `*` where it means nothing; only a leading `*.` is understood")]
    Wildcard(String),
    /// A label is empty, too long, or holds a character that host names cannot have.
    #[error("`{0}` is not a host name")]
    Name(String),
}

impl DomainRule {
    /// Reads one entry.
    pub fn parse(text: &str) -> Result<Self, DomainError> {
        if text.contains('/') {
            return Err(DomainError::Url(text.into()));
        }
        let (host, port) = match text.rsplit_once(':') {
            None => (text, None),
            Some((host, port)) => {
                let port = port.parse().ok().filter(|port| *port != 0);
                (host, Some(port.ok_or_else(|| DomainError::Port(text.into()))?))
            }
        };
        let (name, subdomains) = match host.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (host, false),
        };
        if name.contains('*') {
            return Err(DomainError::Wildcard(text.into()));
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if name.len() > 253 || !name.split('.').all(is_label) {
            return Err(DomainError::Name(text.into()));
        }
        Ok(Self { name, subdomains, port })
    }

    /// Whether this rule names the host. Ports are judged where connections are.
    pub fn matches_name(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        if self.subdomains {
            host.strip_suffix(&self.name)
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|labels| !labels.is_empty())
        } else {
            host == self.name
        }
    }
}

/// Letters, digits, `-` and `_`, 1 to 63 of them, no `-` at either end.
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for DomainRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.subdomains {
            f.write_str("*.")?;
        }
        f.write_str(&self.name)?;
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
        ] {
            assert!(DomainRule::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_wildcard_means_subdomains_only() {
        let rule = DomainRule::parse("*.example.org").unwrap();
        assert!(rule.matches_name("a.example.org"));
        assert!(rule.matches_name("a.b.Example.org."));
        assert!(!rule.matches_name("example.org"));
        assert!(!rule.matches_name("evilexample.org"));
        assert!(!rule.matches_name(".example.org"));
    }
}
