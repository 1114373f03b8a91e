//! The messages of SOCKS 5 (RFC 1928) that a client without a password needs.

use model::{Host, HostError};

/// Why a message is not valid SOCKS 5.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SocksError {
    /// Another version.
    #[error("not SOCKS 5")]
    Version,
    /// A reserved byte that is not zero.
    #[error("a reserved byte is not zero")]
    Reserved,
    /// An unknown address type.
    #[error("unknown address type")]
    AddressKind,
    /// Port zero.
    #[error("port 0 is not valid")]
    Port,
    /// An invalid host name.
    #[error("invalid host `{text}`: {error}")]
    Host {
        /// The name, with invalid bytes replaced.
        text: String,
        /// What is wrong.
        error: HostError,
        /// The requested port.
        port: u16,
    },
}

/// A client's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocksRequest {
    /// The command; only [`CONNECT`] is supported.
    pub command: u8,
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// The command to connect.
pub(crate) const CONNECT: u8 = 1;

/// The replies that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reply {
    /// Connected.
    Fine = 0,
    /// A general failure.
    Failure = 1,
    /// The rules deny it.
    Refused = 2,
    /// The host cannot be reached.
    Unreachable = 4,
    /// The command is not supported.
    Command = 7,
    /// The address type is unknown.
    AddressKind = 8,
}

impl Reply {
    /// The bytes of the reply. The bound address is left zero, because clients do not need it.
    pub(crate) fn bytes(self) -> [u8; 10] {
        [5, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// Parses the greeting. Returns its length, and whether the client accepts no authentication.
pub fn greeting(bytes: &[u8]) -> Result<Option<(usize, bool)>, SocksError> {
    match bytes {
        [] | [5] => Ok(None),
        [5, count, rest @ ..] => {
            let methods = rest.get(..usize::from(*count));
            Ok(methods.map(|methods| (2 + methods.len(), methods.contains(&0))))
        }
        _ => Err(SocksError::Version),
    }
}

/// Parses the request. Returns its length and content.
pub fn request(bytes: &[u8]) -> Result<Option<(usize, SocksRequest)>, SocksError> {
    match bytes {
        [] | [5] | [5, _] | [5, _, 0] | [5, _, 0, 1 | 3 | 4] => Ok(None),
        [5, command, 0, kind, rest @ ..] => {
            let Some(length) = address_length(*kind, rest)? else { return Ok(None) };
            let Some((host, rest)) = rest.split_at_checked(length) else { return Ok(None) };
            let Some(port) = rest.first_chunk() else { return Ok(None) };
            let port = u16::from_be_bytes(*port);
            let host = host_of(*kind, host, port)?;
            if port == 0 {
                return Err(SocksError::Port);
            }
            Ok(Some((4 + length + 2, SocksRequest { command: *command, host, port })))
        }
        [5, _, ..] => Err(SocksError::Reserved),
        _ => Err(SocksError::Version),
    }
}

/// The length of an address, including the length byte of a name.
fn address_length(kind: u8, rest: &[u8]) -> Result<Option<usize>, SocksError> {
    match (kind, rest) {
        (1, _) => Ok(Some(4)),
        (3, [length, ..]) => Ok(Some(1 + usize::from(*length))),
        (3, []) => Ok(None),
        (4, _) => Ok(Some(16)),
        _ => Err(SocksError::AddressKind),
    }
}

fn host_of(kind: u8, bytes: &[u8], port: u16) -> Result<Host, SocksError> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes)
        && kind == 1
    {
        return Ok(Host::from(std::net::IpAddr::from(octets)));
    }
    if let Ok(octets) = <[u8; 16]>::try_from(bytes)
        && kind == 4
    {
        return Ok(Host::from(std::net::IpAddr::from(octets)));
    }
    let name = bytes.get(1..).unwrap_or_default();
    let parsed = match std::str::from_utf8(name) {
        Ok(text) => Host::parse(text),
        Err(_) => Err(HostError::Character),
    };
    parsed.map_err(|error| {
        let text = String::from_utf8_lossy(name).into_owned();
        SocksError::Host { text, error, port }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(name: &[u8], port: u16) -> Vec<u8> {
        let length = u8::try_from(name.len()).unwrap();
        [&[5, 1, 0, 3, length][..], name, &port.to_be_bytes()].concat()
    }

    #[test]
    fn requests_are_read_once_they_are_whole() {
        let expected = |host, port| {
            let host = Host::parse(host).unwrap();
            SocksRequest { command: CONNECT, host, port }
        };
        for (bytes, request_) in [
            (named(b"Example.org", 443), expected("example.org", 443)),
            (named(b"2130706433", 80), expected("127.0.0.1", 80)),
            (vec![5, 1, 0, 1, 10, 0, 0, 1, 0, 22], expected("10.0.0.1", 22)),
            (
                [&[5, 1, 0, 4][..], &[0; 10], &[0xff, 0xff, 127, 0, 0, 1, 0, 22]].concat(),
                expected("127.0.0.1", 22),
            ),
        ] {
            assert_eq!(request(&bytes), Ok(Some((bytes.len(), request_))));
            for end in 0..bytes.len() {
                assert_eq!(request(&bytes[..end]), Ok(None), "{bytes:?} {end}");
            }
        }
        assert_eq!(greeting(&[5, 2, 2, 0, 9]), Ok(Some((4, true))));
        assert_eq!(greeting(&[5, 1, 2]), Ok(Some((3, false))));
        assert_eq!(greeting(&[5, 2, 2]), Ok(None));
    }

    #[test]
    fn what_is_broken_is_refused() {
        for name in [&b"evil.example\0.example.org"[..], b"", b"ex ample.org", b"\xff\xfe"] {
            assert!(matches!(request(&named(name, 80)), Err(SocksError::Host { .. })), "{name:?}");
        }
        assert_eq!(request(&named(b"example.org", 0)), Err(SocksError::Port));
        assert_eq!(request(&[5, 1, 0, 2, 0]), Err(SocksError::AddressKind));
        assert_eq!(request(&[5, 1, 7, 1, 0]), Err(SocksError::Reserved));
        assert_eq!(request(&[4, 1]), Err(SocksError::Version));
        assert_eq!(greeting(&[4, 1]), Err(SocksError::Version));
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = greeting(&bytes);
            if let Ok(Some((length, _))) = request(&[&[5, 1, 0, 3], &bytes[..]].concat()) {
                prop_assert!(length <= bytes.len() + 4);
            }
        }
    }
}
