//! Finds the server name in the first message of a TLS connection.
//!
//! Parses only what is needed for that. A message that two parsers could read differently counts as
//! unreadable. Nothing is decrypted.

use model::Host;
use policy::ServerName;

/// The result of parsing a connection's first bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// More bytes are needed.
    More,
    /// A whole `ClientHello`: the server it names, and its length.
    Said(ServerName, usize),
}

/// Real messages are shorter, even with post-quantum keys.
const HELLO_LIMIT: usize = 16 * 1024;

/// Whether the bytes begin like a TLS record with a handshake message.
pub(crate) fn looks_like_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16, 0x03, ..])
}

/// Whether the bytes begin with the `ClientHello` of SSL 2, which some servers still accept and which
/// cannot contain a name.
pub(crate) fn looks_like_ssl2(bytes: &[u8]) -> bool {
    matches!(bytes, [length, _, 0x01, 0x03, ..] if length & 0x80 != 0)
}

/// Parses a `ClientHello` from the client's bytes, starting with the first record.
pub fn client_hello(bytes: &[u8]) -> Hello {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        let end = bytes.len() - rest.len();
        match handshake_body(&message) {
            Ok(Some(body)) => {
                let said = server_name(body).unwrap_or_else(unreadable);
                return Hello::Said(said, end);
            }
            Ok(None) if end > HELLO_LIMIT => {
                return Hello::Said(unreadable("it is too long"), end);
            }
            Ok(None) => {}
            Err(why) => return Hello::Said(unreadable(why), end),
        }
        // One record: type, version, length, and that many bytes. A message may span several.
        match rest {
            [kind, ..] if *kind != 0x16 => {
                return Hello::Said(unreadable("it is interrupted by another record"), bytes.len());
            }
            [_, 0x03, _, high, low, tail @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if length == 0 || length > 16 * 1024 + 256 {
                    return Hello::Said(unreadable("a record has an invalid length"), bytes.len());
                }
                let Some((fragment, tail)) = tail.split_at_checked(length) else {
                    return Hello::More;
                };
                message.extend_from_slice(fragment);
                rest = tail;
            }
            [_, version, ..] if *version != 0x03 => {
                return Hello::Said(unreadable("a record has an unknown version"), bytes.len());
            }
            _ => return Hello::More,
        }
    }
}

fn unreadable(why: &str) -> ServerName {
    ServerName::Unreadable(why.to_owned())
}

/// The body of the `ClientHello` at the start, once it is complete.
fn handshake_body(message: &[u8]) -> Result<Option<&[u8]>, &'static str> {
    match message {
        [0x01, a, b, c, rest @ ..] => {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if length > HELLO_LIMIT {
                return Err("it is too long");
            }
            Ok(rest.get(..length))
        }
        [] | [0x01, ..] => Ok(None),
        _ => Err("it is not a ClientHello"),
    }
}

const SERVER_NAME: u16 = 0;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

fn server_name(body: &[u8]) -> Result<ServerName, &'static str> {
    let mut body = Reader(body);
    body.take(2 + 32)?;
    body.prefixed_8()?;
    body.prefixed_16()?;
    body.prefixed_8()?;
    if body.0.is_empty() {
        // Old versions have no extensions.
        return Ok(ServerName::Absent);
    }
    let mut extensions = Reader(body.prefixed_16()?);
    if !body.0.is_empty() {
        return Err("there are bytes after its end");
    }
    let (mut name, mut encrypted) = (None, false);
    while !extensions.0.is_empty() {
        let (kind, content) = (extensions.number_16()?, extensions.prefixed_16()?);
        match kind {
            SERVER_NAME if name.is_some() => return Err("it names its server twice"),
            SERVER_NAME => name = Some(host_name(content)?),
            ENCRYPTED_CLIENT_HELLO => encrypted = true,
            _ => {}
        }
    }
    Ok(match name {
        _ if encrypted => ServerName::Encrypted,
        Some(host) => ServerName::Named(host),
        None => ServerName::Absent,
    })
}

