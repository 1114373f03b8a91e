//! Quote removal.

/// Takes backslashes out of unquoted text.
pub(crate) fn unquoted(text: &str) -> String {
    remove(text, |_| true)
}

/// Takes backslashes out of text in double quotes, where only a few characters need them.
pub(crate) fn double_quoted(text: &str) -> String {
    remove(text, |next| matches!(next, '$' | '`' | '"' | '\\'))
}

fn remove(text: &str, escapes: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some('\n')) => {
                characters.next();
            }
            ('\\', Some(&next)) if escapes(next) => {
                plain.push(next);
                characters.next();
            }
            _ => plain.push(character),
        }
    }
    plain
}

/// The place of the first unescaped wildcard in unquoted text. A bracket alone is not a wildcard.
pub(crate) fn wildcard(text: &str) -> Option<usize> {
    let closes = text.contains(']');
    unescaped(text, |c| matches!(c, '*' | '?') || (c == '[' && closes))
}

/// Whether a text goes up somewhere.
pub(crate) fn climbs(text: &str) -> bool {
    text.contains("..")
}

/// Whether a substitution begins somewhere in text that should have none.
pub(crate) fn hides_substitution(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = unescaped(rest, |c| matches!(c, '`' | '$' | '<' | '>')) {
        let tail = rest.get(at..).unwrap_or_default();
        // `$((` computes; a substitution inside it shows up as the scan goes on.
        let runs = tail.starts_with("$(") && !tail.starts_with("$((");
        if tail.starts_with('`') || runs || tail.starts_with("<(") || tail.starts_with(">(") {
            return true;
        }
        rest = tail.get(1..).unwrap_or_default();
    }
    false
}

fn unescaped(text: &str, wanted: impl Fn(char) -> bool) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if wanted(character) {
            return Some(at);
        }
    }
    None
}
