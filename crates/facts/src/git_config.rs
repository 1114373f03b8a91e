//! Git configuration files, read without running git.
//!
//! There is one reader. It is lenient: it finds every name that git could find, also in a file that
//! git itself would reject. Calling a file harmless is strict: only what git writes without being
//! asked, in the way git writes it, is harmless.

use std::path::{Path, PathBuf};

use model::{FileText, Identity};

use crate::read_small;

/// What `init`, `clone`, commits and branches write. None of it names a program.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "sparsecheckout",
            "sparsecheckoutcone",
        ],
    ),
    ("remote", &["url", "fetch", "pushurl", "tagopt", "mirror", "promisor", "partialclonefilter"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("extensions", &["objectformat", "refstorage", "partialclone", "worktreeconfig"]),
    ("submodule", &["url", "active"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autosetupremote"]),
    ("index", &["version", "threads"]),
];

/// Keys that name a program, or have one run, unless their value is `false`.
const HARMLESS_IF_FALSE: &[(&str, &str)] =
    &[("core", "fsmonitor"), ("commit", "gpgsign"), ("tag", "gpgsign")];

/// Where a relative path in a configuration starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The directory of the configuration file.
    Itself,
    /// The top of the checkout.
    Checkout,
}

/// Whether a configuration names no program.
pub fn is_harmless(path: &Path) -> bool {
    read(path).is_some_and(|config| config.plain && config.lines.iter().all(Line::is_harmless))
}

/// Whether everything that is new in a configuration names no program.
pub fn adds_nothing_harmful(old: &Path, new: &Path) -> bool {
    let (Some(old), Some(new)) = (read(old), read(new)) else { return false };
    let known = |line: &Line| old.lines.contains(line) || line.is_harmless();
    old.plain && new.plain && new.lines.iter().all(known)
}

/// What else git reads because a configuration names it: included configurations, and the directory
/// of hooks.
pub fn named_files(path: &Path) -> Vec<(Base, PathBuf)> {
    let lines = read(path).unwrap_or_default().lines;
    let named = |line: Line| {
        let base = match (&*line.section, &*line.key) {
            ("include" | "includeif", "path") => Base::Itself,
            ("core", "hookspath") => Base::Checkout,
            _ => return None,
        };
        Some((base, PathBuf::from(line.value?)))
    };
    lines.into_iter().filter_map(named).collect()
}

/// The name and address under which a user commits, from the files in their home.
pub fn committer(home: &Path) -> Option<Identity> {
    let files = [home.join(".config/git/config"), home.join(".gitconfig")];
    let (mut name, mut email) = (None, None);
    for line in files.iter().filter_map(|file| read(file)).flat_map(|config| config.lines) {
        match (&*line.section, &line.subsection, &*line.key) {
            ("user", None, "name") if line.value.is_some() => name = line.value,
            ("user", None, "email") if line.value.is_some() => email = line.value,
            _ => {}
        }
    }
    Some(Identity { name: name?, email: email? })
}

/// A configuration as it was read.
#[derive(Debug, Default)]
struct Config {
    lines: Vec<Line>,
    /// Whether every heading is written as git writes it.
    plain: bool,
}

/// A heading, which has no key, or a key under its heading.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    /// In lower case.
    section: String,
    subsection: Option<String>,
    /// In lower case.
    key: String,
    /// Without quotation marks, escapes and comment; `None` without a `=`.
    value: Option<String>,
    /// As it was written, with every line that continues it.
    raw: String,
}

impl Line {
    fn is_harmless(&self) -> bool {
        let Self { section, key, raw, .. } = self;
        let value = raw.split_once('=').map_or("", |(_, value)| value.trim());
        if HARMLESS_IF_FALSE.contains(&(&**section, &**key)) {
            return value == "false";
        }
        let known = HARMLESS.iter().find(|(name, _)| name == section);
        if raw.is_empty() {
            let switched = HARMLESS_IF_FALSE.iter().any(|(name, _)| name == section);
            return known.is_some() || switched;
        }
        let continued = raw.contains('\n') || raw.ends_with('\\');
        // Git runs what such a URL says, also where it is quoted.
        let runs = value.replace(['"', '\\'], "").contains("ext::");
        known.is_some_and(|(_, keys)| keys.contains(&&**key)) && !runs && !continued
    }
}

/// Reads a configuration; `None` if there is no readable file.
fn read(path: &Path) -> Option<Config> {
    let FileText::Text(text) = read_small(path) else { return None };
    let mut config = Config { lines: Vec::new(), plain: true };
    let (mut section, mut subsection) = (String::new(), None);
    // Git skips a byte order mark, and never writes one.
    let unmarked = text.strip_prefix('\u{feff}');
    config.plain &= unmarked.is_none();
    let mut lines = unmarked.unwrap_or(&text).lines();
    while let Some(line) = lines.next() {
        let mut rest = line.trim();
        if rest.starts_with('[') {
            config.plain &= is_plain_heading(rest);
        }
        // Another heading, or a key, may follow on the same line.
        while let Some(found) = rest.strip_prefix('[') {
            let Some((heading, behind)) = heading(found) else {
                rest = "";
                break;
            };
            (section, subsection) = heading;
            config.lines.push(Line {
                section: section.clone(),
                subsection: subsection.clone(),
                key: String::new(),
                value: None,
                raw: String::new(),
            });
            rest = behind.trim_start();
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        let mut raw = rest.to_owned();
        let value = rest.split_once('=').map(|(_, first)| value(first, &mut lines, &mut raw));
        let key = rest.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (section, subsection) = (section.clone(), subsection.clone());
        config.lines.push(Line { section, subsection, key, value, raw });
    }
    Some(config)
}

/// Whether a whole line is a heading as git writes it: a name, and perhaps another in quotation
/// marks.
fn is_plain_heading(line: &str) -> bool {
    let Some(text) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) else {
        return false;
    };
    let quoted = |text: &str| {
        let sub = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        sub.is_some_and(|sub| !sub.contains(['"', '\\', '[', ']']))
    };
    let (name, plain) = match text.split_once(' ') {
        Some((name, sub)) => (name, quoted(sub)),
        None => (text, true),
    };
    plain && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
}

/// The section and subsection of a heading, and what follows its `]`. Both spellings of a
/// subsection are read: `[a "b"]` and `[a.b]`.
fn heading(text: &str) -> Option<((String, Option<String>), &str)> {
    let end = text.find([']', '"'])?;
    let (name, mut rest) = text.split_at(end);
    let name = name.trim().to_ascii_lowercase();
    if let Some(closed) = rest.strip_prefix(']') {
        let heading = match name.split_once('.') {
            Some((name, sub)) => (name.to_owned(), Some(sub.to_owned())),
            None => (name, None),
        };
        return Some((heading, closed));
    }
    let mut sub = String::new();
    let mut chars = rest.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => break,
            '\\' => sub.push(chars.next()?),
            c => sub.push(c),
        }
    }
    rest = chars.as_str().trim_start().strip_prefix(']')?;
    Some(((name, Some(sub)), rest))
}

