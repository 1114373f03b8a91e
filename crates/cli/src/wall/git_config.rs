//! What git's own configuration of a repository says, as far as it is harmless.

use std::path::Path;

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

/// Whether a configuration names no program.
pub(super) fn is_harmless(path: &Path) -> bool {
    read(path).is_some_and(|lines| lines.iter().all(Line::is_harmless))
}

/// Whether what a configuration has besides an old one names no program.
pub(super) fn adds_nothing_harmful(old: &Path, new: &Path) -> bool {
    let (Some(old), Some(new)) = (read(old), read(new)) else { return false };
    new.iter().all(|line| old.contains(line) || line.is_harmless())
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
        let Some((_, keys)) = HARMLESS.iter().find(|(section, _)| *section == name) else {
            return false;
        };
        let text = &self.text;
        let key = text.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
        // Git runs what such a URL says, also where it is quoted.
        text.is_empty()
            || (keys.contains(&key.as_str()) && !text.contains("ext::") && !text.ends_with('\\'))
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
            // A key behind the heading on the same line is nothing that git writes.
            (heading, text) = (rest.strip_suffix(']')?.to_owned(), "");
        }
        lines.push(Line { heading: heading.clone(), text: text.to_owned() });
    }
    Some(lines)
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
            ("[branch \"x\"]\n\tremote = a\\\n\tb\n", false),
        ] {
            std::fs::write(&new, format!("{ours}{more}")).unwrap();
            assert_eq!(adds_nothing_harmful(&old, &new), harmless, "{more}");
            std::fs::write(&new, more).unwrap();
            assert_eq!(is_harmless(&new), harmless, "{more}");
        }
        assert!(!adds_nothing_harmful(&old, &dir.path().join("gone")));
    }
}
