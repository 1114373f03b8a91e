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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(shell_word("/a/b.c"), "/a/b.c");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("/a b"), "'/a b'");
        assert_eq!(shell_word("~/a"), "'~/a'");
        assert_eq!(shell_word("/it's"), r"'/it'\''s'");
    }
}
