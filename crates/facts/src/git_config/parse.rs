//! The text of a git configuration, read byte by byte as git reads it.
//!
//! The reader follows `config.c` of git. Where git would stop with an error it goes on with the next
//! line, and the file no longer counts as plain: names are found in it all the same.

/// A configuration as it was read.
#[derive(Debug, Default)]
pub(super) struct Config {
    pub(super) lines: Vec<Line>,
    /// Whether everything is written as git writes it.
    pub(super) plain: bool,
}

/// A heading, which has no key, or a key under its heading.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// In lower case.
    pub(super) section: String,
    pub(super) subsection: Option<String>,
    /// In lower case.
    pub(super) key: String,
    /// Without quotation marks, escapes and comment; `None` without a `=`.
    pub(super) value: Option<Vec<u8>>,
    /// As it was written, with every line that continues it. One character for each byte.
    pub(super) raw: String,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a whole configuration.
pub(super) fn parse(bytes: &[u8]) -> Config {
    // Git skips a byte order mark, and never writes one.
    let unmarked = bytes.strip_prefix(BYTE_ORDER_MARK);
    let mut config = Config { lines: Vec::new(), plain: unmarked.is_none() };
    let mut reader = Reader { bytes: unmarked.unwrap_or(bytes), at: 0 };
    let (mut section, mut subsection) = (String::new(), None);
    while !reader.is_over() {
        let start = reader.at;
        match reader.next() {
            b'\n' | b' ' | b'\t' | b'\r' => {}
            b'#' | b';' => reader.skip_line(start),
            b'[' => {
                config.plain &= is_plain_heading(reader.line(start));
                let Some(found) = reader.heading() else {
                    config.plain = false;
                    reader.skip_line(start);
                    continue;
                };
                (section, subsection) = found;
                config.lines.push(Line {
                    section: section.clone(),
                    subsection: subsection.clone(),
                    key: String::new(),
                    value: None,
                    raw: String::new(),
                });
            }
            first => {
                let (key, value, plain) = reader.entry(first);
                config.plain &= plain;
                let written = reader.bytes.get(start..reader.at.min(reader.bytes.len()));
                let raw = text(written.unwrap_or_default());
                let raw = raw.trim_end_matches([' ', '\t', '\r', '\n']).to_owned();
                let (section, subsection) = (section.clone(), subsection.clone());
                config.lines.push(Line { section, subsection, key, value, raw });
            }
        }
    }
    config
}

/// One character for each byte.
fn text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next byte. The end of the file is the end of a line, and so is CR LF.
    fn next(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(b'\n');
        self.at += 1;
        if byte == b'\r' && self.bytes.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return b'\n';
        }
        byte
    }

    /// The rest of the line that starts at an offset.
    fn line(&self, start: usize) -> &[u8] {
        let rest = self.bytes.get(start..).unwrap_or_default();
        rest.split(|byte| *byte == b'\n').next().unwrap_or_default()
    }

    /// Goes to the line after the one that an offset is in.
    fn skip_line(&mut self, start: usize) {
        self.at = start + self.line(start).len() + 1;
    }

    /// The section and subsection of a heading, behind its `[`. Both spellings of a subsection are
    /// read: `[a "b"]` and `[a.b]`.
    fn heading(&mut self) -> Option<(String, Option<String>)> {
        let mut name = Vec::new();
        let mut quoted = None;
        loop {
            match self.next() {
                _ if self.at > self.bytes.len() => return None,
                b']' => break,
                b' ' | b'\t' | b'\r' => {
                    quoted = Some(self.quoted_subsection()?);
                    break;
                }
                byte if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.' => {
                    name.push(byte.to_ascii_lowercase());
                }
                _ => return None,
            }
        }
        let name = text(&name);
        Some(match (name.split_once('.'), quoted) {
            (None, quoted) => (name, quoted),
            (Some((name, sub)), None) => (name.to_owned(), Some(sub.to_owned())),
            (Some((name, sub)), Some(more)) => (name.to_owned(), Some(format!("{sub}.{more}"))),
        })
    }

    fn quoted_subsection(&mut self) -> Option<String> {
        let mut byte = self.next();
        while matches!(byte, b' ' | b'\t' | b'\r') {
            byte = self.next();
        }
        if byte != b'"' {
            return None;
        }
        let mut name = Vec::new();
        loop {
            match self.next() {
                b'\n' => return None,
                b'"' => break,
                b'\\' => match self.next() {
                    b'\n' => return None,
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
        (self.next() == b']').then(|| text(&name))
    }

    /// A key that starts with this byte, its value, and whether git would accept both.
    fn entry(&mut self, first: u8) -> (String, Option<Vec<u8>>, bool) {
        let start = self.at - 1;
        let mut plain = first.is_ascii_alphabetic();
        let mut key = vec![first.to_ascii_lowercase()];
        let mut byte = self.next();
        while byte.is_ascii_alphanumeric() || byte == b'-' {
            key.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while byte == b' ' || byte == b'\t' {
            byte = self.next();
        }
        let value = match byte {
            b'\n' => None,
            b'=' => {
                let (value, whole) = self.value();
                plain &= whole;
                Some(value)
            }
            _ => {
                plain = false;
                self.skip_line(start);
                None
            }
        };
        (text(&key), value, plain)
    }

    /// A value as git understands it, and whether git would accept it.
    fn value(&mut self) -> (Vec<u8>, bool) {
        let (mut value, mut plain) = (Vec::new(), true);
        // Blanks at the end do not count, unless they are quoted.
        let mut length = 0;
        let (mut quoted, mut comment) = (false, false);
        loop {
            match self.next() {
                b'\n' => {
                    plain &= !quoted;
                    break;
                }
                _ if comment => continue,
                b' ' | b'\t' | b'\r' if !quoted => {
                    // A tab becomes a blank, in most versions of git.
                    if !value.is_empty() {
                        value.push(b' ');
                    }
                    continue;
                }
                b'#' | b';' if !quoted => {
                    comment = true;
                    continue;
                }
                b'"' => quoted = !quoted,
                b'\\' => match self.next() {
                    b'\n' if self.at > self.bytes.len() => {
                        plain = false;
                        break;
                    }
                    b'\n' => {}
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    byte => {
                        plain &= matches!(byte, b'\\' | b'"');
                        value.push(byte);
                    }
                },
                byte => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        // Git uses the value as a C string.
        if let Some(end) = value.iter().position(|byte| *byte == 0) {
            plain = false;
            value.truncate(end);
        }
        (value, plain)
    }
}

/// Whether a whole line is a heading as git writes it: a name, and perhaps another in quotation
/// marks.
fn is_plain_heading(line: &[u8]) -> bool {
    let line = text(line);
    let inside = line.trim().strip_prefix('[').and_then(|line| line.strip_suffix(']'));
    let Some(inside) = inside else { return false };
    let quoted = |text: &str| {
        let sub = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        sub.is_some_and(|sub| !sub.contains(['"', '\\', '[', ']']))
    };
    let (name, plain) = match inside.split_once(' ') {
        Some((name, sub)) => (name, quoted(sub)),
        None => (inside, true),
    };
    plain && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
}
