//! [`Publication`]: a port of the host at which a server inside a run can be reached.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};

/// A port of this machine that leads to a port inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// The address outside; `None` is both loopback addresses.
    pub address: Option<IpAddr>,
    /// The port outside.
    pub port: u16,
    /// The port of the server inside, on its loopback.
    pub inside: u16,
}

/// Why a text names no publication.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublicationError {
    /// The number of a port is missing or out of range.
    #[error("`{0}` is not a port; expected a number from 1 to 65535")]
    Port(String),
    /// The host is no address.
    #[error("`{0}` is not an IP address; names are not accepted here")]
    Address(String),
}

impl Publication {
    /// Reads `[ADDRESS:]PORT[:INSIDE]`, with an IPv6 address in brackets.
    pub fn parse(text: &str) -> Result<Self, PublicationError> {
        let (address, ports) = split(text)?;
        let (outside, inside) = ports.split_once(':').unwrap_or((ports, ports));
        Ok(Self { address, port: port(outside)?, inside: port(inside)? })
    }

    /// The addresses outside.
    pub fn outside(&self) -> Vec<SocketAddr> {
        let loopback = || vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let addresses = self.address.map_or_else(loopback, |address| vec![address]);
        addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect()
    }
}

/// The address and the rest.
fn split(text: &str) -> Result<(Option<IpAddr>, &str), PublicationError> {
    let bad = |address: &str| PublicationError::Address(address.to_owned());
    if let Some(rest) = text.strip_prefix('[') {
        let (address, ports) = rest.split_once("]:").ok_or_else(|| bad(text))?;
        let address: Ipv6Addr = address.parse().map_err(|_| bad(address))?;
        return Ok((Some(address.into()), ports));
    }
    match text.split_once(':') {
        // Ports have no other characters, and addresses always do.
        Some((first, ports)) if first.bytes().any(|byte| !byte.is_ascii_digit()) => {
            let address: Ipv4Addr = first.parse().map_err(|_| bad(first))?;
            Ok((Some(address.into()), ports))
        }
        _ => Ok((None, text)),
    }
}

fn port(text: &str) -> Result<u16, PublicationError> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| plain && *number != 0);
    number.ok_or_else(|| PublicationError::Port(text.to_owned()))
}

impl fmt::Display for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, port, inside } = self;
        match address {
            None => {}
            Some(IpAddr::V4(address)) => write!(f, "{address}:")?,
            Some(IpAddr::V6(address)) => write!(f, "[{address}]:")?,
        }
        write!(f, "{port}")?;
        if port == inside { Ok(()) } else { write!(f, ":{inside}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publication_is_written_as_it_is_read() {
        let table = [
            ("3000", None, 3000, 3000),
            ("8080:80", None, 8080, 80),
            ("127.0.0.2:8080", Some("127.0.0.2"), 8080, 8080),
            ("0.0.0.0:8080:80", Some("0.0.0.0"), 8080, 80),
            ("[::1]:8080", Some("::1"), 8080, 8080),
            ("[::]:8080:80", Some("::"), 8080, 80),
        ];
        for (text, address, port, inside) in table {
            let address = address.map(|address| address.parse().unwrap());
            let publication = Publication::parse(text).unwrap();
            assert_eq!(publication, Publication { address, port, inside }, "{text}");
            assert_eq!(publication.to_string(), text);
        }
        let text = Publication::parse("7:7").unwrap().to_string();
        assert_eq!(text, "7");
    }

    #[test]
    fn what_is_no_publication_says_what_is_wrong() {
        let port = |text: &str| Err(PublicationError::Port(text.into()));
        let address = |text: &str| Err(PublicationError::Address(text.into()));
        let table = [
            ("", port("")),
            ("0", port("0")),
            ("65536", port("65536")),
            ("+80", port("+80")),
            ("80:", port("")),
            ("80:90:100", port("90:100")),
            ("host:80", address("host")),
            ("localhost:80", address("localhost")),
            ("::1:80", port("")),
            ("[::1]80", address("[::1]80")),
            ("[127.0.0.1]:80", address("127.0.0.1")),
            ("1.2.3.4", port("1.2.3.4")),
        ];
        for (text, expected) in table {
            assert_eq!(Publication::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn without_an_address_only_this_machine_reaches_it() {
        let outside = Publication::parse("80").unwrap().outside();
        assert_eq!(outside.len(), 2);
        assert!(outside.iter().all(|address| address.ip().is_loopback()));
    }
}
