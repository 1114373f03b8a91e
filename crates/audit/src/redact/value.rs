//! Values that are secret because of the name before them.

use std::ops::Range;

use super::Scanner;
use super::name::{self, Name};

/// The words allowed between `Authorization:` and the secret.
const SCHEMES: &[&str] = &["bearer", "basic", "token", "digest", "negotiate", "apikey"];

/// Values that say nothing.
const PLAIN: &[&str] = &["true", "false", "yes", "no", "on", "off", "null", "none", "0", "1"];

/// Options of curl that take `user:password`.
const CURL_USER: &[&str] = &["-u", "-U", "--user", "--proxy-user"];

/// The password in `user:password@host`, where `at` is the place behind `://`.
///
/// A user without a password is none, unless it can only be a token.
pub(super) fn password_in_url(scanner: Scanner<'_>, at: usize) -> Option<Range<usize>> {
    let rest = scanner.from(at);
    let ends = |letter: char| letter.is_whitespace() || "/?#\"'`<>\\".contains(letter);
    let authority = rest.split(ends).next()?;
    let (user_info, _) = authority.rsplit_once('@')?;
    let secret = match user_info.split_once(':') {
        Some((user, _)) => user.len() + 1..user_info.len(),
        None if looks_random(user_info) => 0..user_info.len(),
        None => return None,
    };
    let secret = at + secret.start..at + secret.end;
    (!is_plain(scanner.part(secret.clone()))).then_some(secret)
}

/// The value that belongs to a word, where the word is the name of a secret.
pub(super) fn value(scanner: Scanner<'_>, word: Range<usize>) -> Option<Range<usize>> {
    let text = scanner.part(word.clone());
    let name = text.trim_start_matches('-');
    let is_option = text.starts_with('-') && (name.len() > 1 || CURL_USER.contains(&text));
    let quote = quote_at(scanner, word.end);
    let at = word.end + quote.len();
    let rest = scanner.from(at);
    if let Some(behind) = rest.strip_prefix(":=").or_else(|| rest.strip_prefix('=')) {
        if behind.starts_with(['=', '~', '>']) {
            return None;
        }
        name::judge(name)?;
        return given(scanner, scanner.text.len() - behind.len());
    }
    if let Some(behind) = rest.strip_prefix(':') {
        if behind.starts_with([':', '/']) {
            return None;
        }
        let judged = name::judge(name)?;
        let at = scanner.text.len() - behind.len();
        return if quote.is_empty() {
            behind_colon(scanner, at, judged)
        } else {
            quoted(scanner, skip_blanks(scanner, at))
        };
    }
    let at = skip_blanks(scanner, at);
    if let Some(behind) = scanner.from(at).strip_prefix("= ") {
        name::judge(name)?;
        let at = skip_blanks(scanner, scanner.text.len() - behind.len());
        return quoted(scanner, at).or_else(|| random_word(scanner, at));
    }
    if is_option {
        return behind_option(scanner, text, quote, at);
    }
    if at == word.end || !quote.is_empty() {
        return None;
    }
    if name.eq_ignore_ascii_case("bearer") {
        let word = bare(scanner, at)?;
        let text = scanner.part(word.clone());
        return (text.len() >= 12 && has_digit(text)).then_some(word);
    }
    let word = random_word(scanner, at)?;
    name::judge(name)?;
    Some(word)
}

/// `--token value`, `'--token' 'value'`, `["--token", "value"]`, and curl's `-u user:password`.
fn behind_option(
    scanner: Scanner<'_>,
    option: &str,
    quote: &str,
    at: usize,
) -> Option<Range<usize>> {
    if !quote.is_empty() {
        name::judge(option.trim_start_matches('-'))?;
        let comma = usize::from(scanner.from(at).starts_with(','));
        return quoted(scanner, skip_blanks(scanner, at + comma));
    }
    if scanner.has_curl && CURL_USER.contains(&option) {
        let value = given(scanner, at)?;
        let (user, _) = scanner.part(value.clone()).split_once(':')?;
        return Some(value.start + user.len() + 1..value.end);
    }
    name::judge(option.trim_start_matches('-'))?;
    // What begins with a dash is the next option.
    given(scanner, at).filter(|value| !scanner.part(value.clone()).starts_with('-'))
}

/// `Name: value`, as in a header or a YAML file, but not as in a sentence.
fn behind_colon(scanner: Scanner<'_>, at: usize, name: Name) -> Option<Range<usize>> {
    let value_at = skip_blanks(scanner, at);
    if let Some(value) = quoted(scanner, value_at) {
        return Some(value);
    }
    let value = given(scanner, value_at)?;
    let text = scanner.part(value.clone());
    if value.start > value_at || text.ends_with(':') {
        // A scheme comes before it, or it is a name itself.
        return (value.start > value_at).then_some(value);
    }
    let has_letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    if name == Name::Perhaps || value_at == at {
        return (text.len() >= 8 && has_digit(text) && has_letter).then_some(value);
    }
    let is_odd = has_digit(text) || text.contains(['!', '@', '#', '$', '%', '^', '*', '+', '=']);
    let behind = scanner.from(value.end).trim_start_matches([' ', '\t']);
    let is_alone = behind.is_empty() || behind.starts_with(['\n', '\r', '"', '\'', '\\']);
    (is_alone || (is_odd && text.len() >= 6)).then_some(value)
}

