//! Git configuration files, read without running git.
//!
//! There is one reader. It is lenient: it finds every name that git could find, also in a file that
//! git itself would reject. Calling a file harmless is strict: only what git writes without being
//! asked, in the way git writes it, is harmless.

mod command;
mod named;
mod parse;
mod users;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub use command::spread;
pub use named::{Named, Role, named_files, own_files, users_files};
use parse::{Config, Line, parse};
pub use users::users_settings;

use crate::text::read_bytes;

/// The largest configuration that is read, in bytes.
const LARGEST: usize = 16 << 20;

/// The largest configuration that can be harmless: a run can create many.
const LARGEST_NEW: usize = 256 << 10;

/// What `init`, `clone`, commits and branches write, and what projects commonly set. None of it names a
/// program.
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
            "abbrev",
            "attributesfile",
            "commentchar",
            "excludesfile",
            "longpaths",
            "preloadindex",
            "quotepath",
            "safecrlf",
            "trustctime",
            "untrackedcache",
            "whitespace",
        ],
    ),
    ("remote", &["url", "fetch", "pushurl", "tagopt", "mirror", "promisor", "partialclonefilter"]),
    ("branch", &["remote", "merge", "rebase", "autosetupmerge", "autosetuprebase", "sort"]),
    ("user", &["name", "email", "useconfigonly"]),
    ("commit", &["cleanup", "status", "verbose"]),
    ("diff", &["algorithm", "colormoved", "context", "mnemonicprefix", "noprefix", "renames"]),
    ("fetch", &["fsckobjects", "parallel", "prune", "prunetags"]),
    ("gc", &["auto", "autodetach"]),
    ("log", &["abbrevcommit", "date", "decorate", "follow"]),
    ("merge", &["autostash", "conflictstyle", "ff", "log", "renames", "stat"]),
    ("rebase", &["autosquash", "autostash", "stat", "updaterefs"]),
    ("rerere", &["autoupdate", "enabled"]),
    ("status", &["branch", "short", "showstash", "showuntrackedfiles"]),
    ("tag", &["sort"]),
    ("init", &["defaultbranch"]),
    ("extensions", &["objectformat", "refstorage", "partialclone", "worktreeconfig"]),
    ("submodule", &["url", "active", "recurse", "fetchjobs"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autosetupremote"]),
    ("index", &["version", "threads"]),
];

/// Sections in which no key names a program.
const NOTED: &[&str] = &["branch", "user", "color", "advice"];

/// Sections in which no key at all names a program.
const PLAIN: &[&str] = &["advice", "color"];

/// Keys that name a program, or have one run, unless their value is `false`.
const HARMLESS_IF_FALSE: &[(&str, &str)] =
    &[("core", "fsmonitor"), ("commit", "gpgsign"), ("tag", "gpgsign")];

/// Whether a configuration names no program. One that has another name, by which it can be changed, and one
/// that is larger than what git writes, are not looked at.
pub fn is_harmless(path: &Path) -> bool {
    let alone = path.symlink_metadata().is_ok_and(|found| found.nlink() == 1);
    let config = alone.then(|| read_bytes(path, LARGEST_NEW).ok()).flatten();
    config
        .map(|bytes| parse(&bytes))
        .is_some_and(|config| config.plain && config.lines.iter().all(Line::is_harmless))
}

/// Whether everything that is new in a configuration names no program.
pub fn adds_nothing_harmful(old: &Path, new: &Path) -> bool {
    let (Some(old), Some(new)) = (read(old), read(new)) else { return false };
    let known = |line: &Line| old.lines.contains(line) || line.is_harmless();
    old.plain && new.plain && new.lines.iter().all(known)
}

/// Whether a configuration differs from another one only in what git records about branches: which
/// branch of which known remote each follows. Whole sections may be gone.
pub fn records_branches(old: &[u8], new: &[u8]) -> bool {
    let (old, new) = (parse(old), parse(new));
    let others = |config: &Config| -> Vec<String> {
        let lines = config.lines.iter().filter(|line| line.section != "branch");
        lines.map(|line| format!("{line:?}")).collect()
    };
    let is_remote = |name: &[u8]| {
        let known = |line: &Line| {
            line.section == "remote"
                && line.subsection.as_ref().is_some_and(|known| {
                    known.chars().map(u32::from).eq(name.iter().copied().map(u32::from))
                })
        };
        name == b"." || old.lines.iter().any(known)
    };
    let recorded = |line: &Line| {
        let value = line.value.as_deref().unwrap_or_default();
        let plain = !line.continues() && line.subsection.is_some();
        plain
            && match &*line.key {
                "" => true,
                "remote" => is_remote(value),
                "merge" => value.starts_with(b"refs/") && value.iter().all(u8::is_ascii_graphic),
                "rebase" => [&b"true"[..], b"false", b"merges", b"interactive"].contains(&value),
                _ => false,
            }
    };
    let branches = new.lines.iter().filter(|line| line.section == "branch");
    let mut branches = branches.filter(|line| !old.lines.contains(line));
    old.plain && new.plain && others(&old) == others(&new) && branches.all(recorded)
}

/// A configuration without what was added to it and may run a program; `None` if nothing of that
/// kind was added. It is for a file that was changed by someone else: keys that any tool notes about
/// branches and colours are let pass.
pub fn without_harmful_additions(old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    let (before, now) = (parse(old), parse(new));
    let passes = |line: &Line| {
        let noted = NOTED.contains(&&*line.section) && !line.continues() && !line.runs_url();
        line.key.is_empty() || before.lines.contains(line) || line.is_harmless() || noted
    };
    if now.lines.iter().all(passes) && (now.plain || !before.plain) {
        return None;
    }
    if !now.plain {
        return Some(old.to_vec());
    }
    let mut kept = String::new();
    for line in now.lines.iter().filter(|line| passes(line)) {
        match &line.subsection {
            _ if !line.key.is_empty() => kept.push_str(&format!("\t{}\n", line.raw)),
            None => kept.push_str(&format!("[{}]\n", line.section)),
            Some(sub) => kept.push_str(&format!("[{} \"{sub}\"]\n", line.section)),
        }
    }
    Some(kept.chars().filter_map(|c| u8::try_from(c).ok()).collect())
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
            return known.is_some() || switched || PLAIN.contains(&&**section);
        }
        let known = known.is_some_and(|(_, keys)| keys.contains(&&**key));
        (known || PLAIN.contains(&&**section)) && !self.runs_url() && !self.continues()
    }

    fn continues(&self) -> bool {
        self.raw.contains('\n') || self.raw.ends_with('\\')
    }

    /// Git runs what such a URL says, also where it is quoted.
    fn runs_url(&self) -> bool {
        self.raw.replace(['"', '\\'], "").contains("ext::")
    }
}

