//! Request heads: finds their end, parses them, and writes them for the server.

use std::str;

use model::{Host, HostError};

use super::HEAD_LIMIT;
use super::body::Body;

/// Why a head is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// More than the limit, or more fields than anyone needs.
    #[error("the head is too long")]
    TooLong,
    /// A line that does not end in CR LF.
    #[error("a header line ends with a bare CR or LF")]
    BareLineEnd,
    /// The grammar is broken.
    #[error("malformed head: {0}")]
    Malformed(&'static str),
    /// The length of the body is given twice or in two ways.
    #[error("the length of the body is ambiguous")]
    AmbiguousLength,
    /// No Host header, or more than one.
    #[error("expected exactly one Host header")]
    HostCount,
    /// A form of target that is not allowed here.
    #[error("unsupported request target")]
    Target,
    /// A scheme other than `http`.
    #[error("only http URLs can be forwarded; use CONNECT for other schemes")]
    Scheme,
    /// An invalid host.
    #[error("invalid host `{text}`: {error}")]
    Host {
        /// The host as it was written.
        text: String,
        /// What is wrong.
        error: HostError,
    },
}

/// A request's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// What the request is for.
    pub target: Target,
    /// The minor version of HTTP/1.
    pub minor: u8,
    /// The Host header.
    pub host: Option<Authority>,
    /// How long the body is.
    pub body: Body,
    /// Whether the client closes the connection after this request.
    pub close: bool,
    /// Whether it asks for an upgrade to WebSocket.
    pub websocket: bool,
    /// The headers that are forwarded unchanged.
    fields: Vec<(String, Vec<u8>)>,
}

/// A host, and a port where one is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: Option<u16>,
}

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `CONNECT host:port`.
    Tunnel(Host, u16),
    /// `GET http://host/path`, as clients of a proxy write it.
    Absolute(Authority, String),
    /// `GET /path`, as clients of a server write it, or `OPTIONS *`.
    Origin(String),
}

/// The end of the head, after its empty line. Bytes before `from` were checked by an earlier call.
pub fn head_end(bytes: &[u8], from: usize) -> Result<Option<usize>, HeadError> {
    let mut line = bytes.get(..from).unwrap_or_default().iter().rposition(|byte| *byte == b'\n');
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        match (before, byte) {
            (Some(b'\r'), b'\n') => {
                if line.is_some_and(|line| line + 2 == at) {
                    return Ok(Some(at + 1));
                }
                line = Some(at);
            }
            (Some(b'\r'), _) | (_, b'\n') => return Err(HeadError::BareLineEnd),
            _ => {}
        }
        if at >= HEAD_LIMIT {
            return Err(HeadError::TooLong);
        }
    }
    Ok(None)
}

impl Request {
    /// Reads a whole head, from its first byte to its empty line.
    pub fn parse(head: &[u8]) -> Result<Self, HeadError> {
        let mut fields = [httparse::EMPTY_HEADER; 128];
        let mut parsed = httparse::Request::new(&mut fields);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => {}
            Ok(_) => return Err(HeadError::Malformed("unexpected bytes after its end")),
            Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooLong),
            Err(error) => return Err(HeadError::Malformed(described(error))),
        }
        let (Some(method), Some(target), Some(minor)) =
            (parsed.method, parsed.path, parsed.version)
        else {
            return Err(HeadError::Malformed("the request line is incomplete"));
        };
        let fields = Fields(parsed.headers);
        let connection = fields.connection()?;
        let body = fields.request_body(minor)?;
        let host = fields.host(minor)?;
        let websocket = minor == 1
            && method == "GET"
            && body == Body::Empty
            && connection.iter().any(|word| word == "upgrade")
            && fields.only(b"websocket", "upgrade");
        Ok(Self {
            method: method.to_owned(),
            target: Target::parse(method, target)?,
            minor,
            host,
            body,
            close: minor == 0 || connection.iter().any(|word| word == "close"),
            websocket,
            fields: fields.end_to_end(&connection),
        })
    }

    /// The head for the server: the path without a host, the Host header in its canonical form, and
    /// no hop-by-hop headers.
    pub fn bytes(&self, host: &Host, port: u16) -> Vec<u8> {
        let path = match &self.target {
            Target::Absolute(_, path) | Target::Origin(path) => path,
            Target::Tunnel(..) => "/",
        };
        let host = if port == 80 { host.to_string() } else { host.with_port(port) };
        let mut bytes = format!("{} {path} HTTP/1.{}\r\nHost: {host}\r\n", self.method, self.minor)
            .into_bytes();
        put_fields(&mut bytes, &self.fields);
        bytes.extend_from_slice(self.body.field().as_bytes());
        if self.websocket {
            bytes.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}

impl Target {
    fn parse(method: &str, text: &str) -> Result<Self, HeadError> {
        if method == "CONNECT" {
            let Authority { host, port } = authority(text)?;
            let error = HostError::Port;
            let port = port.ok_or_else(|| HeadError::Host { text: text.to_owned(), error })?;
            return Ok(Self::Tunnel(host, port));
        }
        if text.starts_with('/') || (text == "*" && method == "OPTIONS") {
            return Ok(Self::Origin(text.to_owned()));
        }
        let (scheme, rest) = text.split_once("://").ok_or(HeadError::Target)?;
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(HeadError::Scheme);
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        let path = match path.bytes().next() {
            Some(b'/') => path.to_owned(),
            Some(b'#') => return Err(HeadError::Target),
            _ => format!("/{path}"),
        };
        Ok(Self::Absolute(authority(host)?, path))
    }
}

fn authority(text: &str) -> Result<Authority, HeadError> {
    let (host, port) = Host::parse_authority(text)
        .map_err(|error| HeadError::Host { text: text.to_owned(), error })?;
    Ok(Authority { host, port })
}

pub(super) fn put_fields(bytes: &mut Vec<u8>, fields: &[(String, Vec<u8>)]) {
    for (name, value) in fields {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
}

pub(super) fn described(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "invalid header name",
        httparse::Error::HeaderValue => "invalid header value",
        httparse::Error::NewLine => "invalid line ending",
        httparse::Error::Token => "invalid first line",
        httparse::Error::Version => "only HTTP/1.0 and HTTP/1.1 are supported",
        httparse::Error::Status => "invalid status",
        httparse::Error::TooManyHeaders => "too many headers",
    }
}

/// The headers of a head.
pub(super) struct Fields<'a, 'b>(pub(super) &'a [httparse::Header<'b>]);

