//! The files in the text of a shell command that may be programs.
//!
//! The text is not run and not fully understood. Where a directory is entered, or a name is not
//! written out, every file counts that it may stand for: all that follows is that a program in the
//! checkout cannot be changed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::named::{Named, Role, expanded};

/// Programs that run the file that their first argument names.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "deno", "bun", "ruby",
    "perl", "php", "lua", "env", "exec", "source", ".", "sudo", "nice", "time", "xargs",
];

/// Words before the name of a directory in which what follows is run.
const ENTERS: &[&[u8]] = &[b"cd", b"pushd", b"-C", b"--chdir", b"--directory"];

/// How many commands in strings of commands are looked into.
const DEPTH: usize = 4;
/// How many directories of one command are tried.
const MOST_DIRS: usize = 16;
/// How many files a name that is not written out may stand for.
const MOST_FILES: usize = 1000;

/// The files in a command that may be programs.
pub(super) fn words(command: &[u8], home: &Path) -> Vec<Named> {
    let command = command.strip_prefix(b"!").unwrap_or(command);
    let mut named = Vec::new();
    collect(&with_home(command, home), home, DEPTH, &mut named);
    named.retain(|named| !named.path.as_os_str().is_empty());
    named
}

fn collect(command: &[u8], home: &Path, depth: usize, named: &mut Vec<Named>) {
    let first = named.len();
    let mut dirs: Vec<PathBuf> = Vec::new();
    // Names without a directory: programs that `PATH` or a change of the directory may lead to.
    let mut bare = Vec::new();
    let mut enters = false;
    // Whether the next word is what is run, and whether an interpreter runs it.
    let (mut runs, mut interpreted) = (true, false);
    for word in split(command) {
        let Some(word) = word else {
            (runs, interpreted) = (true, false);
            continue;
        };
        if depth > 0 && word.iter().any(|byte| b" \t\n;|&".contains(byte)) {
            collect(&word, home, depth - 1, named);
        }
        let assigned = assigned(&word);
        if enters || assigned.is_some() {
            let parts = assigned.unwrap_or(&word).split(|byte| *byte == b':');
            dirs.extend(parts.flat_map(|part| without_beginning(part, home)));
        }
        enters = ENTERS.contains(&&*word);
        // A variable in front of the command, or an option of an interpreter.
        let value = word.iter().position(|byte| *byte == b'=').filter(|_| runs);
        let passed = value.is_some() || (runs && word.starts_with(b"-"));
        let word = word.get(value.map_or(0, |at| at + 1)..).unwrap_or_default();
        let name = word.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let is_interpreter = INTERPRETERS.iter().any(|known| known.as_bytes() == name);
        let slash = word.iter().position(|byte| *byte == b'/');
        let role = match slash {
            Some(_) if runs && !passed => Some(Role::Program),
            None if interpreted && !passed => Some(Role::Program),
            Some(_) => Some(Role::Word),
            None => None,
        };
        if let Some(role) = role.filter(|_| !(is_interpreter && slash.is_none())) {
            named.push(Named { path: expanded(word, home), role });
            // `$(git rev-parse --show-toplevel)/program`
            if let Some(slash) = slash.filter(|at| *at == 0 || word.starts_with(b"$")) {
                let below = word.get(slash + 1..).unwrap_or_default();
                named.push(Named { path: OsStr::from_bytes(below).into(), role: Role::Word });
            }
        } else if runs && !passed && !is_interpreter && !enters {
            bare.push(Named { path: OsStr::from_bytes(word).into(), role: Role::Word });
        }
        interpreted = runs && (is_interpreter || (interpreted && passed));
        runs = interpreted || (runs && passed);
    }
    let found = named.get(first..).unwrap_or_default().to_vec();
    dirs.truncate(MOST_DIRS);
    let below = |dir: &PathBuf| {
        let all = found.iter().chain(&bare).filter(|named| named.path.is_relative());
        all.map(|it| Named { path: dir.join(&it.path), role: it.role }).collect::<Vec<_>>()
    };
    named.extend(dirs.iter().flat_map(below));
    let open = named.get(first..).unwrap_or_default().iter().filter_map(left_open);
    let open: Vec<_> = open.collect();
    named.extend(open);
}