/// A value as git understands it. `raw` gets the lines that continue it.
fn value<'a>(first: &str, lines: &mut impl Iterator<Item = &'a str>, raw: &mut String) -> String {
    let mut value = String::new();
    // Blanks at the end do not count, unless they are quoted.
    let mut length = 0;
    let mut quoted = false;
    let mut line = first.trim_start();
    'lines: loop {
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => quoted = !quoted,
                '#' | ';' if !quoted => break 'lines,
                '\\' => match chars.next() {
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some('b') => value.push('\u{8}'),
                    Some(c) => value.push(c),
                    None => {
                        let Some(next) = lines.next() else { break 'lines };
                        raw.push('\n');
                        raw.push_str(next);
                        line = next;
                        continue 'lines;
                    }
                },
                c => value.push(c),
            }
            if quoted || !c.is_whitespace() {
                length = value.len();
            }
        }
        break;
    }
    value.truncate(length);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_has_to_be_harmless() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| dir.path().join(name));
        let ours = "[core]\n\tbare = false\n[alias]\n\tst = !status\n";
        std::fs::write(&old, ours).unwrap();
        for (more, harmless) in [
            ("", true),
            ("# a comment\n; another\n\n", true),
            ("[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n", true),
            ("[remote \"o\"]\n\turl = https://git.example.org/x\n", true),
            ("[user]\n\tname = A\n", true),
            ("[USER]\n\tName = A\n", true),
            ("[core]\n\tpager = x\n", false),
            ("[core]\n\thooksPath = x\n", false),
            ("[alias]\n\tco = !x\n", false),
            ("[filter \"x\"]\n", false),
            ("[core] pager = x\n", false),
            ("[core] bare = false\n", false),
            ("[core] # a comment\n", false),
            ("[remote \"o\"]\n\turl = ext::sh -c x\n", false),
            ("[remote \"o\"]\n\tvcs = x\n", false),
            ("[include]\n\tpath = x\n", false),
            ("[remote \"x\"][core] pager = x #]\n", false),
            ("[remote \"x] [core] pager = x\"]\n", false),
            ("[remote][core]\n\tpager = x\n", false),
            ("[remote \"o\"]\n\turl = ex\"t::sh -c x\"\n", false),
            ("[core]\n\tfsmonitor = false\n", true),
            ("[core]\n\tfsmonitor = x\n", false),
            ("[core]\n\tfsmonitor\n", false),
            ("[commit]\n\tgpgsign = false\n", true),
            ("[commit]\n\tgpgsign = true\n", false),
            ("[branch \"x\"]\n\tremote = a\\\n\tb\n", false),
            ("[branch \"x\"]\n\tremote = a\\", false),
            ("[branch \"x\"\n\tremote = a\n", false),
        ] {
            std::fs::write(&new, format!("{ours}{more}")).unwrap();
            assert_eq!(adds_nothing_harmful(&old, &new), harmless, "{more}");
            std::fs::write(&new, more).unwrap();
            assert_eq!(is_harmless(&new), harmless, "{more}");
        }
        assert!(!adds_nothing_harmful(&old, &dir.path().join("gone")));
        assert!(!is_harmless(&dir.path().join("gone")));
    }

    #[test]
    fn a_configuration_names_what_else_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        for (text, named) in [
            ("[core]\n\thooksPath = .githooks\n\tpager = x\n", vec![(Base::Checkout, ".githooks")]),
            ("[include]\n\tpath = ../more\n", vec![(Base::Itself, "../more")]),
            ("[includeIf \"gitdir:~/x/\"]\n\tpath = \"a b\"\n", vec![(Base::Itself, "a b")]),
            // Git accepts all of these, although it writes none of them.
            ("[core] hooksPath = x", vec![(Base::Checkout, "x")]),
            ("\u{feff}[core]\r\nHOOKSPATH=x # y\r\n", vec![(Base::Checkout, "x")]),
            ("[a][b \"]\"][core]\nhookspath = a\\\nb", vec![(Base::Checkout, "ab")]),
            ("[include]\npath = \"a\\\"#b\"c ; d", vec![(Base::Itself, "a\"#bc")]),
            ("[include] ; x\npath = a", vec![(Base::Itself, "a")]),
            // Git stops at the first line that it cannot read. Nothing relies on that.
            ("[broken\n[core]\nhooksPath = x", vec![(Base::Checkout, "x")]),
            ("[core]\nhooksPath\n# hooksPath = x\n", vec![]),
            ("[other]\nhooksPath = x\npath = y\n", vec![]),
        ] {
            std::fs::write(&config, text).unwrap();
            let named: Vec<_> =
                named.into_iter().map(|(base, path)| (base, PathBuf::from(path))).collect();
            assert_eq!(named_files(&config), named, "{text}");
        }
        assert_eq!(named_files(&dir.path().join("gone")), []);
    }

    #[test]
    fn the_committer_is_read_from_both_files_and_the_later_one_wins() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".config/git")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).unwrap();
        assert_eq!(committer(home.path()), None);
        write(".config/git/config", "[user]\n\tname = Old Name\n\temail = a@example.org\n");
        let found = committer(home.path()).unwrap();
        assert_eq!((&*found.name, &*found.email), ("Old Name", "a@example.org"));
        write(".gitconfig", "[core]\n\tname = x\n[User] # me\n\tName = \"New Name\"\n");
        let found = committer(home.path()).unwrap();
        assert_eq!((&*found.name, &*found.email), ("New Name", "a@example.org"));
    }
}