/// The value that starts here, quoted or bare, behind its scheme if it has one.
fn given(scanner: Scanner<'_>, at: usize) -> Option<Range<usize>> {
    if !quote_at(scanner, at).is_empty() {
        return quoted(scanner, at);
    }
    let end = word_end(scanner, at);
    let first = scanner.part(at..end);
    if SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(first)) {
        let next = skip_blanks(scanner, end);
        if next > end && word_end(scanner, next) > next {
            return bare(scanner, next);
        }
    }
    bare(scanner, at)
}

/// A quoted value, without its quotes. Without a closing quote it extends to the end.
fn quoted(scanner: Scanner<'_>, at: usize) -> Option<Range<usize>> {
    let quote = quote_at(scanner, at);
    let start = at + quote.len();
    let inside = scanner.from(start);
    // A quote with nothing behind it closes something that began earlier.
    if quote.is_empty() || inside.is_empty() || inside.starts_with(ends_word) {
        return None;
    }
    let length = closing(inside, quote).unwrap_or(inside.len());
    let value = start..start + length;
    let text = scanner.part(value.clone());
    let is_literal = quote == "'" && !is_plain_word(text);
    (is_literal || !is_plain(text)).then_some(value)
}

/// A value without quotes around it.
fn bare(scanner: Scanner<'_>, at: usize) -> Option<Range<usize>> {
    let value = at..word_end(scanner, at);
    (!is_plain(scanner.part(value.clone()))).then_some(value)
}

fn random_word(scanner: Scanner<'_>, at: usize) -> Option<Range<usize>> {
    let word = at..word_end(scanner, at);
    looks_random(scanner.part(word.clone())).then_some(word)
}

/// Where a shell would end the word that starts here.
fn word_end(scanner: Scanner<'_>, start: usize) -> usize {
    let mut at = start;
    while let Some(letter) = scanner.from(at).chars().next() {
        let quote = quote_at(scanner, at);
        if ends_word(letter) {
            break;
        } else if !quote.is_empty() {
            let inside = scanner.from(at + quote.len());
            if inside.is_empty() || inside.starts_with(ends_word) || quote.len() > 1 {
                break;
            }
            // `abc"d e"f` is one word; an unclosed quote is a letter.
            at += quote.len() + closing(inside, quote).map_or(0, |length| length + quote.len());
        } else if letter == '\\' {
            at += 1 + scanner.from(at + 1).chars().next().map_or(0, char::len_utf8);
        } else {
            at += letter.len_utf8();
        }
    }
    at
}

/// The quote at a place, also where an outer quote needs it escaped.
fn quote_at(scanner: Scanner<'_>, at: usize) -> &str {
    let rest = scanner.from(at);
    let length = match rest.as_bytes() {
        [b'\\', b'"' | b'\'', ..] => 2,
        [b'"' | b'\'', ..] => 1,
        _ => 0,
    };
    rest.get(..length).unwrap_or_default()
}

/// How far it is to the same quote.
fn closing(inside: &str, quote: &str) -> Option<usize> {
    if quote != "\"" {
        return inside.find(quote);
    }
    let mut escaped = false;
    inside.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

fn ends_word(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`')
}

/// Passes over blanks, and over the end of a line that goes on.
fn skip_blanks(scanner: Scanner<'_>, at: usize) -> usize {
    let mut rest = scanner.from(at);
    while let Some(behind) = ["\\\n", " ", "\t"].iter().find_map(|blank| rest.strip_prefix(blank)) {
        rest = behind;
    }
    scanner.text.len() - rest.len()
}

/// Whether a value alone reveals nothing: a word such as `true`, or a reference such as `$NAME`.
fn is_plain(value: &str) -> bool {
    is_plain_word(value) || is_reference(value)
}

fn is_plain_word(value: &str) -> bool {
    value.is_empty() || PLAIN.iter().any(|plain| plain.eq_ignore_ascii_case(value))
}

fn is_reference(value: &str) -> bool {
    let Some(rest) = value.strip_prefix('$') else {
        return false;
    };
    let name = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest);
    rest.starts_with('(')
        || rest.starts_with("{{")
        || name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a word can only have come from a random generator.
fn looks_random(word: &str) -> bool {
    let count = |fits: fn(&u8) -> bool| word.bytes().filter(fits).count();
    let digits = count(u8::is_ascii_digit);
    let mixes_cases = count(u8::is_ascii_lowercase) > 0 && count(u8::is_ascii_uppercase) > 0;
    word.len() >= 20
        && digits >= 3
        && digits < word.len()
        && (mixes_cases || !word.contains('/')) // A path is no token.
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}
