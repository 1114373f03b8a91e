//! Removes secrets from a text before it is written.
//!
//! One pass from left to right, without regular expressions. Every word is examined once: as a token
//! that is recognised by its shape ([`token`]), or as the name of a value that follows it ([`value`],
//! [`name`]). Ordinary text is unchanged, because a log must show what happened.

mod name;
mod token;
mod value;

use std::borrow::Cow;
use std::ops::Range;

/// What replaces a secret.
const MARK: &str = "[redacted]";

/// The same text with every secret replaced by `[redacted]`.
///
/// Knows the tokens of common services, private keys, passwords in URLs, `Authorization` headers,
/// and values whose name says what they are (`API_TOKEN=…`, `--password …`, `"secret": "…"`).
/// A reference such as `$TOKEN` is not a secret and is kept. A secret with neither a known shape nor a
/// telling name (`mysql -phunter2`) is not recognised.
pub fn redact(text: &str) -> Cow<'_, str> {
    let scanner = Scanner::new(text);
    let mut clean = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        match scanner.step(at) {
            Step::Pass(next) => at = next,
            Step::Hide(secret) => {
                clean.push_str(text.get(copied..secret.start).unwrap_or_default());
                clean.push_str(MARK);
                copied = secret.end;
                at = secret.end;
            }
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(clean)
}

/// What to do at one place of a text.
enum Step {
    /// Nothing here: go on at this place.
    Pass(usize),
    /// A secret: replace these bytes, and go on behind them.
    Hide(Range<usize>),
}

/// A text, and what is known about all of it.
#[derive(Debug, Clone, Copy)]
struct Scanner<'a> {
    text: &'a str,
    /// Where the last private key ends.
    last_key_end: usize,
    /// Whether `-u name:password` can mean what it means to curl.
    has_curl: bool,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            last_key_end: text.rfind(token::KEY_END).unwrap_or(0),
            has_curl: text.contains("curl "),
        }
    }

    fn step(self, at: usize) -> Step {
        let rest = self.from(at);
        if rest.starts_with("://") {
            return match value::password_in_url(self, at + 3) {
                Some(password) => Step::Hide(password),
                None => Step::Pass(at + 3),
            };
        }
        let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
        if length == 0 {
            return Step::Pass(at + rest.chars().next().map_or(1, char::len_utf8));
        }
        let word = at..at + length;
        let secret = token::private_key(self, word.clone())
            .or_else(|| token::token(self, word.clone()))
            .or_else(|| value::value(self, word.clone()));
        secret.map_or(Step::Pass(word.end), Step::Hide)
    }

    /// The text from a place on.
    fn from(self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }

    /// A part of the text.
    fn part(self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }
}

/// The letters that names, options and most tokens are made of.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}
