//! Secrets that are recognised by their shape.

use std::ops::Range;

use super::{Scanner, is_word};

/// How a private key ends.
pub(super) const KEY_END: &str = "-----END ";

/// One service's tokens.
struct Shape {
    /// How they begin.
    prefix: &'static str,
    /// What they go on with.
    letters: Letters,
    /// How many letters there are at least behind the prefix.
    least: usize,
}

/// The letters behind a prefix.
#[derive(Clone, Copy, PartialEq)]
enum Letters {
    /// Capitals and digits, exactly as many as the shape says.
    Capitals,
    /// Letters and digits.
    Alphanumeric,
    /// Letters, digits, `_` and `-`.
    Word,
    /// The same with an unbroken run of 16 letters and digits, which no ordinary name has.
    Random,
}

const fn shape(prefix: &'static str, letters: Letters, least: usize) -> Shape {
    Shape { prefix, letters, least }
}

const SHAPES: &[Shape] = &[
    shape("sk-ant-", Letters::Word, 8),
    shape("sk-", Letters::Random, 20),
    shape("sk_live_", Letters::Alphanumeric, 16),
    shape("sk_test_", Letters::Alphanumeric, 16),
    shape("rk_live_", Letters::Alphanumeric, 16),
    shape("gsk_", Letters::Alphanumeric, 32),
    shape("xai-", Letters::Random, 32),
    shape("ghp_", Letters::Alphanumeric, 20),
    shape("gho_", Letters::Alphanumeric, 20),
    shape("ghu_", Letters::Alphanumeric, 20),
    shape("ghs_", Letters::Alphanumeric, 20),
    shape("ghr_", Letters::Alphanumeric, 20),
    shape("github_pat_", Letters::Word, 20),
    shape("glpat-", Letters::Word, 16),
    shape("xoxa-", Letters::Word, 10),
    shape("xoxb-", Letters::Word, 10),
    shape("xoxp-", Letters::Word, 10),
    shape("xoxr-", Letters::Word, 10),
    shape("xoxs-", Letters::Word, 10),
    shape("AKIA", Letters::Capitals, 16),
    shape("ASIA", Letters::Capitals, 16),
    shape("AIza", Letters::Word, 30),
    shape("hf_", Letters::Alphanumeric, 20),
    shape("npm_", Letters::Alphanumeric, 30),
    shape("pypi-", Letters::Random, 32),
    shape("dop_v1_", Letters::Alphanumeric, 32),
    shape("dckr_pat_", Letters::Word, 20),
];

/// The shortest word that can hold a token.
const SHORTEST: usize = 12;
/// How much of a word is looked at to see whether it is one.
const SAMPLE: usize = 128;

/// A token of a known service within a word, or a JSON web token that begins with it.
pub(super) fn token(scanner: Scanner<'_>, word: Range<usize>) -> Option<Range<usize>> {
    let text = scanner.part(word.clone());
    if text.len() < SHORTEST {
        return None;
    }
    if let Some(end) = json_web_token(scanner, &word) {
        return Some(word.start..end);
    }
    let mut start = word.start;
    for part in text.split_inclusive(['-', '_']) {
        let rest = scanner.part(start..word.end);
        if let Some(length) = SHAPES.iter().find_map(|shape| shape.length(rest)) {
            return Some(start..start + length);
        }
        start += part.len();
    }
    None
}

impl Shape {
    /// How long the token is with which a word begins.
    fn length(&self, word: &str) -> Option<usize> {
        let body = word.strip_prefix(self.prefix)?;
        let letters = |most| body.bytes().take(most).take_while(|byte| self.letters.have(*byte));
        // Enough to judge by. Looking at all of it from every dash would make long words slow.
        let sample = letters(SAMPLE).count();
        self.fits(body.get(..sample)?, body.as_bytes().get(sample))
            .then(|| self.prefix.len() + letters(usize::MAX).count())
    }

    fn fits(&self, body: &str, next: Option<&u8>) -> bool {
        match self.letters {
            Letters::Capitals => {
                body.len() == self.least && !next.is_some_and(u8::is_ascii_alphanumeric)
            }
            Letters::Random => {
                body.len() >= self.least && body.split(['-', '_']).any(|run| run.len() >= 16)
            }
            Letters::Alphanumeric | Letters::Word => body.len() >= self.least,
        }
    }
}

impl Letters {
    fn have(self, byte: u8) -> bool {
        match self {
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::Word | Self::Random => is_word(byte),
        }
    }
}

/// Where the token ends: `eyJ`, then two or three parts with dots between them.
fn json_web_token(scanner: Scanner<'_>, word: &Range<usize>) -> Option<usize> {
    if !scanner.part(word.clone()).starts_with("eyJ") {
        return None;
    }
    let part = |at: usize| {
        let rest = scanner.from(at).strip_prefix('.')?;
        let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
        (length >= 4).then_some(at + 1 + length)
    };
    let claims = part(word.end)?;
    Some(part(claims).unwrap_or(claims))
}

/// A private key in text form, from its first line to its last.
///
/// One whose last line is missing ends where its letters do. Its first line alone is what people
/// search for, and is no secret.
pub(super) fn private_key(scanner: Scanner<'_>, word: Range<usize>) -> Option<Range<usize>> {
    if scanner.part(word.clone()) != "-----BEGIN" {
        return None;
    }
    let body_at = word.end + label_length(scanner.from(word.end))?;
    if !scanner.part(word.end..body_at).contains("PRIVATE KEY") {
        return None;
    }
    if scanner.last_key_end >= body_at {
        let end_at = body_at + scanner.from(body_at).find(KEY_END)? + KEY_END.len();
        let length = label_length(scanner.from(end_at)).unwrap_or(0);
        return Some(word.start..end_at + length);
    }
    let is_body = |byte: &u8| is_word(*byte) || b"+/=\\:, \t\r\n".contains(byte);
    let length = scanner.from(body_at).bytes().take_while(is_body).count();
    (length >= 64).then_some(word.start..body_at + length)
}

/// How long the label is at the beginning of a text, with the dashes behind it.
fn label_length(text: &str) -> Option<usize> {
    let length = text.find("-----")?;
    (length <= 64).then_some(length + "-----".len())
}
