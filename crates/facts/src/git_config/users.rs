//! What of a user's own configuration comes along into a run: only what is known to name no program.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::{GitSetting, GitSettings, Signing};

use super::named::expanded;
use super::parse::Line;
use super::read;
use crate::open_users_file;
use crate::text::read_bytes;

/// How deep configurations that include others are followed, as by git.
const DEPTH: usize = 10;
/// The largest ignore or attributes file, and public key.
const LARGEST: usize = 1 << 20;

/// Keys without a subsection that name no program, by their section. `*` stands for every key.
const COME_ALONG: &[(&str, &[&str])] = &[
    ("advice", &["*"]),
    ("alias", &["*"]),
    ("blame", &["*"]),
    ("branch", &["autosetupmerge", "autosetuprebase", "sort"]),
    ("checkout", &["defaultremote", "guess"]),
    ("clone", &["defaultremotename", "rejectshallow"]),
    ("color", &["*"]),
    ("column", &["*"]),
    ("commit", &["cleanup", "status", "verbose"]),
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "commentchar",
            "commentstring",
            "eol",
            "preloadindex",
            "quotepath",
            "safecrlf",
            "untrackedcache",
            "whitespace",
        ],
    ),
    (
        "diff",
        &[
            "algorithm",
            "colormoved",
            "colormovedws",
            "context",
            "dirstat",
            "ignoresubmodules",
            "indentheuristic",
            "interhunkcontext",
            "mnemonicprefix",
            "noprefix",
            "relative",
            "renamelimit",
            "renames",
            "statgraphwidth",
            "submodule",
            "suppressblankempty",
            "wordregex",
            "wserrorhighlight",
        ],
    ),
    ("fetch", &["fsckobjects", "output", "parallel", "prune", "prunetags", "showforcedupdates"]),
    ("format", &["pretty", "signoff", "numbered"]),
    ("grep", &["column", "extendedregexp", "fullname", "linenumber", "patterntype"]),
    ("help", &["autocorrect"]),
    ("i18n", &["commitencoding", "logoutputencoding"]),
    ("index", &["threads", "version"]),
    ("init", &["defaultbranch"]),
    ("log", &["abbrevcommit", "date", "decorate", "follow", "mailmap", "showroot"]),
    (
        "merge",
        &[
            "autostash",
            "branchdesc",
            "conflictstyle",
            "directoryrenames",
            "ff",
            "log",
            "renamelimit",
            "renames",
            "stat",
            "suppressdest",
            "verbosity",
        ],
    ),
    ("pretty", &["*"]),
    ("pull", &["ff", "rebase"]),
    ("push", &["autosetupremote", "default", "followtags", "useforceifincludes"]),
    (
        "rebase",
        &[
            "abbreviatecommands",
            "autosquash",
            "autostash",
            "forkpoint",
            "missingcommitscheck",
            "stat",
            "updaterefs",
        ],
    ),
    ("rerere", &["autoupdate", "enabled"]),
    ("stash", &["showincludeuntracked", "showpatch", "showstat"]),
    (
        "status",
        &[
            "aheadbehind",
            "branch",
            "relativepaths",
            "renames",
            "short",
            "showstash",
            "showuntrackedfiles",
        ],
    ),
    ("submodule", &["fetchjobs", "recurse"]),
    ("tag", &["sort"]),
    ("transfer", &["fsckobjects"]),
    ("user", &["email", "name", "useconfigonly"]),
    ("versionsort", &["suffix"]),
    ("worktree", &["guessremote"]),
];

