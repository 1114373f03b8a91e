//! What git's own configuration of a repository says, as far as it is harmless.

use std::path::{Path, PathBuf};

use model::FileText;

/// What `init`, `clone`, commits and branches write by themselves. None of it names a program.
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

/// What would name a program, or have one run, with any other value than `false`.
const HARMLESS_IF_FALSE: &[(&str, &str)] =
    &[("core", "fsmonitor"), ("commit", "gpgsign"), ("tag", "gpgsign")];

/// Whether a configuration names no program.
pub(super) fn is_harmless(path: &Path) -> bool {
    read(path).is_some_and(|lines| lines.iter().all(Line::is_harmless))
}

/// Whether what a configuration has besides an old one names no program.
pub(super) fn adds_nothing_harmful(old: &Path, new: &Path) -> bool {
    let (Some(old), Some(new)) = (read(old), read(new)) else { return false };
    new.iter().all(|line| old.contains(line) || line.is_harmless())
}

/// What else git reads because a configuration says so: other configurations, from its own directory
/// on, and the directory of hooks, from the checkout's on.
pub(super) fn named_files(path: &Path) -> Vec<(Base, PathBuf)> {
    let lines = read(path).unwrap_or_default();
    let named = |line: &Line| {
        let name = line.heading.split(' ').next().unwrap_or_default().to_ascii_lowercase();
        let (key, value) = line.text.split_once('=')?;
        let from = match (&*name, &*key.trim().to_ascii_lowercase()) {
            ("include" | "includeif", "path") => Base::Itself,
            ("core", "hookspath") => Base::Checkout,
            _ => return None,
        };
        Some((from, PathBuf::from(value.trim().trim_matches('"'))))
    };
    lines.iter().filter_map(named).collect()
}

/// Where a relative path in a configuration begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// Beside the configuration.
    Itself,
    /// In the checkout.
    Checkout,
}

/// A line with the heading that it stands under.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    heading: String,
    text: String,
}

impl Line {
    fn is_harmless(&self) -> bool {
        let name = self.heading.split([' ', '"', '.']).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let text = &self.text;
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        if HARMLESS_IF_FALSE.contains(&(&*name, &*key)) {
            return value == "false";
        }
        let Some((_, keys)) = HARMLESS.iter().find(|(section, _)| *section == name) else {
            return text.is_empty()
                && HARMLESS_IF_FALSE.iter().any(|(section, _)| *section == name);
        };
        // Git runs what such a URL says, also where it is quoted.
        let spelt = value.replace(['"', '\\'], "");
        text.is_empty()
            || (keys.contains(&&*key) && !spelt.contains("ext::") && !text.ends_with('\\'))
    }
}

/// The lines of a configuration, with one for each heading. Nothing for what git would not write
/// like that.
fn read(path: &Path) -> Option<Vec<Line>> {
    let FileText::Text(text) = facts::read_small(path) else { return None };
    let (mut lines, mut heading) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') || line.starts_with(';') {
            continue;
        }
        let mut text = line;
        if let Some(rest) = line.strip_prefix('[') {
            // A key or another heading behind it on the same line is nothing that git writes.
            (heading, text) = (plain_heading(rest.strip_suffix(']')?)?.to_owned(), "");
        }
        lines.push(Line { heading: heading.clone(), text: text.to_owned() });
    }
    Some(lines)
}

/// A heading as git writes it: a name, and perhaps another in quotation marks.
fn plain_heading(text: &str) -> Option<&str> {
    let (name, sub) = match text.split_once(' ') {
        Some((name, quoted)) => (name, quoted.strip_prefix('"')?.strip_suffix('"')?),
        None => (text, ""),
    };
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let plain = name.chars().all(letter) && !sub.contains(['"', '\\', '[', ']']);
    plain.then_some(text)
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
            ("[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n", true),
            ("[remote \"o\"]\n\turl = https://git.example.org/x\n", true),
            ("[user]\n\tname = A\n", true),
            ("[core]\n\tpager = x\n", false),
            ("[core]\n\thooksPath = x\n", false),
            ("[alias]\n\tco = !x\n", false),
            ("[core] pager = x\n", false),
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
        ] {
            std::fs::write(&new, format!("{ours}{more}")).unwrap();
            assert_eq!(adds_nothing_harmful(&old, &new), harmless, "{more}");
            std::fs::write(&new, more).unwrap();
            assert_eq!(is_harmless(&new), harmless, "{more}");
        }
        assert!(!adds_nothing_harmful(&old, &dir.path().join("gone")));
    }

    #[test]
    fn a_configuration_names_what_else_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        let text = "[core]\n\thooksPath = .githooks\n\tpager = x\n[include]\n\tpath = ../more\n\
                    [includeIf \"gitdir:~/x/\"]\n\tpath = \"a b\"\n";
        std::fs::write(&config, text).unwrap();
        let named =
            [(Base::Checkout, ".githooks"), (Base::Itself, "../more"), (Base::Itself, "a b")];
        assert_eq!(named_files(&config), named.map(|(from, path)| (from, PathBuf::from(path))));
    }
}
