//! [`Host`]: what a network connection is meant for. The only parser of host names.
//!
//! Rules and requests meet in one spelling: a name in lower-case A-labels without a trailing dot,
//! or an address. Every other spelling ends as one of the two, or as a named error. Nothing here
//! knows what is granted.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};

/// A host in its one spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Host(Kind);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Name(String),
    Address(IpAddr),
}

/// Why a text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing is there.
    #[error("the name is empty")]
    Empty,
    /// A control character, a blank or a NUL byte.
    #[error("it contains whitespace or a control character")]
    Blank,
    /// `user@` is in front.
    #[error("it contains a user name")]
    User,
    /// A slash, backslash, `?` or `#`: parts of a URL.
    #[error("it is a URL; only the host name is expected")]
    Url,
    /// `%`, which would have to be decoded by someone.
    #[error("percent-encoding is not supported")]
    Percent,
    /// An address of one interface only.
    #[error("zone identifiers are not supported")]
    Zone,
    /// `[` or `]` around something else than an IPv6 address.
    #[error("brackets are only allowed around an IPv6 address")]
    Brackets,
    /// A colon that begins no port from 1 to 65535, or a port where none may be.
    #[error("the port is not a number from 1 to 65535, or no port is expected")]
    Port,
    /// Two dots in a row, or one at the start.
    #[error("a label is empty")]
    EmptyLabel,
    /// A label above 63 bytes.
    #[error("a label is longer than 63 bytes")]
    LongLabel,
    /// More than 253 bytes.
    #[error("the name is longer than 253 bytes")]
    LongName,
    /// The last label is a number, but the whole is not an IPv4 address.
    #[error("it ends in a number but is not an IPv4 address")]
    Number,
    /// A label that is not valid in an internationalized name.
    #[error("it is not a valid internationalized name")]
    Idn,
    /// A character that host names cannot have, or `-` at the end of a label.
    #[error("it contains a character that is not allowed in a host name")]
    Character,
}

impl Host {
    /// Reads a host alone: no port, no user, no URL around it.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        reject_foreign_parts(text)?;
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostError::Brackets)?;
            return inner.parse().map(Self::from_v6).map_err(|_| HostError::Brackets);
        }
        if text.contains(['[', ']']) {
            return Err(HostError::Brackets);
        }
        if text.contains(':') {
            return text.parse().map(Self::from_v6).map_err(|_| HostError::Port);
        }
        let name = ascii(text)?;
        let name = name.strip_suffix('.').unwrap_or(&name);
        if ends_in_number(name) {
            return ipv4(name).map(|address| Self(Kind::Address(address.into())));
        }
        check_labels(name)?;
        Ok(Self(Kind::Name(name.to_owned())))
    }

    /// Reads `host` or `host:port`, as in the target of CONNECT and in a Host header.
    ///
    /// An IPv6 address needs its brackets here: without them it is ambiguous where the port begins.
    pub fn parse_authority(text: &str) -> Result<(Self, Option<u16>), HostError> {
        reject_foreign_parts(text)?;
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(parse_port(port)?)),
            _ => (text, None),
        };
        if host.contains(':') && !host.starts_with('[') {
            return Err(HostError::Brackets);
        }
        Ok((Self::parse(host)?, port))
    }

    /// Reads the host in a URL as browsers do: blanks vanish, backslashes are slashes, any number of
    /// slashes may follow the scheme, which may be missing.
    ///
    /// Only plain names and IPv4 addresses are read. How a browser maps other characters, and which
    /// address it takes from brackets, is its own matter.
    pub fn in_url(url: &str) -> Result<Self, HostError> {
        let url: String = url.trim().chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
        let url = url.to_lowercase();
        let rest = url.strip_prefix("https:").or_else(|| url.strip_prefix("http:")).unwrap_or(&url);
        let rest = rest.trim_start_matches(['/', '\\']);
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
        let host = authority.rsplit('@').next().unwrap_or(authority);
        let host = host.split(':').next().unwrap_or(host);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if !host.bytes().all(plain) {
            return Err(HostError::Character);
        }
        Self::parse(host)
    }

    /// The name, if it is one.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Kind::Name(name) => Some(name),
            Kind::Address(_) => None,
        }
    }

    /// The address, if it is one.
    pub fn address(&self) -> Option<IpAddr> {
        match &self.0 {
            Kind::Name(_) => None,
            Kind::Address(address) => Some(*address),
        }
    }

    /// Whether this machine itself is meant: `localhost`, a name below it, or a loopback address.
    pub fn is_local(&self) -> bool {
        match &self.0 {
            Kind::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Kind::Address(address) => address.is_loopback(),
        }
    }

    /// `host:port`, with brackets where they are needed.
    pub fn with_port(&self, port: u16) -> String {
        match &self.0 {
            Kind::Name(name) => format!("{name}:{port}"),
            Kind::Address(address) => SocketAddr::new(*address, port).to_string(),
        }
    }

    fn from_v6(address: Ipv6Addr) -> Self {
        Self::from(IpAddr::V6(address))
    }
}

