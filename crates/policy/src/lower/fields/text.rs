//! Whether a text in a field that only may hold a path could be one.

/// The longest name and the longest path that a file system takes.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4096;
/// What a root directory holds. `/login` is not among it.
const TOP: &[&str] = &[
    "Applications",
    "Library",
    "System",
    "Users",
    "Volumes",
    "bin",
    "boot",
    "data",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "media",
    "mnt",
    "nix",
    "opt",
    "private",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
    "work",
    "workspace",
    "workspaces",
];

/// The text without the blanks around it, which some tools remove.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}')
}

/// Whether a tool could take the text for a path.
pub(super) fn could_be_path(text: &str) -> bool {
    if text.contains(['\n', '\r']) {
        // Prose or code, unless it begins like a path that leads out.
        return begins_at_top(text) || text.starts_with("../") || text.starts_with("~/");
    }
    if text.starts_with('~') && !text.contains('/') {
        return is_user(text.trim_start_matches('~'));
    }
    match names(text) {
        None => true,
        Some(names) => begins_at_top(text) || (!is_url(text, &names) && fits(&names)),
    }
}

/// Whether the text, taken for a path, leads away from where it starts.
pub(super) fn leaves(text: &str) -> bool {
    text.starts_with(['/', '~']) || names(text).is_none()
}

/// Whether the text is a lone name behind a slash, which says where in a web site rather than
/// where on a disk.
pub(super) fn is_route(text: &str) -> bool {
    text.starts_with('/')
        && !begins_at_top(text)
        && names(text).is_some_and(|names| names.len() == 1)
}

/// Whether the text is a word rather than a path.
pub(super) fn is_bare(text: &str) -> bool {
    !text.contains('/') && !text.starts_with(['.', '~'])
}

/// The names that are left once a path library has cleaned the path; none if it climbs above its
/// start.
fn names(text: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                if names.pop().is_none() && !text.starts_with('/') {
                    return None;
                }
            }
            name => names.push(name),
        }
    }
    Some(names)
}

fn fits(names: &[&str]) -> bool {
    names.iter().all(|name| name.len() <= LONGEST_NAME)
        && names.iter().map(|name| name.len() + 1).sum::<usize>() <= LONGEST_PATH
}

fn begins_at_top(text: &str) -> bool {
    let first = names(text).and_then(|names| names.first().copied());
    text.starts_with('/') && first.is_some_and(|name| TOP.contains(&name))
}

/// Whether the text is a URL, also as a path library sees it: `a://../x` is only `x` there.
fn is_url(text: &str, names: &[&str]) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(is_scheme) && names.first().and_then(|name| name.strip_suffix(':')) == scheme
}

/// Whether the text is the scheme of a URL.
pub(super) fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Whether the text behind a `~` could be a user name, or nothing.
fn is_user(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_system_or_a_path_library_takes_could_be_a_path() {
        let long = "a".repeat(300);
        for text in [
            "pc",
            ".git/hooks/pre-commit",
            "a b",
            "/etc/x\ny",
            "../x\ny",
            "~",
            "~/x",
            "~root",
            "~5/../../../etc/passwd",
            "a://../../etc/passwd",
            "a://../.git/hooks/x",
            "a://../a://../.git/hooks/x",
            ".git/hooks/x://",
            &format!("{long}/../../etc/passwd"),
            &format!("{long}/../.git/hooks/x"),
            &format!("/etc/{long}"),
            &format!("{}.git/hooks/x", "a/../".repeat(1000)),
        ] {
            assert!(could_be_path(text), "{text}");
        }
        for text in [
            "https://example.org/a/../b",
            "line\nline",
            "/* comment */\nint x;",
            "import x from \"../../../y\"\n",
            "~5 minutes",
            &long,
            &"word/".repeat(1000),
            &format!("/{long}"),
        ] {
            assert!(!could_be_path(text), "{text}");
        }
    }

    #[test]
    fn a_lone_name_behind_a_slash_is_a_route() {
        assert!(is_route("/login"));
        assert!(is_route("/login/"));
        for text in ["/", "/etc", "/../etc", "/x/../etc", "/v1/users", "login"] {
            assert!(!is_route(text), "{text}");
        }
    }
}
