//! What is rejected before it is parsed: texts that no honest call has.

use crate::command::Unknown;

/// Longer texts are opaque.
pub(crate) const LONGEST: usize = 64 << 10;
/// Deeper nesting is opaque.
pub(crate) const DEEPEST: usize = 64;

/// Why a text is not even parsed.
pub(crate) fn reject(text: &str) -> Option<Unknown> {
    let whole = |why| Some(Unknown { span: 0..text.len(), why });
    if text.len() > LONGEST {
        return whole("it is longer than 64 KiB");
    }
    if let Some((at, character)) = text.char_indices().find(|(_, c)| is_odd(*c)) {
        let span = at..at + character.len_utf8();
        return Some(Unknown { span, why: "it contains invisible or control characters" });
    }
    if depth(text) > DEEPEST {
        return whole("it is nested too deeply");
    }
    None
}

/// Control characters, spaces that a shell does not treat as blanks, and characters that reorder text.
fn is_odd(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{a0}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200f}'
        | '\u{2028}'..='\u{202f}'
        | '\u{205f}'..='\u{206f}'
        | '\u{3000}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' => true,
        character => character.is_control(),
    }
}

/// How many openers are open at once at most, whatever quotes they are in.
fn depth(text: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'{' | b'[' => now += 1,
            b')' | b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}
