//! The upstream proxy that the user's environment sets.

use std::net::IpAddr;

use base64::Engine as _;
use model::{Host, HostError};

/// Which proxy to connect to instead of the server itself.
///
/// It resolves names, so their addresses are not known here. Only an address that a client requested
/// directly can be denied for being private.
#[derive(Debug, Clone, Default)]
pub struct Upstream {
    http: Option<UpstreamProxy>,
    https: Option<UpstreamProxy>,
    exempt: Vec<Exempt>,
}

/// One proxy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UpstreamProxy {
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// The value of the Proxy-Authorization field.
    pub(crate) credentials: Option<String>,
}

impl std::fmt::Debug for UpstreamProxy {
    /// Leaves out the credentials, so that they are in no log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.host.with_port(self.port))
    }
}

/// Why the proxy in a variable cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// A proxy with another scheme than `http`.
    #[error("unsupported proxy `{0}`: only http:// proxies are supported")]
    Scheme(String),
    /// An invalid host.
    #[error("invalid host in the proxy URL: {0}")]
    Host(HostError),
    /// A user name or password with an invalid escape.
    #[error("invalid user name or password in the proxy URL")]
    Credentials,
}

/// An entry of `NO_PROXY`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exempt {
    All,
    Name(String),
    Network(IpAddr, u32),
}

impl Upstream {
    /// Parses the values of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
    pub fn from_variables(
        http: Option<&str>,
        https: Option<&str>,
        no_proxy: Option<&str>,
    ) -> Result<Self, UpstreamError> {
        let proxy = |text: Option<&str>| match text.map(str::trim) {
            None | Some("") => Ok(None),
            Some(text) => UpstreamProxy::parse(text).map(Some),
        };
        let exempt =
            no_proxy.unwrap_or_default().split(',').filter_map(|entry| exempt(entry.trim()));
        Ok(Self { http: proxy(http)?, https: proxy(https)?, exempt: exempt.collect() })
    }

    /// The proxy for a connection, if there is one. This machine is always reached directly.
    pub(crate) fn for_host(&self, host: &Host, port: u16) -> Option<&UpstreamProxy> {
        if host.is_local() || self.exempt.iter().any(|entry| entry.covers(host)) {
            return None;
        }
        let (first, second) =
            if port == 80 { (&self.http, &self.https) } else { (&self.https, &self.http) };
        first.as_ref().or(second.as_ref())
    }
}

impl UpstreamProxy {
    fn parse(text: &str) -> Result<Self, UpstreamError> {
        let rest = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) => return Err(UpstreamError::Scheme(scheme.to_owned())),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, authority),
        };
        let credentials = user.map(|user| {
            let plain = decode(user).ok_or(UpstreamError::Credentials)?;
            Ok(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(plain)))
        });
        let (host, port) = Host::parse_authority(authority).map_err(UpstreamError::Host)?;
        Ok(Self { host, port: port.unwrap_or(80), credentials: credentials.transpose()? })
    }
}

impl Exempt {
    fn covers(&self, host: &Host) -> bool {
        match self {
            Self::All => true,
            Self::Name(own) => host.name().is_some_and(|name| {
                let rest = name.strip_suffix(own.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }),
            Self::Network(network, bits) => {
                host.address().is_some_and(|address| within(address, *network, *bits))
            }
        }
    }
}

/// A name includes its subdomains, with or without a dot or `*.` before it, as in other programs.
fn exempt(entry: &str) -> Option<Exempt> {
    if entry == "*" {
        return Some(Exempt::All);
    }
    if let Some((network, bits)) = entry.split_once('/') {
        return Some(Exempt::Network(network.parse().ok()?, bits.parse().ok()?));
    }
    let entry = entry.strip_prefix('*').unwrap_or(entry).trim_start_matches('.');
    let (host, _) = Host::parse_authority(entry).ok()?;
    match host.address() {
        Some(address) => Some(Exempt::Network(address, 128)),
        None => host.name().map(|name| Exempt::Name(name.to_owned())),
    }
}

fn within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let shift = 32u32.saturating_sub(bits);
            u64::from(address.to_bits() ^ network.to_bits()) >> shift == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let shift = 128u32.saturating_sub(bits);
            (address.to_bits() ^ network.to_bits()).checked_shr(shift).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// Decodes percent-encoding, which passwords in URLs need.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let value = digit(bytes.next()?)? * 16 + digit(bytes.next()?)?;
            plain.push(u8::try_from(value).ok()?);
        } else {
            plain.push(byte);
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    #[test]
    fn variables_choose_the_proxy() {
        let upstream = Upstream::from_variables(
            Some("http://plain.example:3128"),
            Some("http://me:p%40ss@secure.example:8080/"),
            Some("internal.example, .dot.example,10.0.0.0/8,192.168.1.1,::1/128"),
        )
        .unwrap();
        let proxy = |name: &str, port| upstream.for_host(&host(name), port).map(|p| p.port);
        assert_eq!(proxy("example.org", 80), Some(3128));
        assert_eq!(proxy("example.org", 443), Some(8080));
        assert_eq!(proxy("example.org", 22), Some(8080));
        for name in [
            "internal.example",
            "a.internal.example",
            "dot.example",
            "a.dot.example",
            "10.1.2.3",
            "192.168.1.1",
            "localhost",
            "127.0.0.1",
        ] {
            assert_eq!(proxy(name, 443), None, "{name}");
        }
        for name in ["xinternal.example", "11.0.0.1", "192.168.1.2", "2001:db8::1"] {
            assert_eq!(proxy(name, 443), Some(8080), "{name}");
        }
        let credentials = upstream.https.as_ref().unwrap().credentials.as_deref();
        assert_eq!(credentials, Some("Basic bWU6cEBzcw=="));
        assert!(!format!("{upstream:?}").contains("bWU6"));
    }

    #[test]
    fn everything_can_be_exempt_and_nonsense_is_refused() {
        let upstream = Upstream::from_variables(None, Some("proxy.example"), Some("*")).unwrap();
        assert_eq!(upstream.for_host(&host("example.org"), 443), None);
        let none = Upstream::from_variables(Some(""), None, None).unwrap();
        assert_eq!(none.for_host(&host("example.org"), 443), None);
        for text in ["socks5://proxy.example", "https://proxy.example", "http://", "http://a:x"] {
            assert!(Upstream::from_variables(None, Some(text), None).is_err(), "{text}");
        }
    }
}