/// The one name in the extension. The format allows more, but RFC 6066 does not.
fn host_name(content: &[u8]) -> Result<Host, &'static str> {
    let mut content = Reader(content);
    let mut list = Reader(content.prefixed_16()?);
    let (kind, name) = (list.take(1)?, list.prefixed_16()?);
    if kind != [0] || !list.0.is_empty() || !content.0.is_empty() {
        return Err("it names more than one server");
    }
    let name = std::str::from_utf8(name).map_err(|_| "its server name is not text")?;
    Host::parse(name).map_err(|_| "its server name is not a host name")
}

/// The unread bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("it is incomplete")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number_16(&mut self) -> Result<u16, &'static str> {
        match self.take(2)? {
            [high, low] => Ok(u16::from_be_bytes([*high, *low])),
            _ => Err("it is incomplete"),
        }
    }

    fn prefixed_8(&mut self) -> Result<&'a [u8], &'static str> {
        let count = self.take(1)?.iter().map(|byte| usize::from(*byte)).sum();
        self.take(count)
    }

    fn prefixed_16(&mut self) -> Result<&'a [u8], &'static str> {
        let count = self.number_16()?;
        self.take(usize::from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&kind.to_be_bytes()[..], &length, content].concat()
    }

    fn sni(names: &[&str]) -> Vec<u8> {
        let mut list = Vec::new();
        for name in names {
            list.push(0);
            list.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
            list.extend(name.as_bytes());
        }
        let length = u16::try_from(list.len()).unwrap().to_be_bytes();
        extension(0, &[&length[..], &list].concat())
    }

    fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
        let extensions = extensions.concat();
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
        if !extensions.is_empty() {
            body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
            body.extend(extensions);
        }
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[1], &length[1..], &body].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let record = |fragment: &[u8]| {
            let length = u16::try_from(fragment.len()).unwrap().to_be_bytes();
            [&[0x16, 3, 1][..], &length, fragment].concat()
        };
        message.chunks(size).flat_map(record).collect()
    }

    fn said(bytes: &[u8]) -> ServerName {
        match client_hello(bytes) {
            Hello::Said(name, _) => name,
            Hello::More => panic!("not whole"),
        }
    }

    #[test]
    fn a_server_name_is_found_however_it_is_cut() {
        let message = hello(&[extension(43, &[2, 3, 4]), sni(&["Example.ORG"])]);
        let expected = ServerName::Named(Host::parse("example.org").unwrap());
        for size in [1, 2, 7, 100, 1000] {
            let bytes = records(&message, size);
            assert_eq!(client_hello(&bytes), Hello::Said(expected.clone(), bytes.len()));
            for end in 0..bytes.len() {
                assert_eq!(client_hello(&bytes[..end]), Hello::More, "{size} {end}");
            }
            // Bytes after the message are not part of it.
            let longer = [&bytes[..], &[0x14, 3, 3, 0, 1, 1]].concat();
            assert_eq!(client_hello(&longer), Hello::Said(expected.clone(), bytes.len()));
        }
    }

    #[test]
    fn what_is_hidden_or_ambiguous_is_said_to_be() {
        assert_eq!(said(&records(&hello(&[]), 900)), ServerName::Absent);
        assert_eq!(said(&records(&hello(&[extension(43, &[0])]), 900)), ServerName::Absent);
        let both = hello(&[sni(&["example.org"]), extension(0xfe0d, &[0; 9])]);
        assert_eq!(said(&records(&both, 900)), ServerName::Encrypted);
        for message in [
            hello(&[sni(&["example.org"]), sni(&["evil.example"])]),
            hello(&[sni(&["example.org", "evil.example"])]),
            hello(&[sni(&["exam\0ple.org"])]),
            hello(&[sni(&[""])]),
            hello(&[extension(0, &[])]),
            vec![2, 0, 0, 0],
            vec![1, 0, 0, 1, 3],
            vec![1, 0xff, 0xff, 0xff],
        ] {
            assert!(matches!(said(&records(&message, 900)), ServerName::Unreadable(_)));
        }
        assert!(matches!(said(&[0x16, 3, 1, 0, 0]), ServerName::Unreadable(_)));
        assert!(matches!(said(&[0x16, 3, 1, 0, 1, 1, 0x17]), ServerName::Unreadable(_)));
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = client_hello(&bytes);
            let _ = client_hello(&[&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xf0], &bytes[..]].concat());
        }
    }
}
