//! Response heads: parses them and writes them for the client.

use super::body::Body;
use super::head::{Fields, HeadError, described, put_fields};

/// A response's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// How long the body is.
    pub body: Body,
    /// Whether the server closes the connection after this response.
    pub close: bool,
    minor: u8,
    reason: String,
    upgrade: Option<Vec<u8>>,
    fields: Vec<(String, Vec<u8>)>,
    length: Option<u64>,
}

impl Response {
    /// Parses the whole head of a response to a request with this method.
    pub fn parse(head: &[u8], method: &str) -> Result<Self, HeadError> {
        let mut fields = [httparse::EMPTY_HEADER; 256];
        let mut parsed = httparse::Response::new(&mut fields);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => {}
            Ok(_) => return Err(HeadError::Malformed("unexpected bytes after its end")),
            Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooLong),
            Err(error) => return Err(HeadError::Malformed(described(error))),
        }
        let (Some(status), Some(minor)) = (parsed.code, parsed.version) else {
            return Err(HeadError::Malformed("the status line is incomplete"));
        };
        let fields = Fields(parsed.headers);
        let connection = fields.connection()?;
        let mut encodings = fields.all("transfer-encoding");
        let chunked = match (encodings.next(), encodings.next()) {
            (None, _) => false,
            (Some(value), None) if value.eq_ignore_ascii_case(b"chunked") => true,
            _ => return Err(HeadError::AmbiguousLength),
        };
        let length = if chunked { None } else { fields.content_length()? };
        let body = match length {
            _ if method == "HEAD" || status < 200 || status == 204 || status == 304 => Body::Empty,
            _ if chunked => Body::Chunked,
            Some(length) => Body::Length(length),
            None => Body::UntilClose,
        };
        Ok(Self {
            status,
            body,
            close: minor == 0
                || body == Body::UntilClose
                || connection.iter().any(|word| word == "close"),
            minor,
            reason: parsed.reason.unwrap_or_default().to_owned(),
            upgrade: fields.all("upgrade").next().map(<[u8]>::to_vec),
            fields: fields.end_to_end(&connection),
            length,
        })
    }

    /// Whether the connection switches to another protocol.
    pub fn switches(&self) -> bool {
        self.status == 101
    }

    /// The head for the client.
    pub fn bytes(&self, close: bool) -> Vec<u8> {
        let (minor, status, reason) = (self.minor, self.status, &self.reason);
        let mut bytes = format!("HTTP/1.{minor} {status} {reason}\r\n").into_bytes();
        put_fields(&mut bytes, &self.fields);
        // The response to HEAD states the length that the body would have.
        let body = self.length.filter(|_| self.body == Body::Empty).map_or(self.body, Body::Length);
        bytes.extend_from_slice(body.field().as_bytes());
        match &self.upgrade {
            Some(upgrade) if self.switches() => {
                bytes.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: ");
                bytes.extend_from_slice(upgrade);
                bytes.extend_from_slice(b"\r\n");
            }
            _ if close && status >= 200 => bytes.extend_from_slice(b"Connection: close\r\n"),
            _ => {}
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_response_is_known() {
        for (method, text, body, close) in [
            ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Body::Length(5), false),
            ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Body::Empty, false),
            ("GET", "HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\n", Body::Empty, false),
            ("GET", "HTTP/1.1 204 No\r\n\r\n", Body::Empty, false),
            ("GET", "HTTP/1.1 100 Continue\r\n\r\n", Body::Empty, false),
            ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Body::Chunked, false),
            (
                "GET",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
                Body::Chunked,
                false,
            ),
            ("GET", "HTTP/1.1 200 OK\r\n\r\n", Body::UntilClose, true),
            ("GET", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Body::Length(5), true),
            (
                "GET",
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n",
                Body::Length(5),
                true,
            ),
        ] {
            let response = Response::parse(text.as_bytes(), method).unwrap();
            assert_eq!((response.body, response.close), (body, close), "{text:?}");
        }
        let twice = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n";
        assert!(Response::parse(twice.as_bytes(), "GET").is_err());
    }

    #[test]
    fn a_response_is_passed_on_without_what_was_for_this_hop() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nKeep-Alive: timeout=5\r\nX: y\r\n\r\n";
        let response = Response::parse(text.as_bytes(), "HEAD").unwrap();
        let shown = String::from_utf8(response.bytes(true)).unwrap();
        let expected = "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";
        assert_eq!(shown, expected);
    }
}