/// Reads a configuration; `None` if there is no readable file.
fn read(path: &Path) -> Option<Config> {
    read_bytes(path, LARGEST).ok().map(|bytes| parse(&bytes))
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
    fn only_what_branches_follow_is_a_record() {
        let old = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n\
                   [branch \"old\"]\n\tremote = origin\n\tmerge = refs/heads/old\n\tdescription = mine\n";
        for (new, records) in [
            (old.to_owned(), true),
            (format!("{old}[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n"), true),
            (format!("{old}[branch \"x\"]\n\tremote = .\n\trebase = true\n"), true),
            (old.split("[branch").next().unwrap().to_owned(), true),
            (format!("{old}[branch \"x\"]\n\tremote = ext::sh -c evil\n"), false),
            (format!("{old}[branch \"x\"]\n\tremote = ../evil\n"), false),
            (format!("{old}[branch \"x\"]\n\tremote = origin\\\n../evil\n"), false),
            (format!("{old}[branch \"x\"]\n\tpushRemote = origin\n"), false),
            (format!("{old}[branch \"x\"]\n\tdescription = evil\n"), false),
            (format!("{old}[branch \"x\"]\n\tmerge = a b\n"), false),
            (format!("{old}[branch]\n\tremote = origin\n"), false),
            (format!("{old}[core]\n\tpager = evil\n"), false),
            (format!("{old}[branch \"x\"][core]\n\tpager = evil\n"), false),
            (old.replace("bare = false", "bare = true"), false),
            (old.replace("[core]\n\tbare = false\n", ""), false),
            (old.replace("url = x", "url = y"), false),
        ] {
            assert_eq!(records_branches(old.as_bytes(), new.as_bytes()), records, "{new}");
        }
    }

    #[test]
    fn what_was_added_and_may_run_a_program_is_left_out() {
        let old = "[core]\n\teditor = vim\n[remote \"o\"]\n\turl = x\n";
        let clean = |new: &str| {
            let kept = without_harmful_additions(old.as_bytes(), new.as_bytes());
            kept.map(|kept| String::from_utf8(kept).unwrap())
        };
        let noted = "[branch \"x\"]\n\tremote = o\n\tvscode-merge-base = o/main\n";
        assert_eq!(clean(old), None);
        assert_eq!(clean(""), None);
        assert_eq!(clean(&format!("{old}{noted}[user]\n\tname = A\n")), None);
        let armed = format!("{old}\tfetch = x\n{noted}[alias]\n\tst = !evil\n");
        assert_eq!(clean(&armed).unwrap(), format!("{old}\tfetch = x\n{noted}[alias]\n"));
        assert_eq!(clean(&format!("{old}[core] fsmonitor = evil\n")).unwrap(), old);
        assert_eq!(
            clean(&format!("{old}[branch \"x\"]\n\tremote = ext::evil\n")).unwrap(),
            format!("{old}[branch \"x\"]\n")
        );
    }

    #[test]
    fn a_configuration_names_what_else_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        let here = |name: &str| dir.path().join(name);
        let hooks = |path: &str| vec![(Role::Hooks, path.into())];
        let includes = |name: &str| vec![(Role::Configuration, here(name))];
        for (text, named) in [
            (&b"[core]\n\thooksPath = .githooks\n\tbare = x\n"[..], hooks(".githooks")),
            (b"[include]\n\tpath = ../more\n", includes("../more")),
            (b"[includeIf \"gitdir:~/x/\"]\n\tpath = \"a b\"\n", includes("a b")),
            // Git accepts all of these, although it writes none of them.
            (b"[core] hooksPath = x", hooks("x")),
            (b"[core] # a comment\nhooksPath = x", hooks("x")),
            (b"[core]\nbare = false # \xff\nhooksPath = x", hooks("x")),
            (b"\xef\xbb\xbf[core]\r\nHOOKSPATH=x # y\r\n", hooks("x")),
            (b"[a][b \"]\"][core]\nhookspath = a\\\nb", hooks("ab")),
            (b"[core]\nhooksPath = ~/x", hooks("/home/u/x")),
            (b"[include]\npath = \"a\\\"#b\"c ; d", includes("a\"#bc")),
            (b"[include] ; x\npath = a", includes("a")),
            // Git stops at the first line that it cannot read. Nothing relies on that.
            (b"[broken\n[core]\nhooksPath = x", hooks("x")),
            (b"[core]\n?\nhooksPath = x", hooks("x")),
            (b"[core]\nhooksPath\n# hooksPath = x\n", vec![]),
            (b"[other]\nhooksPath = x\npath = y\n", vec![]),
        ] {
            std::fs::write(&config, text).unwrap();
            let found = named_files(&config, Path::new("/home/u"));
            let found: Vec<_> = found.into_iter().map(|named| (named.role, named.path)).collect();
            assert_eq!(found, named, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(named_files(&here("gone"), Path::new("/")), []);
        // What an included configuration names is named too.
        std::fs::write(&config, "[include]\npath = more\npath = config\n").unwrap();
        std::fs::write(here("more"), "[core]\nhooksPath = x\n[include]\npath = config\n").unwrap();
        let found = named_files(&config, Path::new("/"));
        assert!(found.contains(&Named { path: "x".into(), role: Role::Hooks }), "{found:?}");
    }

    /// Whatever git reads in a configuration, this reader reads as well, byte for byte.
    #[test]
    fn every_value_that_git_reads_is_found() {
        let parts: &[&[u8]] = &[
            b"[core]",
            b"[CORE]",
            b"[core \"x\"]",
            b"[a.b]",
            b"[a \"]\"]",
            b"[core ]",
            b"\n",
            b"\n",
            b"\r\n",
            b" ",
            b"\t",
            b"hooksPath",
            b"hookspath",
            b" = ",
            b"=",
            b"x/y",
            b"\"",
            b"\\\"",
            b"\\\n",
            b"\\\\",
            b"\\t",
            b"#",
            b";",
            b"\xff",
            b"\xc3\xa9",
            b"bare",
            b"a b",
            b"-",
            b"[",
            b"]",
            b"\xef\xbb\xbf",
            b".",
            b"\n[core]\n",
            b"\nhooksPath = ",
            b"\x0b",
            b"$",
        ];
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        let (mut seed, mut read_by_git) = (0x2545_f491_4f6c_dd1d_u64, 0);
        for _ in 0..500 {
            let mut next = |below: usize| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                usize::try_from(seed % below as u64).unwrap()
            };
            let mut text = if next(3) == 0 { Vec::new() } else { b"[core]\nhooksPath = ".to_vec() };
            for _ in 0..=next(9) {
                text.extend_from_slice(parts[next(parts.len())]);
            }
            std::fs::write(&config, &text).unwrap();
            let git = std::process::Command::new("git")
                .args(["config", "--list", "-z", "-f"])
                .arg(&config)
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .output();
            let Ok(git) = git else { return };
            if !git.status.success() {
                continue;
            }
            let expected: Vec<_> = git.stdout.split(|byte| *byte == 0).collect();
            let entries = expected.iter().filter(|entry| !entry.is_empty());
            let expected: Vec<Vec<u8>> = entries.map(|entry| entry.to_vec()).collect();
            read_by_git += expected.len();
            let read = parse(&text).lines.into_iter().filter(|line| !line.key.is_empty());
            let bytes = |text: &str| text.chars().map(|c| u8::try_from(c).unwrap()).collect();
            let found: Vec<Vec<u8>> = read
                .map(|line| {
                    let headings = [&line.section].into_iter().filter(|name| !name.is_empty());
                    let parts: Vec<_> =
                        headings.chain(&line.subsection).chain([&line.key]).collect();
                    let parts: Vec<Vec<u8>> = parts.into_iter().map(|part| bytes(part)).collect();
                    let mut name = parts.join(&b'.');
                    if let Some(value) = line.value {
                        name.push(b'\n');
                        name.extend(value);
                    }
                    name
                })
                .collect();
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(&text));
        }
        assert!(read_by_git > 70, "{read_by_git}");
    }
}