/// The value of a variable that a word sets.
fn assigned(word: &[u8]) -> Option<&[u8]> {
    let at = word.iter().position(|byte| *byte == b'=')?;
    let (name, value) = word.split_at(at);
    let plain = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    (plain && at > 0).then(|| value.get(1..).unwrap_or_default())
}

/// A directory as it is written, and without a first part that a shell finds out.
fn without_beginning(word: &[u8], home: &Path) -> Vec<PathBuf> {
    let slash = word.iter().position(|byte| *byte == b'/');
    let open = slash.filter(|at| *at == 0 || word.starts_with(b"$"));
    let below = open.and_then(|slash| word.get(slash + 1..));
    let below = below.map(|below| OsStr::from_bytes(below).into());
    let mut dirs: Vec<PathBuf> = [expanded(word, home)].into_iter().chain(below).collect();
    dirs.retain(|dir| !dir.as_os_str().is_empty());
    dirs
}

/// The same name with a `*` for each part that a shell completes. One of which nothing is written
/// out could be anything.
fn left_open(named: &Named) -> Option<Named> {
    let text = named.path.as_os_str().as_bytes();
    if !text.iter().any(|byte| b"*?[{$".contains(byte)) {
        return None;
    }
    let mut open = Vec::new();
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let end = match byte {
            b'[' => Some(b']'),
            b'{' => Some(b'}'),
            _ => None,
        };
        if let Some(end) = end {
            while bytes.next().is_some_and(|byte| byte != end) {}
        } else if byte == b'$' {
            if bytes.next_if_eq(&b'{').is_some() {
                while bytes.next().is_some_and(|byte| byte != b'}') {}
            }
            while bytes.next_if(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').is_some() {}
        } else if !b"*?".contains(&byte) {
            open.push(byte);
            continue;
        }
        if open.last() != Some(&b'*') {
            open.push(b'*');
        }
    }
    let path = PathBuf::from(OsString::from_vec(open));
    let name = path.file_name()?.as_bytes();
    let said = name.iter().any(|byte| !b"*.".contains(byte));
    (said && path.as_os_str() != named.path.as_os_str()).then_some(Named { path, role: named.role })
}

/// The files that a path with `*` in it stands for. A path without one is itself.
pub fn spread(path: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for part in path {
        if !part.as_bytes().contains(&b'*') {
            for path in &mut paths {
                path.push(part);
            }
            continue;
        }
        let there = paths.iter().flat_map(|dir| dir.read_dir().into_iter().flatten().flatten());
        let fitting = there.filter(|entry| fits(part.as_bytes(), entry.file_name().as_bytes()));
        paths = fitting.map(|entry| entry.path()).take(MOST_FILES).collect();
    }
    paths
}

/// Whether a name is one that a pattern with `*` stands for.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last: &[u8] = b"";
    for part in parts {
        let end = |at: &usize| rest.get(*at..).is_some_and(|rest| rest.starts_with(part));
        let Some(at) = (0..=rest.len()).find(end) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
        last = part;
    }
    name.ends_with(last)
}