/// The settings of a user that come along into a run in a checkout. `files` are the user's own, and
/// `around` is that of the repository, which says only whether something is to be signed.
pub fn users_settings(files: &[PathBuf], home: &Path, around: Option<&Path>) -> GitSettings {
    let mut lines = Vec::new();
    for file in files {
        collect(file, home, DEPTH, &mut lines);
    }
    let repository = around.and_then(read).map(|config| config.lines).unwrap_or_default();
    let mut found =
        GitSettings { signing: signing(&lines, &repository, home), ..Default::default() };
    let (mut ignore, mut attributes) = defaults(home);
    for line in lines {
        match (&*line.section, &line.subsection, &*line.key) {
            ("core", None, "excludesfile") => ignore = file(&line, home),
            ("core", None, "attributesfile") => attributes = file(&line, home),
            _ if comes_along(&line) => found.settings.extend(setting(&line)),
            _ => {}
        }
    }
    let content = |path: Option<PathBuf>| {
        let text = path.and_then(|path| patterns(&path, home));
        text.filter(|text| !text.contains("PRIVATE KEY-----"))
    };
    found.ignore = content(ignore);
    found.attributes = content(attributes);
    found
}

/// The text of a file with patterns.
fn patterns(path: &Path, home: &Path) -> Option<String> {
    let file = open_users_file(path, home)?;
    let most = u64::try_from(LARGEST).ok()?;
    let fits = file.metadata().is_ok_and(|found| found.is_file() && found.len() <= most);
    fits.then(|| std::io::read_to_string(file.take(most)).ok()).flatten()
}

/// Where git looks for the files that no setting names.
fn defaults(home: &Path) -> (Option<PathBuf>, Option<PathBuf>) {
    let named = std::env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty());
    let dir = named.map_or_else(|| home.join(".config"), PathBuf::from).join("git");
    (Some(dir.join("ignore")), Some(dir.join("attributes")))
}

fn file(line: &Line, home: &Path) -> Option<PathBuf> {
    let path = expanded(line.value.as_deref()?, home);
    path.is_absolute().then_some(path)
}

/// Every line of a configuration and of those that it includes. Conditions are not met: what they ask
/// for is not known before git is run.
fn collect(config: &Path, home: &Path, depth: usize, lines: &mut Vec<Line>) {
    let Some(found) = read(config) else { return };
    for line in found.lines.into_iter().filter(|line| !line.key.is_empty()) {
        let includes = line.section == "include" && line.key == "path";
        if let Some(value) = line.value.as_ref().filter(|_| includes && depth > 0) {
            let path = config.parent().unwrap_or(Path::new("/")).join(expanded(value, home));
            collect(&path, home, depth - 1, lines);
        } else {
            lines.push(line);
        }
    }
}

fn comes_along(line: &Line) -> bool {
    let known = COME_ALONG.iter().find(|(section, _)| *section == line.section);
    let known = known.is_some_and(|(_, keys)| keys.contains(&"*") || keys.contains(&&*line.key));
    // `color.status.added` has a part in between, and so has `branch.main.merge`.
    let whole = line.subsection.is_none() || line.section == "color";
    let value = line.value.as_deref().unwrap_or_default().trim_ascii_start();
    known && whole && !(line.section == "alias" && value.starts_with(b"!"))
}

fn setting(line: &Line) -> Option<GitSetting> {
    let value = line.value.clone().map(String::from_utf8).transpose().ok()?;
    let (section, subsection) = (line.section.clone(), line.subsection.clone());
    Some(GitSetting { section, subsection, key: line.key.clone(), value })
}

/// How the user signs, if anything is to be signed.
fn signing(lines: &[Line], repository: &[Line], home: &Path) -> Option<Signing> {
    let last = |section: &str, key: &str| {
        let is =
            |line: &&Line| line.section == section && line.key == key && line.subsection.is_none();
        lines.iter().chain(repository).rev().find(is)
    };
    let is_set = |section: &str| {
        last(section, "gpgsign").is_some_and(|line| match &line.value {
            None => true,
            Some(value) => {
                let value = value.to_ascii_lowercase();
                ![&b""[..], b"false", b"no", b"off", b"0"].contains(&&*value)
            }
        })
    };
    let text = |section: &str, key: &str| {
        let value = last(section, key)?.value.clone();
        String::from_utf8(value?).ok()
    };
    let (commits, tags) = (is_set("commit"), is_set("tag"));
    let format = text("gpg", "format").unwrap_or_else(|| "openpgp".into());
    let key = text("user", "signingkey");
    let key = if format == "ssh" { key.and_then(|key| public_key(&key, home)) } else { key };
    (commits || tags).then_some(Signing { commits, tags, format, key })
}

