//! Texts that a user can paste into a shell.

/// A word as a shell needs it: as it is where that is safe, else in single quotes.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The same for a text that is printed: what a terminal would act on, or would not show, is escaped as
/// in bash and zsh. Elsewhere it is the word that `shell_word` gives.
pub fn printed_word(text: &str) -> String {
    if !text.chars().any(is_hidden) {
        return shell_word(text);
    }
    let mut word = String::from("$'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => word.extend(['\\', c]),
            c if is_hidden(c) => {
                let bytes = c.to_string().into_bytes();
                word.extend(bytes.iter().map(|byte| format!("\\x{byte:02x}")));
            }
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

/// A text as a string of TOML, in one line and without anything that a terminal acts on or hides.
pub fn toml_string(text: &str) -> String {
    let mut string = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => string.extend(['\\', c]),
            c if is_hidden(c) && u32::from(c) <= 0xffff => {
                string.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c if is_hidden(c) => string.push_str(&format!("\\U{:08X}", u32::from(c))),
            c => string.push(c),
        }
    }
    string.push('"');
    string
}

/// Whether a character is not shown as itself, or changes how others are shown.
fn is_hidden(c: char) -> bool {
    !matches!(c, '"' | '\'' | '\\') && c.escape_debug().len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_has_no_control_characters_and_means_the_same() {
        for (text, word, string) in [
            ("/a b", "'/a b'", "\"/a b\""),
            ("/it's \"x\"", r#"'/it'\''s "x"'"#, r#""/it's \"x\"""#),
            ("a\nb\u{1b}[31m'\\", r"$'a\x0ab\x1b[31m\'\\'", r#""a\u000Ab\u001B[31m'\\""#),
            ("/é\u{202e}", r"$'/é\xe2\x80\xae'", r#""/é\u202E""#),
            ("\u{e0001}", r"$'\xf3\xa0\x80\x81'", r#""\U000E0001""#),
        ] {
            assert_eq!(printed_word(text), word);
            assert_eq!(toml_string(text), string);
        }
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(shell_word("/a/b.c"), "/a/b.c");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("/a b"), "'/a b'");
        assert_eq!(shell_word("~/a"), "'~/a'");
        assert_eq!(shell_word("/it's"), r"'/it'\''s'");
    }
}
