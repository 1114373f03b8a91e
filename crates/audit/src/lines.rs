//! Reading the log line by line, in constant memory.

use std::io::{self, BufRead, Read};

/// The longest line a log may have. Append writes far shorter lines; a longer one is foreign.
pub(crate) const LONGEST_LINE: usize = 1 << 20;

/// A reader of lines that keeps count.
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    number: usize,
    offset: u64,
}

/// One line and its place.
pub(crate) struct RawLine<'a> {
    /// Counted from one.
    pub(crate) number: usize,
    /// Where it starts, counted from where the reader began.
    pub(crate) start: u64,
    /// Where the next one starts.
    pub(crate) end: u64,
    /// What it holds.
    pub(crate) text: Text<'a>,
}

/// What a line holds.
pub(crate) enum Text<'a> {
    /// The bytes before the newline.
    Whole(&'a [u8]),
    /// The last bytes of the file, without a newline.
    Torn(&'a [u8]),
    /// More bytes than a line may have.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    /// Reads lines from here on.
    pub(crate) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), number: 0, offset: 0 }
    }

    /// The next line, or nothing at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        self.buffer.clear();
        // One byte more for the newline.
        let limit = LONGEST_LINE as u64 + 1;
        let read = self.source.by_ref().take(limit).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        let start = self.offset;
        self.offset += read as u64;
        self.number += 1;
        let text = if let Some(line) = self.buffer.strip_suffix(b"\n") {
            Text::Whole(line)
        } else if read <= LONGEST_LINE {
            Text::Torn(&self.buffer)
        } else {
            self.offset += self.source.skip_until(b'\n')? as u64;
            Text::TooLong
        };
        Ok(Some(RawLine { number: self.number, start, end: self.offset, text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number, start and kind of every line.
    fn read(bytes: &[u8]) -> Vec<(usize, u64, String)> {
        let mut lines = Lines::new(bytes);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let text = match line.text {
                Text::Whole(bytes) => format!("whole {}", String::from_utf8_lossy(bytes)),
                Text::Torn(bytes) => format!("torn {}", String::from_utf8_lossy(bytes)),
                Text::TooLong => "too long".into(),
            };
            seen.push((line.number, line.start, text));
        }
        seen
    }

    #[test]
    fn lines_are_numbered_and_a_missing_newline_shows() {
        assert_eq!(read(b""), []);
        assert_eq!(
            read(b"a\n\nbc"),
            [(1, 0, "whole a".into()), (2, 2, "whole ".into()), (3, 3, "torn bc".into())]
        );
    }

    #[test]
    fn an_endless_line_is_passed_over() {
        let mut bytes = vec![b'x'; LONGEST_LINE];
        bytes.push(b'\n');
        assert!(read(&bytes)[0].2.starts_with("whole x"));
        bytes.splice(0..0, *b"xx");
        bytes.extend(b"y\n");
        let end = bytes.len() as u64;
        assert_eq!(read(&bytes), [(1, 0, "too long".into()), (2, end - 2, "whole y".into())]);
    }
}