impl From<IpAddr> for Host {
    /// An IPv4-mapped IPv6 address is an IPv4 address.
    fn from(address: IpAddr) -> Self {
        Self(Kind::Address(address.to_canonical()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Name(name) => f.write_str(name),
            Kind::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Kind::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl TryFrom<String> for Host {
    type Error = HostError;
    fn try_from(text: String) -> Result<Self, HostError> {
        Self::parse(&text)
    }
}

impl From<Host> for String {
    fn from(host: Host) -> Self {
        host.to_string()
    }
}

/// Rejects what is never part of a host. Percent signs are not decoded: a program that decodes them
/// later would reach another host than the one that was judged.
fn reject_foreign_parts(text: &str) -> Result<(), HostError> {
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    for c in text.chars() {
        match c {
            _ if c.is_control() || c.is_whitespace() => return Err(HostError::Blank),
            '@' => return Err(HostError::User),
            '/' | '\\' | '?' | '#' => return Err(HostError::Url),
            '%' if text.starts_with('[') || text.contains("::") => return Err(HostError::Zone),
            '%' => return Err(HostError::Percent),
            _ => {}
        }
    }
    Ok(())
}

fn parse_port(text: &str) -> Result<u16, HostError> {
    // `u16::from_str` would take `+80`.
    if text.is_empty() || text.len() > 5 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(HostError::Port);
    }
    text.parse().ok().filter(|port| *port != 0).ok_or(HostError::Port)
}

/// Lower case, and A-labels in place of everything else.
fn ascii(text: &str) -> Result<String, HostError> {
    let lower = text.to_ascii_lowercase();
    if lower.is_ascii() && !lower.contains("xn--") {
        return Ok(lower);
    }
    // Long names are cut off here: the mapping costs more than linear time in a label's length.
    if text.len() > 1024 {
        return Err(HostError::LongName);
    }
    let uts46 = idna::uts46::Uts46::new();
    let (deny, hyphens) = (idna::AsciiDenyList::URL, idna::uts46::Hyphens::Allow);
    let name = uts46.to_ascii(lower.as_bytes(), deny, hyphens, idna::uts46::DnsLength::Ignore);
    let name = name.map_err(|_| HostError::Idn)?.into_owned();
    // The mapping may have made a blank or a slash out of a look-alike.
    reject_foreign_parts(&name)?;
    Ok(name)
}

fn check_labels(name: &str) -> Result<(), HostError> {
    if name.len() > 253 {
        return Err(HostError::LongName);
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(HostError::EmptyLabel);
        }
        if label.len() > 63 {
            return Err(HostError::LongLabel);
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !label.bytes().all(plain) || label.starts_with('-') || label.ends_with('-') {
            return Err(HostError::Character);
        }
    }
    Ok(())
}

/// Whether resolvers would take the name for an IPv4 address.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let digits = last.strip_prefix("0x").unwrap_or(last);
    let hex = digits.len() < last.len();
    (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()))
        || (hex && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// One to four numbers, each decimal, octal or hexadecimal, the last filling what is left: what
/// `inet_aton` takes, and thereby most programs.
fn ipv4(name: &str) -> Result<Ipv4Addr, HostError> {
    let parts: Vec<u32> =
        name.split('.').map(number).collect::<Option<_>>().ok_or(HostError::Number)?;
    let (last, first) = parts.split_last().ok_or(HostError::Number)?;
    if first.len() > 3 || first.iter().any(|part| *part > 255) {
        return Err(HostError::Number);
    }
    let free = 32 - 8 * u32::try_from(first.len()).map_err(|_| HostError::Number)?;
    if u64::from(*last) >= 1u64 << free {
        return Err(HostError::Number);
    }
    let mut bits = *last;
    for (index, part) in (0u32..).zip(first) {
        bits |= part << (24 - 8 * index);
    }
    Ok(Ipv4Addr::from_bits(bits))
}

fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some("") => return Some(0),
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    digits.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(())?;
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_spelling_ends_in_one() {
        for (text, shown) in [
            ("example.org", "example.org"),
            ("EXAMPLE.Org.", "example.org"),
            ("_dns.example.org", "_dns.example.org"),
            ("r3---sn-x.example.org", "r3---sn-x.example.org"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("bu\u{308}cher.example", "xn--bcher-kva.example"),
            ("xn--bcher-kva.EXAMPLE", "xn--bcher-kva.example"),
            ("ｅｘａｍｐｌｅ．ｏｒｇ", "example.org"),
            ("example。org", "example.org"),
            ("exa\u{ad}mple.org", "example.org"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("0x7f000001", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
            ("0X7F.0.0.1", "127.0.0.1"),
            ("0177.0.0.01", "127.0.0.1"),
            ("１２７.0.0.1", "127.0.0.1"),
            ("0", "0.0.0.0"),
            ("0x", "0.0.0.0"),
            ("::1", "[::1]"),
            ("[::1]", "[::1]"),
            ("[0:0::0:1]", "[::1]"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            ("[::FFFF:7f00:1]", "127.0.0.1"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
        ] {
            let host = Host::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
            assert_eq!(host.to_string(), shown, "{text:?}");
            assert_eq!(Host::parse(shown), Ok(host), "{text:?} is not stable");
        }
    }

    #[test]
    fn what_names_no_host_says_why() {
        let long_label = format!("{}.org", "a".repeat(64));
        let long_name = ["abcdefg"; 32].join(".");
        for (text, error) in [
            ("", HostError::Empty),
            (".", HostError::EmptyLabel),
            ("a..b", HostError::EmptyLabel),
            (".example.org", HostError::EmptyLabel),
            ("example.org..", HostError::EmptyLabel),
            ("ex ample.org", HostError::Blank),
            ("example.org\t", HostError::Blank),
            ("evil.example\0.example.org", HostError::Blank),
            ("example.org\r\nx", HostError::Blank),
            ("ex\u{a0}ample.org", HostError::Blank),
            ("user@example.org", HostError::User),
            ("user:pass@example.org", HostError::User),
            ("https://example.org", HostError::Url),
            ("example.org/x", HostError::Url),
            ("example.org\\x", HostError::Url),
            ("example.org?x", HostError::Url),
            ("example.org#x", HostError::Url),
            ("example%2eorg", HostError::Percent),
            ("exam%00ple.org", HostError::Percent),
            ("[fe80::1%25eth0]", HostError::Zone),
            ("fe80::1%eth0", HostError::Zone),
            ("[::1", HostError::Brackets),
            ("::1]", HostError::Brackets),
            ("[127.0.0.1]", HostError::Brackets),
            ("[example.org]", HostError::Brackets),
            ("example.org:80", HostError::Port),
            ("example.org:", HostError::Port),
            ("1.2.3.4.5", HostError::Number),
            ("256.1.1.1", HostError::Number),
            ("1.2.3.256", HostError::Number),
            ("127.0.0.08", HostError::Number),
            ("4294967296", HostError::Number),
            ("example.1", HostError::Number),
            ("1..2", HostError::Number),
            ("xn--a", HostError::Idn),
            ("xn--.org", HostError::Idn),
            ("*.example.org", HostError::Character),
            ("-a.org", HostError::Character),
            ("a-.org", HostError::Character),
            ("a,b.org", HostError::Character),
            (&long_label, HostError::LongLabel),
            (&long_name, HostError::LongName),
        ] {
            assert_eq!(Host::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_port_is_read_only_where_it_can_be_told_apart() {
        let read = |text| Host::parse_authority(text).map(|(host, port)| (host.to_string(), port));
        assert_eq!(read("Example.org:443"), Ok(("example.org".into(), Some(443))));
        assert_eq!(read("example.org"), Ok(("example.org".into(), None)));
        assert_eq!(read("[::1]:8080"), Ok(("[::1]".into(), Some(8080))));
        assert_eq!(read("[::1]"), Ok(("[::1]".into(), None)));
        for text in
            ["example.org:", "example.org:0", "example.org:65536", "example.org:+80", "a:8 0"]
        {
            assert!(read(text).is_err(), "{text:?}");
        }
        assert_eq!(read("::1:443"), Err(HostError::Brackets));
        assert_eq!(read("example.org:80:443"), Err(HostError::Brackets));
    }

    #[test]
    fn the_host_in_a_url_is_the_one_a_browser_connects_to() {
        for (url, host) in [
            ("https://example.org/x?y#z", "example.org"),
            ("HTTP://Example.ORG.", "example.org"),
            ("example.org", "example.org"),
            ("example.org:8080/x", "example.org"),
            ("https:example.org", "example.org"),
            ("https:////example.org", "example.org"),
            ("https:\\\\example.org\\x", "example.org"),
            (" https://exam\nple.org\t/ ", "example.org"),
            ("https://user:pass@example.org:443/", "example.org"),
            ("https://good.example@example.org/", "example.org"),
            ("https://good.example\\@example.org/", "good.example"),
            ("https://example.org?@good.example", "example.org"),
            ("https://example.org#@good.example", "example.org"),
            ("http://2130706433/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://_dmarc.example.org", "_dmarc.example.org"),
        ] {
            assert_eq!(Host::in_url(url).map(|host| host.to_string()), Ok(host.into()), "{url:?}");
        }
        for url in [
            "",
            "https://",
            "https:///",
            "https://[::1]/",
            "https://ex\u{e4}mple.org",
            "https://exam%70le.org",
            "https://exam ple.org",
            "https://example\0.org",
            "https://a..b",
            "https://256.1.1.1",
        ] {
            assert!(Host::in_url(url).is_err(), "{url:?}");
        }
    }

    proptest! {
        #[test]
        fn parsing_is_total_and_its_result_is_stable(text in "\\PC{0,40}|[a-z0-9.x:\\[\\]-]{0,30}") {
            if let Ok(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(&host.to_string()), Ok(host));
            }
            let _ = Host::parse_authority(&text);
        }
    }
}