/// A text with the home directory written out.
fn with_home(text: &[u8], home: &Path) -> Vec<u8> {
    let mut rest = text;
    let mut result = Vec::with_capacity(text.len());
    while let Some(first) = rest.first() {
        let after = rest.strip_prefix(b"${HOME}").or_else(|| {
            let after = rest.strip_prefix(b"$HOME")?;
            (!after.first().is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_'))
                .then_some(after)
        });
        match after {
            Some(after) => {
                result.extend_from_slice(home.as_os_str().as_bytes());
                rest = after;
            }
            None => {
                result.push(*first);
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    result
}

/// The words of a shell command, nearly: quotation marks are taken away, and `None` is where another
/// command may begin.
fn split(command: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word = Vec::new();
    let mut quote = None;
    let mut bytes = command.iter().peekable();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (None, b'\\') => word.extend(bytes.next()),
            (Some(b'"'), b'\\') => {
                let kept = bytes.next_if(|next| b"\\\"$`".contains(next));
                word.push(*kept.unwrap_or(byte));
            }
            (Some(mark), byte) if mark == *byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(*byte),
            (
                None,
                b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'`' | b'<' | b'>',
            )
            | (Some(b'"'), b'(' | b')' | b'`') => {
                if !word.is_empty() {
                    words.push(Some(std::mem::take(&mut word)));
                }
                if !matches!(byte, b' ' | b'\t') {
                    words.push(None);
                }
            }
            _ => word.push(*byte),
        }
    }
    if !word.is_empty() {
        words.push(Some(word));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_command_that_may_be_programs_are_found() {
        for (command, expected) in [
            ("vim", vec![]),
            ("tools/filter %f", vec![("tools/filter", Role::Program)]),
            ("!./run me", vec![("./run", Role::Program)]),
            ("!sh -e x.sh", vec![("x.sh", Role::Program)]),
            (
                "!bash \"my tools/x\" y",
                vec![("tools/x", Role::Word), ("my tools/x", Role::Program)],
            ),
            ("!cat a/b", vec![("a/b", Role::Word)]),
            ("!cd x && ./y", vec![("./y", Role::Program), ("x/./y", Role::Program)]),
            (
                "X=a Y=b/c env -i ./z d",
                vec![
                    ("b/c", Role::Word),
                    ("./z", Role::Program),
                    ("a/b/c", Role::Word),
                    ("a/./z", Role::Program),
                    ("b/c/b/c", Role::Word),
                    ("b/c/./z", Role::Program),
                ],
            ),
            ("~/bin/x", vec![("/home/u/bin/x", Role::Program)]),
        ] {
            let found = words(command.as_bytes(), Path::new("/home/u"));
            let found: Vec<_> =
                found.iter().map(|named| (named.path.to_str().unwrap(), named.role)).collect();
            assert_eq!(found, expected, "{command}");
        }
        let top = words(b"!\"$(git rev-parse --show-toplevel)/tools/x\" y", Path::new("/"));
        assert!(top.iter().any(|named| named.path == Path::new("tools/x")), "{top:?}");
    }

    #[test]
    fn programs_that_a_shell_would_find_out_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let top = home.join("app");
        std::fs::create_dir_all(top.join("t")).unwrap();
        std::fs::write(top.join("t/p.sh"), "").unwrap();
        std::fs::write(top.join("t/other"), "").unwrap();
        for command in [
            "!cd t && ./p.sh",
            "!cd t; sh p.sh",
            "!sh -c \"cd t; ./p.sh\"",
            "sh -c \"exec t/p.sh %f\"",
            "sh -c 'sh -c \"exec t/p.sh %f\"'",
            "!$HOME/app/t/p.sh",
            "!\"${HOME}/app/t/p.sh\"",
            "!T=t; $T/p.sh",
            "!export T=t; ${T}/p.sh",
            "!$UNKNOWN/p.sh",
            "!t/p?sh",
            "!t/*.sh",
            "!t/[p].sh",
            "!t/p\\.sh",
            "!PATH=t:$PATH p.sh",
            "!cd \"$(git rev-parse --show-toplevel)/t\" && ./p.sh",
            "!env -C t ./p.sh",
        ] {
            let found = words(command.as_bytes(), &home);
            let found = found.iter().flat_map(|named| spread(&top.join(&named.path)));
            let found: Vec<_> = found.filter_map(|path| path.canonicalize().ok()).collect();
            assert!(found.contains(&top.join("t/p.sh")), "{command}: {found:?}");
            assert!(!found.contains(&top.join("t/other")), "{command}: {found:?}");
        }
        for (pattern, name, expected) in
            [("*.sh", "a.sh", true), ("a*b*c", "axbxc", true), ("a*b", "ab.", false)]
        {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
