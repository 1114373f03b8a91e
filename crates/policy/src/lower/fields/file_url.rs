//! `file:` URLs, which name a path in any field.

use super::meaning::Meaning;
use super::text::{is_scheme, trim};

/// The paths that the text names if it is a file URL, or why they cannot be known.
///
/// The program that opens it decodes percent escapes, turns backslashes around and drops tabs, each in its
/// own way, so a URL with any of those cannot be judged.
pub(super) fn read(text: &str, meaning: Meaning) -> Option<Result<Vec<String>, &'static str>> {
    let text = trim(text);
    let plain: String = text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let rest = behind_scheme(&plain)?;
    let says_nothing = matches!(meaning, Meaning::Plain | Meaning::Unknown | Meaning::Command);
    let is_prose = if says_nothing {
        !rest.starts_with(['/', '\\'])
    } else {
        rest.is_empty() || rest.starts_with(char::is_whitespace)
    };
    if is_prose {
        return None;
    }
    if text.chars().any(|c| c.is_control() || matches!(c, '\\' | '%')) {
        return Some(Err("it is a file URL with escapes"));
    }
    let path = match rest.strip_prefix("//") {
        None => format!("/{}", rest.trim_start_matches('/')),
        Some(behind) => {
            let (host, path) = behind.split_once('/').unwrap_or((behind, ""));
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Some(Err("it is a file URL with a host"));
            }
            format!("/{path}")
        }
    };
    // Behind `?` and `#` is no part of the path, unless the reader just cuts `file://` off.
    let mut paths = vec![path.clone()];
    if let Some((before, _)) = path.split_once(['?', '#']) {
        paths.push(before.to_owned());
    }
    Some(Ok(paths))
}

/// What follows `file:`, which may itself follow other schemes: `view-source:file:///x`.
fn behind_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    if scheme.eq_ignore_ascii_case("file") {
        Some(rest)
    } else if is_scheme(scheme) {
        behind_scheme(rest)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_file_url_is_seen() {
        for text in [
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            "file:/etc/passwd",
            "file:etc/passwd",
            " file:///etc/passwd",
            "\u{feff}file:////etc/passwd",
            "\u{1}file://LocalHost/etc/passwd",
            "view-source:file:///etc/passwd",
            "jar:view-source:File:/etc/passwd",
        ] {
            let paths = read(text, Meaning::Loose).unwrap().unwrap();
            let clean = format!("/{}", paths[0].trim_start_matches('/'));
            assert_eq!(clean, "/etc/passwd", "{text}");
        }
        assert_eq!(read("file:///a#b", Meaning::Plain), Some(Ok(vec!["/a#b".into(), "/a".into()])));
    }

    #[test]
    fn what_readers_disagree_about_cannot_be_judged() {
        for text in [
            "file:///%65tc/passwd",
            "file:\\\\\\etc\\passwd",
            "file:///etc\\passwd",
            "fi\tle:///etc/passwd",
            "file:///etc/pas\nswd",
            "file://host/etc/passwd",
            "file://../etc/passwd",
        ] {
            assert!(matches!(read(text, Meaning::Unknown), Some(Err(_))), "{text}");
        }
    }

    #[test]
    fn prose_is_no_url() {
        for text in ["file: main.rs", "File:main.rs", "https://x/?next=file:///a", "a file:/x", ""]
        {
            assert_eq!(read(text, Meaning::Plain), None, "{text}");
        }
        assert_eq!(read("file: main.rs", Meaning::Loose), None);
    }
}
