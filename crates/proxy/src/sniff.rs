//! Recognises the protocol of a connection by the client's first bytes.

use crate::tls;

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TLS: its first message names a server.
    Tls,
    /// TLS in a form that cannot name a server.
    NamelessTls,
    /// HTTP/1 without TLS: every request names a host.
    Http,
    /// Anything else: forwarded as it is.
    Opaque,
}

/// On this port only HTTP and TLS are allowed.
const HTTP_PORT: u16 = 80;
/// A longer first line is judged by its beginning.
const LINE_LIMIT: usize = 16 * 1024;

/// The protocol, or `None` while more bytes are needed.
pub fn sniff(bytes: &[u8], port: u16) -> Option<Protocol> {
    match bytes {
        [] | [0x16 | 0x80..=0xff] | [0x80..=0xff, _] | [0x80..=0xff, _, 0x01] => return None,
        _ if tls::looks_like_tls(bytes) => return Some(Protocol::Tls),
        _ if tls::looks_like_ssl2(bytes) => return Some(Protocol::NamelessTls),
        _ if port == HTTP_PORT => return Some(Protocol::Http),
        _ => {}
    }
    // Servers skip empty lines before a request, so we must skip them as well.
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let line = bytes.get(start..).unwrap_or_default();
    // The first byte that ends a line or is invalid in one decides, so later bytes change nothing.
    let stop = line.iter().position(|byte| *byte == b'\n' || is_never_in_a_line(*byte));
    let first = line.get(..stop.unwrap_or(line.len())).unwrap_or(line);
    let http = if first.len() > LINE_LIMIT {
        begins_like_request(first)
    } else if line.get(stop?) == Some(&b'\n') {
        is_request_line(first)
    } else {
        begins_like_request(first)
    };
    Some(if http { Protocol::Http } else { Protocol::Opaque })
}

/// Whether a lenient server might accept the line as a request.
fn is_request_line(line: &[u8]) -> bool {
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut words = words.skip(1);
    words.any(|word| word.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/")))
}

/// The same for a line that is too long or contains a byte that some servers ignore.
fn begins_like_request(line: &[u8]) -> bool {
    let method = line.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let target = line.get(method..).unwrap_or_default().trim_ascii_start();
    method > 0 && matches!(target, [b'/' | b'*' | b'h' | b'H', ..])
}

fn is_never_in_a_line(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_recognised() {
        for (bytes, port, protocol) in [
            (&b""[..], 443, None),
            (b"\x16", 443, None),
            (b"\x16\x03\x01", 22, Some(Protocol::Tls)),
            (b"\x80\x2e\x01", 443, None),
            (b"\x80\x2e\x01\x03\x01", 443, Some(Protocol::NamelessTls)),
            (b"GET / HT", 443, None),
            (b"GET / HTTP/1.1\r\n", 443, Some(Protocol::Http)),
            (b"\r\n\r\nGET / HTTP/1.1\r\n", 8080, Some(Protocol::Http)),
            (b"\r\n", 8080, None),
            (b"get\t/  http/1.1\n", 8080, Some(Protocol::Http)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 443, Some(Protocol::Http)),
            (b"GET /\x01", 8080, Some(Protocol::Http)),
            (b"GET /\x01 HTTP/1.1\r\n", 8080, Some(Protocol::Http)),
            (b"SSH-2.0-OpenSSH_9.6p1 Debian-3\r\n", 22, Some(Protocol::Opaque)),
            (b"EHLO example.org\r\n", 25, Some(Protocol::Opaque)),
            (b"0032git-upload-pack /p.git\0host=x\0", 9418, Some(Protocol::Opaque)),
            (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", 5432, Some(Protocol::Opaque)),
            (b"anything", 80, Some(Protocol::Http)),
        ] {
            assert_eq!(sniff(bytes, port), protocol, "{}", bytes.escape_ascii());
        }
    }
}