impl<'a> Fields<'a, '_> {
    /// All values of a header.
    pub(super) fn all(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let same = move |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case(name);
        self.0.iter().filter(same).map(|field| field.value)
    }

    fn only(&self, value: &[u8], name: &str) -> bool {
        let mut values = self.all(name);
        values.next().is_some_and(|first| first.eq_ignore_ascii_case(value))
            && values.next().is_none()
    }

    /// The words of the Connection headers, in lower case. They name hop-by-hop headers. Headers that
    /// define the host or the length of the message cannot be among them.
    pub(super) fn connection(&self) -> Result<Vec<String>, HeadError> {
        let mut words = Vec::new();
        for value in self.all("connection").chain(self.all("proxy-connection")) {
            let text = str::from_utf8(value)
                .map_err(|_| HeadError::Malformed("the Connection header is not text"))?;
            words.extend(text.split(',').map(|word| word.trim().to_ascii_lowercase()));
        }
        let meant = ["host", "content-length", "transfer-encoding"];
        if words.iter().any(|word| meant.contains(&word.as_str())) {
            return Err(HeadError::Malformed(
                "the Connection header names a header that must be forwarded",
            ));
        }
        Ok(words)
    }

    fn host(&self, minor: u8) -> Result<Option<Authority>, HeadError> {
        let mut values = self.all("host");
        match (values.next(), values.next()) {
            (Some(value), None) => {
                let text = str::from_utf8(value).map_err(|_| HeadError::Host {
                    text: String::from_utf8_lossy(value).into_owned(),
                    error: HostError::Character,
                })?;
                Ok(Some(authority(text)?))
            }
            (None, _) if minor == 0 => Ok(None),
            _ => Err(HeadError::HostCount),
        }
    }

    fn request_body(&self, minor: u8) -> Result<Body, HeadError> {
        let length = self.content_length()?;
        let mut encodings = self.all("transfer-encoding");
        match (encodings.next(), encodings.next(), length) {
            (None, _, None) => Ok(Body::Empty),
            (None, _, Some(length)) => Ok(Body::Length(length)),
            (Some(value), None, None) if minor == 1 && value.eq_ignore_ascii_case(b"chunked") => {
                Ok(Body::Chunked)
            }
            _ => Err(HeadError::AmbiguousLength),
        }
    }

    pub(super) fn content_length(&self) -> Result<Option<u64>, HeadError> {
        let mut values = self.all("content-length");
        let Some(value) = values.next() else { return Ok(None) };
        let digits = value.iter().all(u8::is_ascii_digit).then(|| str::from_utf8(value).ok());
        let length = digits.flatten().and_then(|text| text.parse().ok());
        match (length, values.next()) {
            (Some(length), None) => Ok(Some(length)),
            _ => Err(HeadError::AmbiguousLength),
        }
    }

    /// The headers to forward: no hop-by-hop headers, and neither host nor length, which are written
    /// separately.
    pub(super) fn end_to_end(&self, connection: &[String]) -> Vec<(String, Vec<u8>)> {
        const HOP: [&str; 11] = [
            "connection",
            "content-length",
            "host",
            "http2-settings",
            "keep-alive",
            "proxy-authorization",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ];
        let stays =
            |name: &str| !HOP.contains(&name) && !connection.iter().any(|word| word == name);
        self.0
            .iter()
            .filter(|field| stays(&field.name.to_ascii_lowercase()))
            .map(|field| (field.name.to_owned(), field.value.to_vec()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Request, HeadError> {
        let end = head_end(text.as_bytes(), 0)?.expect("the head is whole");
        Request::parse(&text.as_bytes()[..end])
    }

    fn passed_on(text: &str) -> String {
        let request = parse(text).unwrap();
        let host = request.host.clone().unwrap();
        String::from_utf8(request.bytes(&host.host, host.port.unwrap_or(80))).unwrap()
    }

    #[test]
    fn only_what_concerns_the_server_is_passed_on() {
        assert_eq!(
            passed_on(
                "GET http://Example.ORG/a?b HTTP/1.1\r\nhOst: EXAMPLE.org\r\nProxy-Connection: \
                 keep-alive\r\nProxy-Authorization: Basic eA==\r\nConnection: x-hop, keep-alive\r\n\
                 X-Hop: 1\r\nX-Stays: 2\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\nTE: trailers\r\n\r\n"
            ),
            "GET /a?b HTTP/1.1\r\nHost: example.org\r\nX-Stays: 2\r\n\r\n"
        );
        assert_eq!(
            passed_on("POST /x HTTP/1.1\r\nHost: example.org:8080\r\nContent-Length: 3\r\n\r\n"),
            "POST /x HTTP/1.1\r\nHost: example.org:8080\r\nContent-Length: 3\r\n\r\n"
        );
        assert_eq!(
            passed_on(
                "GET / HTTP/1.1\r\nHost: example.org\r\nConnection: Upgrade\r\nUpgrade: \
                 WebSocket\r\nSec-WebSocket-Key: eA==\r\n\r\n"
            ),
            "GET / HTTP/1.1\r\nHost: example.org\r\nSec-WebSocket-Key: eA==\r\nConnection: \
             Upgrade\r\nUpgrade: websocket\r\n\r\n"
        );
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost:\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a.example\r\n\r\n",
            "GET / HTTP/1.1\r\n Host: a.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\r\nX: y\r\n Host: b.example\r\nHost: a.example\r\n\r\n",
            "GET / HTTP/1.1\nHost: a.example\n\n",
            "GET / HTTP/1.1\r\nHost: a.example\n\r\n\r\n",
            "GET / HTTP/1.1\r\nX: a\rHost: b.example\r\nHost: a.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\0\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET / x HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: a.example\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "GET /\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET a.example HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET http://a.example#x HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET http://u@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET http://a.example:x/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET http:///x HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "CONNECT /x HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "CONNECT http://a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3, 3\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: +3\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0x3\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length:\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: identity\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: xchunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.0\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: host\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nConnection: Content-Length\r\n\r\n",
        ] {
            let refused = match head_end(text.as_bytes(), 0) {
                Ok(Some(end)) => Request::parse(&text.as_bytes()[..end]).is_err(),
                Ok(None) => false,
                Err(_) => true,
            };
            assert!(refused, "{text:?}");
        }
    }

    #[test]
    fn the_end_of_a_head_is_found_in_any_pieces() {
        let bytes = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\nbody";
        let end = bytes.len() - 4;
        for cut in 0..end {
            assert_eq!(head_end(&bytes[..cut], 0), Ok(None), "{cut}");
            assert_eq!(head_end(bytes, cut), Ok(Some(end)), "{cut}");
        }
        assert_eq!(head_end(&vec![b'a'; HEAD_LIMIT + 1], 0), Err(HeadError::TooLong));
    }

    proptest! {
        #[test]
        fn what_is_passed_on_is_read_back_the_same(
            path in "/[a-z?=&.]{0,12}",
            value in "[ -~]{0,20}",
            length in prop::option::of(0u64..1000),
        ) {
            let length = length.map(|n| format!("Content-Length: {n}\r\n")).unwrap_or_default();
            let text = format!("POST {path} HTTP/1.1\r\nHost: a.example\r\nX: {value}\r\n{length}\r\n");
            let request = parse(&text).unwrap();
            let again = request.bytes(&Host::parse("a.example").unwrap(), 80);
            prop_assert_eq!(Request::parse(&again), Ok(request));
        }

        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = head_end(&bytes, 0);
            let _ = Request::parse(&bytes);
        }
    }
}
