//! Message bodies: their length, and the lines between chunks.

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// There is none, and no header about it.
    Empty,
    /// This many bytes.
    Length(u64),
    /// In chunks, each with its own length.
    Chunked,
    /// Until the connection ends; allowed only for responses.
    UntilClose,
}

impl Body {
    /// The header for this length.
    pub(super) fn field(self) -> String {
        match self {
            Self::Empty | Self::UntilClose => String::new(),
            Self::Length(length) => format!("Content-Length: {length}\r\n"),
            Self::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
        }
    }
}

/// The line before a chunk is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed chunk")]
pub struct ChunkError;

/// Longer lines are rejected; sixteen digits and a short extension fit.
const LINE_LIMIT: usize = 1024;

/// Parses the line before a chunk. Returns the chunk's length and the length of the line.
///
/// Extensions are skipped and never forwarded, because the line is written anew.
pub fn chunk_line(bytes: &[u8]) -> Result<Option<(u64, usize)>, ChunkError> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return if bytes.len() > LINE_LIMIT { Err(ChunkError) } else { Ok(None) };
    };
    let line = bytes.get(..end).and_then(|line| line.strip_suffix(b"\r")).ok_or(ChunkError)?;
    if line.len() > LINE_LIMIT || line.contains(&b'\r') {
        return Err(ChunkError);
    }
    let digits = line.iter().position(|byte| *byte == b';').unwrap_or(line.len());
    let digits = line.get(..digits).unwrap_or(line);
    if digits.is_empty() || digits.len() > 16 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(ChunkError);
    }
    let text = std::str::from_utf8(digits).map_err(|_| ChunkError)?;
    let length = u64::from_str_radix(text, 16).map_err(|_| ChunkError)?;
    Ok(Some((length, end + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn chunk_lines_are_hexadecimal_and_nothing_else() {
        assert_eq!(chunk_line(b"1f\r\nrest"), Ok(Some((31, 4))));
        assert_eq!(chunk_line(b"0\r\n\r\n"), Ok(Some((0, 3))));
        assert_eq!(chunk_line(b"5;name=value\r\n"), Ok(Some((5, 14))));
        assert_eq!(chunk_line(b"1"), Ok(None));
        assert_eq!(chunk_line(b"1\r"), Ok(None));
        for line in [
            &b"\r\n"[..],
            b"1\n",
            b" 1\r\n",
            b"1 \r\n",
            b"+1\r\n",
            b"-1\r\n",
            b"0x1\r\n",
            b"1_0\r\n",
            b"g\r\n",
            b"00000000000000001\r\n",
            b"1;a\rb\r\n",
            b"1;a\n",
        ] {
            assert_eq!(chunk_line(line), Err(ChunkError), "{}", line.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = chunk_line(&bytes);
        }
    }
}
