//! The files that git reads or runs because a configuration names them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::command::words;
use super::parse::Line;
use super::read;

/// A file that a configuration makes git read or run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Where it is. A relative path starts at the top of the checkout.
    pub path: PathBuf,
    /// What git does with it.
    pub role: Role,
}

/// What git does with a file that a configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads it as a configuration.
    Configuration,
    /// Runs what is in it: a directory of hooks, or a template of one.
    Hooks,
    /// Runs it.
    Program,
    /// Perhaps runs it: it is a word of a command. Only a file that can be executed is meant.
    Word,
}

/// How many configurations are read because another includes them. One that includes itself under more
/// and more names would keep the reader for ever.
const MOST: usize = 1000;

/// How deep git follows configurations that include others.
const DEPTH: usize = 10;

/// What a configuration, and every other that it may include, names. Conditions of an inclusion are
/// taken as met: when git is run, they may be.
pub fn named_files(config: &Path, home: &Path) -> Vec<Named> {
    let mut named = Vec::new();
    collect(config, home, DEPTH, &mut BTreeSet::new(), &mut named);
    named
}

/// The configurations that git reads for every repository of a user: those of the system, and the
/// user's own.
pub fn users_files(home: &Path) -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let system = variable("GIT_CONFIG_SYSTEM").map_or_else(
        || vec!["/etc/gitconfig".into(), "/usr/local/etc/gitconfig".into()],
        |path| vec![PathBuf::from(path)],
    );
    system.into_iter().chain(own_files(home)).collect()
}

/// The user's own among them.
pub fn own_files(home: &Path) -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let xdg = variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
    variable("GIT_CONFIG_GLOBAL").map_or_else(
        || vec![xdg.join("git/config"), home.join(".gitconfig")],
        |path| vec![PathBuf::from(path)],
    )
}

fn collect(
    config: &Path,
    home: &Path,
    depth: usize,
    seen: &mut BTreeSet<PathBuf>,
    named: &mut Vec<Named>,
) {
    if seen.len() >= MOST || !seen.insert(config.to_path_buf()) {
        return;
    }
    for line in read(config).unwrap_or_default().lines {
        let Some(value) = &line.value else { continue };
        let role = match (&*line.section, &*line.key) {
            ("include" | "includeif", "path") => Role::Configuration,
            ("core", "hookspath") | ("init", "templatedir") => Role::Hooks,
            _ if runs(&line) => {
                named.extend(words(value, home));
                continue;
            }
            _ => continue,
        };
        let path = expanded(value, home);
        if role == Role::Configuration {
            // It starts at the file that names it.
            let path = config.parent().unwrap_or(Path::new("/")).join(path);
            named.push(Named { path: path.clone(), role });
            if depth > 0 {
                collect(&path, home, depth - 1, seen, named);
            }
        } else if !path.as_os_str().is_empty() {
            named.push(Named { path, role });
        }
    }
}

/// A path as git expands it.
pub(super) fn expanded(value: &[u8], home: &Path) -> PathBuf {
    let value = value.strip_prefix(b":(optional)").unwrap_or(value);
    let path = Path::new(OsStr::from_bytes(value));
    let Some(rest) = value.strip_prefix(b"~") else { return path.into() };
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (user, below) = rest.split_at(end);
    let own = home.file_name().is_some_and(|name| name.as_bytes() == user);
    let named = std::env::var_os("USER").is_some_and(|name| name.as_bytes() == user);
    if user.is_empty() || own || named {
        return home.join(OsStr::from_bytes(below.strip_prefix(b"/").unwrap_or(below)));
    }
    path.into()
}

/// Endings of keys whose value is a command.
const RUN: &[&str] = &[
    "cmd",
    "command",
    "helper",
    "program",
    "driver",
    "textconv",
    "clean",
    "smudge",
    "process",
    "editor",
    "pager",
    "fsmonitor",
    "askpass",
    "gitproxy",
    "uploadpack",
    "receivepack",
    "uploadarchive",
    "external",
    "difffilter",
    "tunnel",
    "smtpserver",
    "httpd",
    "hook",
];

/// Sections in which every value is a command, or the path of a program.
const ALL_RUN: &[&str] = &["alias", "pager", "difftool", "mergetool", "browser", "man", "guitool"];

/// Whether git runs the value of a line. Better one too many: all that follows is that a program in
/// the checkout cannot be changed.
fn runs(line: &Line) -> bool {
    let updates = line.section == "submodule"
        && line.key == "update"
        && line.value.as_ref().is_some_and(|value| value.starts_with(b"!"));
    ALL_RUN.contains(&&*line.section)
        || updates
        || RUN.iter().any(|ending| line.key.ends_with(ending))
}
