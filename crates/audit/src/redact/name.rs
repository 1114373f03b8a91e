//! Names whose value is a secret.

/// How sure a name makes us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// Its value is a secret wherever one is given.
    Secret,
    /// It also heads ordinary sentences: `auth: handle expired sessions`.
    Perhaps,
}

/// Longer names are none.
const LONGEST: usize = 64;

/// Words that make a name a secret's name, also with something in front (`PGPASSWORD`).
const ENDINGS: &[&str] = &["token", "secret", "password", "passwd", "pwd", "apikey", "passphrase"];

/// Words that do so only on their own.
const WORDS: &[&str] = &[
    "authorization",
    "credential",
    "credentials",
    "passwords",
    "privatekey",
    "accesskey",
    "secretkey",
    "sshpass",
];

/// Words that do so in front of `key`.
const BEFORE_KEY: &[&str] = &["api", "private", "access", "secret", "signing", "encryption"];

/// Last words that turn the name into that of something about the secret.
const ABOUT: &[&str] = &[
    "cmd", "command", "count", "dir", "enabled", "env", "expires", "expiry", "field", "file",
    "format", "header", "helper", "host", "id", "kind", "len", "length", "limit", "method", "mode",
    "name", "path", "policy", "port", "prompt", "provider", "required", "server", "size", "sock",
    "stdin", "store", "ttl", "type", "uri", "url", "user", "username", "var", "version",
];

/// Judges a name by its words, however they are put together: `api_key`, `X-Api-Key`, `apiKey`.
pub(super) fn judge(name: &str) -> Option<Name> {
    // The shell's own names for the current and the former directory.
    if name.len() > LONGEST || matches!(name, "PWD" | "OLDPWD") {
        return None;
    }
    let words = words(name);
    if words.first()? == "no" || ABOUT.contains(&words.last()?.as_str()) {
        return None;
    }
    let is_secret = |word: &String| {
        WORDS.contains(&word.as_str()) || ENDINGS.iter().any(|ending| word.ends_with(ending))
    };
    let is_key = |pair: &[String]| match pair {
        [first, second] => second == "key" && BEFORE_KEY.contains(&first.as_str()),
        _ => false,
    };
    if words.iter().any(is_secret) || words.windows(2).any(is_key) {
        Some(Name::Secret)
    } else if words.iter().any(|word| word == "auth" || word == "pass") {
        Some(Name::Perhaps)
    } else {
        None
    }
}

/// The words of a name, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut letters = name.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        let next_is_small = letters.peek().is_some_and(char::is_ascii_lowercase);
        let begins = letter.is_ascii_uppercase() && (!before.is_ascii_uppercase() || next_is_small);
        let separates = !letter.is_ascii_alphanumeric();
        if (begins || separates) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if !separates {
            word.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_apart_into_words() {
        for (name, expected) in [
            ("API_TOKEN", "api token"),
            ("X-Api-Key", "x api key"),
            ("apiKey", "api key"),
            ("APIKey", "api key"),
            ("_authToken", "auth token"),
            ("clientSecretV2", "client secret v2"),
        ] {
            assert_eq!(words(name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn a_name_is_judged_by_whole_words() {
        for name in ["token", "PGPASSWORD", "db_pwd", "apikey", "API_KEY_2", "PRIVATE-TOKEN"] {
            assert_eq!(judge(name), Some(Name::Secret), "{name}");
        }
        for name in ["auth", "MYSQL_PASS"] {
            assert_eq!(judge(name), Some(Name::Perhaps), "{name}");
        }
        for name in ["author", "max_tokens", "key", "token_file", "no-auth", "compass", "monkey"] {
            assert_eq!(judge(name), None, "{name}");
        }
    }
}