/// A public key, in the form in which a setting can hold it.
fn public_key(named: &str, home: &Path) -> Option<String> {
    if named.starts_with("key::") {
        return Some(named.into());
    }
    if named.starts_with("ssh-") {
        return Some(format!("key::{named}"));
    }
    let path = expanded(named.as_bytes(), home);
    let public = if path.extension().is_some_and(|it| it.as_bytes() == b"pub") {
        path
    } else {
        let mut name = path.into_os_string();
        name.push(".pub");
        name.into()
    };
    let text = String::from_utf8(read_bytes(&public, LARGEST).ok()?).ok()?;
    let line =
        text.lines().next().filter(|line| line.starts_with("ssh-") || line.contains("-sha2-"));
    line.map(|line| format!("key::{}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_program_stays_behind() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        let at = |name: &str| home.join(name);
        std::fs::write(
            at("config"),
            "[user]\n\tname = A\n\tsigningkey = ~/k.pub\n[alias]\n\tst = status\n\tx = !evil\n\
             \ty = \" !evil\"\n[core]\n\tpager = evil\n\tfsmonitor = evil\n\tquotePath = false\n\
             \texcludesFile = ~/ignored\n\thooksPath = evil\n\tsshCommand = evil\n\
             [color \"status\"]\n\tadded = green\n[diff]\n\texternal = evil\n\tcolorMoved\n\
             [diff \"x\"]\n\tcontext = 3\n[merge \"x\"]\n\tdriver = evil\n[merge]\n\tff = only\n\
             [credential]\n\thelper = evil\n[init]\n\tdefaultBranch = trunk\n\ttemplateDir = evil\n\
             [include]\n\tpath = more\n[filter \"x\"]\n\tclean = evil\n[gpg]\n\tprogram = evil\n",
        )
        .unwrap();
        std::fs::write(at("more"), "[pull]\n\trebase = true\n[include]\n\tpath = config\n")
            .unwrap();
        std::fs::write(at("ignored"), "*.log\n").unwrap();
        let found = users_settings(&[at("config")], home, None);
        let all = format!("{:?}", found.settings);
        assert!(!all.contains("evil"), "{all}");
        let names: std::collections::BTreeSet<_> = found
            .settings
            .iter()
            .map(|it| {
                let sub = it.subsection.as_ref().map_or(String::new(), |sub| format!("{sub}."));
                format!("{}.{sub}{}", it.section, it.key)
            })
            .collect();
        let expected = [
            "alias.st",
            "color.status.added",
            "core.quotepath",
            "diff.colormoved",
            "init.defaultbranch",
            "merge.ff",
            "pull.rebase",
            "user.name",
        ];
        assert_eq!(names.into_iter().collect::<Vec<_>>(), expected);
        assert_eq!((found.ignore.as_deref(), found.signing), (Some("*.log\n"), None));
    }

    #[test]
    fn who_signs_is_known_with_the_public_key() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        let config = home.join("config");
        std::fs::write(home.join("k.pub"), "ssh-ed25519 AAAA me\n").unwrap();
        for (text, expected) in [
            ("[commit]\n\tgpgsign = false\n", None),
            ("[commit]\n\tgpgsign\n", Some((true, false, "openpgp", None))),
            (
                "[tag]\n\tgpgSign = true\n[user]\n\tsigningKey = AB\n",
                Some((false, true, "openpgp", Some("AB"))),
            ),
            (
                "[gpg]\n\tformat = ssh\n[commit]\n\tgpgsign = 1\n[user]\n\tsigningkey = ~/k\n",
                Some((true, false, "ssh", Some("key::ssh-ed25519 AAAA me"))),
            ),
        ] {
            std::fs::write(&config, text).unwrap();
            for (files, around) in [(vec![config.clone()], None), (vec![], Some(config.as_path()))]
            {
                let found = users_settings(&files, home, around).signing;
                let found =
                    found.as_ref().map(|it| (it.commits, it.tags, &*it.format, it.key.as_deref()));
                assert_eq!(found, expected, "{text}");
            }
        }
    }
}
