//! Which files a command writes, and which it could read.

use model::{AbsPath, Access, Action, PathRef};
use shell::{Command, Grammar, Parsed, Value, Word, parse_options};

use super::Lower;
use super::options::{exact, gnu};
use super::place::{Place, Target};

/// A program that writes files named in its arguments.
struct Writer {
    names: &'static [&'static str],
    grammar: Grammar,
    writes: Writes,
    /// Options whose value is written.
    options: &'static [&'static str],
    /// Options without which it writes nothing: `sed -i`.
    only_with: &'static [&'static str],
}

/// Which operands are written.
#[derive(Clone, Copy)]
enum Writes {
    /// None; only what options name.
    None,
    /// All of them.
    All,
    /// All but the first so many: the mode of `chmod`, the script of `sed`.
    AllBut(usize),
    /// The last of several.
    Last,
    /// The last, or a name in the current directory where there is only one.
    LastOrHere,
    /// The first.
    First,
}

const fn writer(names: &'static [&'static str], short: &'static str, writes: Writes) -> Writer {
    Writer { names, grammar: gnu(short, &[]), writes, options: &[], only_with: &[] }
}

const TARGET_DIR: &[&str] = &["-t", "--target-directory"];
const COPY: Grammar = gnu("tSmog", &["target-directory", "suffix", "mode", "owner", "group"]);

const WRITERS: &[Writer] = &[
    writer(
        &[
            "rm", "rmdir", "unlink", "mkdir", "mkfifo", "shred", "gunzip", "gzip", "bunzip2",
            "bzip2", "xz", "unxz", "zstd", "unzstd", "tee", "sponge", "wipe", "srm",
        ],
        "ms",
        Writes::All,
    ),
    writer(&["touch"], "drt", Writes::All),
    writer(&["mknod"], "m", Writes::First),
    Writer {
        grammar: gnu("sr", &["size", "reference"]),
        ..writer(&["truncate"], "sr", Writes::All)
    },
    Writer {
        grammar: gnu("", &["reference"]),
        ..writer(&["chmod", "chown", "chgrp", "setfacl", "chattr"], "", Writes::AllBut(1))
    },
    Writer {
        grammar: COPY,
        options: TARGET_DIR,
        ..writer(&["cp", "install", "gcp"], "", Writes::Last)
    },
    Writer { grammar: COPY, options: TARGET_DIR, ..writer(&["mv", "gmv"], "", Writes::All) },
    Writer { grammar: COPY, options: TARGET_DIR, ..writer(&["ln"], "", Writes::LastOrHere) },
    Writer {
        only_with: &["-i", "--in-place", "-I"],
        grammar: gnu("efl", &["expression", "file", "line-length"]),
        ..writer(&["sed", "gsed"], "", Writes::AllBut(1))
    },
    Writer { only_with: &["-i"], ..writer(&["perl", "ruby"], "e", Writes::All) },
    Writer {
        options: &["-o", "--output"],
        grammar: gnu(
            "okSTt",
            &["output", "key", "buffer-size", "temporary-directory", "field-separator"],
        ),
        ..writer(&["sort"], "", Writes::None)
    },
    Writer {
        options: &["-o", "--output"],
        ..writer(
            &["gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "as", "objcopy", "strip"],
            "oILlDUxWfmO",
            Writes::None,
        )
    },
    Writer {
        options: &["-d", "--directory", "-o", "--output"],
        ..writer(&["patch"], "dopirFB", Writes::None)
    },
    Writer { grammar: exact("dxP", &[]), options: &["-d"], ..writer(&["unzip"], "", Writes::None) },
    Writer { grammar: exact("bnti", &[]), ..writer(&["zip"], "", Writes::First) },
    Writer {
        options: &["-o", "--output", "--out"],
        grammar: gnu("o", &["output", "out"]),
        ..writer(&["pandoc", "protoc", "dot", "gpg", "gpg2", "openssl"], "", Writes::None)
    },
    writer(&["mkdtemp", "split", "csplit"], "abnlC", Writes::None),
    writer(
        &["mount", "umount", "losetup", "mkfs", "mkswap", "fdisk", "parted", "wipefs"],
        "to",
        Writes::All,
    ),
];

/// Options with which a program works in another directory.
const CHDIR: &[(&[&str], &[&str], Grammar)] = &[
    (
        &["make", "gmake", "ninja", "meson", "bmake"],
        &["-C", "--directory"],
        gnu("CfjIoW", &["directory", "file", "makefile", "jobs"]),
    ),
    (&["npm", "npx"], &["-C", "--prefix"], exact("C", &["prefix"])),
    (&["pnpm"], &["-C", "--dir"], exact("C", &["dir", "filter"])),
    (&["yarn", "bun"], &["--cwd"], exact("", &["cwd"])),
    (
        &["cargo"],
        &["-C", "--manifest-path", "--target-dir"],
        exact("CpjF", &["manifest-path", "target-dir", "package", "features", "target"]),
    ),
    (&["go"], &["-C"], exact("C", &[])),
    (&["uv"], &["--directory", "--project"], exact("", &["directory", "project"])),
    (
        &["poetry"],
        &["-C", "--directory", "-P", "--project"],
        exact("CP", &["directory", "project"]),
    ),
    (&["terraform", "tofu"], &["--chdir"], exact("", &["chdir"])),
    (&["just"], &["-d", "--working-directory"], exact("df", &["working-directory", "justfile"])),
    (&["cmake"], &["-B", "-S", "--build", "--install"], exact("BSDGTAU", &["build", "install"])),
];

/// Programs whose arguments are text, not files.
const TEXT: &[&str] = &[
    "echo", "printf", "true", "false", ":", "test", "[", "[[", "let", "expr", "seq", "sleep",
    "export", "unset", "set", "shift", "return", "exit", "kill", "wait", "which", "type", "hash",
    "command", "alias", "date", "read", "trap", "git", "gh", "eval", "local", "declare",
    "basename", "dirname", "ssh", "docker", "kubectl",
];
/// Programs whose first operand is a pattern or a script.
const PATTERN_FIRST: &[&str] =
    &["grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "gawk", "jq", "yq", "tr", "perl"];
/// More words than are worth a look at the file system.
const MOST_WORDS: usize = 64;

/// Everything a command writes, and everything it could read.
pub(super) fn lower(
    lower: &mut Lower<'_>,
    command: &Command,
    program: &str,
    place: &Place<'_>,
    fetches: bool,
) {
    moves(lower, command, program, place);
    chdir(lower, command, program, place);
    archives(lower, command, program, place);
    if let Some(row) = WRITERS.iter().find(|row| row.names.contains(&program)) {
        let parsed = parse_options(command.arguments(), &row.grammar);
        let fed_by_fetch = super::fetch::is_fed_content(lower.analysis, command);
        if !(fed_by_fetch && matches!(program, "tee" | "sponge")) {
            row.lower(lower, &parsed, place, program);
        }
    }
    if program == "find"
        && command.arguments().iter().any(|word| word.value.known() == Some("-delete"))
    {
        let option = |word: &&Word| {
            !word.value.known().is_some_and(|text| text.starts_with(['-', '(', '!']))
        };
        for word in command.arguments().iter().take_while(option) {
            write(lower, word, place, program);
        }
    }
    if program == "dd" {
        for word in command.arguments() {
            value_behind(lower, word, "of=", place, Access::Write, program);
            value_behind(lower, word, "if=", place, Access::Read, program);
        }
    }
    if program == "rsync" && !fetches {
        let grammar = gnu("efBTM", &["rsh", "exclude", "include", "files-from", "log-file"]);
        if let Some(last) = parse_options(command.arguments(), &grammar).operands.last() {
            write(lower, last, place, program);
        }
    }
    if !fetches {
        reads(lower, command, program, place);
    }
}

impl Writer {
    fn lower(&self, lower: &mut Lower<'_>, parsed: &Parsed<'_>, place: &Place<'_>, program: &str) {
        if !self.only_with.is_empty() && !self.is_on(parsed) {
            return;
        }
        for option in parsed.all(self.options) {
            if let Some(value) = &option.value {
                write_value(lower, value, place, program);
            }
        }
        let operands = parsed.operands.as_slice();
        let directory_given = parsed.has(TARGET_DIR) && !self.options.is_empty();
        let written: &[&Word] = match self.writes {
            Writes::None => &[],
            Writes::Last | Writes::LastOrHere if directory_given => &[],
            Writes::All => operands,
            Writes::AllBut(count) => {
                // `sed -e script file` has no script among its operands.
                let count = if parsed.has(&["-e", "-f", "--expression", "--file", "--reference"]) {
                    0
                } else {
                    count
                };
                operands.get(count..).unwrap_or_default()
            }
            Writes::Last | Writes::LastOrHere if operands.len() < 2 => &[],
            Writes::Last | Writes::LastOrHere => {
                operands.get(operands.len() - 1..).unwrap_or_default()
            }
            Writes::First => operands.get(..1).unwrap_or_default(),
        };
        for word in written {
            write(lower, word, place, program);
        }
        if matches!(program, "mv" | "gmv" | "cp" | "gcp" | "ln" | "install" | "rm" | "srm") {
            let given = parsed.all(TARGET_DIR).filter_map(|option| option.value.as_ref());
            let values: Vec<_> = written.iter().map(|word| &word.value).chain(given).collect();
            for value in values {
                if let Target::Path(path) = place.resolve(value) {
                    lower.push(Action::Place { path, by: program.into() });
                }
            }
        }
    }

    /// Whether one of the options is there that make it write, also as `-i.bak`.
    fn is_on(&self, parsed: &Parsed<'_>) -> bool {
        parsed.has(self.only_with)
            || parsed.options.iter().any(|option| option.name == "--in-place")
    }
}

/// `cd`, `pushd`: where the shell goes.
fn moves(lower: &mut Lower<'_>, command: &Command, program: &str, place: &Place<'_>) {
    if !matches!(program, "cd" | "pushd" | "chdir") {
        return;
    }
    let is_option = |word: &&Word| {
        word.value.known().is_some_and(|text| text.len() > 1 && text.starts_with('-'))
    };
    let Some(word) = command.arguments().iter().find(|word| !is_option(word)) else { return };
    let cdpath = command.assignments.iter().any(|assignment| assignment.name == "CDPATH");
    let relative = word.value.known().is_some_and(|text| !text.starts_with(['/', '.', '~']));
    if cdpath && relative {
        return lower.opaque(lower.shown(command), "the directory depends on CDPATH");
    }
    if word.value.known() == Some("-") {
        return lower.opaque(lower.shown(command), "the previous directory is not known");
    }
    let physical = command
        .arguments()
        .iter()
        .filter(is_option)
        .any(|word| word.value.known().is_some_and(|text| text.contains('P')));
    match place.resolve(&word.value) {
        // The shell takes `..` by its text.
        Target::Path(path) if !physical => {
            let at = AbsPath::lexical(&path.at).map_or(path.at, |clean| clean.as_path().into());
            let path = PathRef { given: path.given, at };
            lower.push(Action::Enter { path, by: program.into() });
        }
        _ => enter(lower, &word.value, place, program, lower.shown(command)),
    }
}

fn chdir(lower: &mut Lower<'_>, command: &Command, program: &str, place: &Place<'_>) {
    let Some((_, names, grammar)) =
        CHDIR.iter().find(|(programs, _, _)| programs.contains(&program))
    else {
        return;
    };
    let parsed = parse_options(command.arguments(), grammar);
    let values: Vec<_> = parsed.all(names).filter_map(|option| option.value.clone()).collect();
    for value in values {
        enter(lower, &value, place, program, lower.shown(command));
    }
    // `-chdir=DIR` with one dash.
    for word in command.arguments() {
        if let Some(dir) = word.value.known().and_then(|text| text.strip_prefix("-chdir=")) {
            enter(lower, &Value::text(dir), place, program, lower.shown(command));
        }
    }
}

/// Archives: where they are unpacked to, and where they are written.
fn archives(lower: &mut Lower<'_>, command: &Command, program: &str, place: &Place<'_>) {
    if !matches!(program, "tar" | "bsdtar" | "gtar" | "cpio" | "7z" | "7za" | "unrar") {
        return;
    }
    for dir in super::fetch::unpack_dirs(command) {
        write_value(lower, &dir, place, program);
    }
}

/// A directory that a command works in.
pub(super) fn enter(lower: &mut Lower<'_>, value: &Value, place: &Place<'_>, by: &str, part: &str) {
    match place.resolve(value) {
        Target::Path(path) => lower.push(Action::Enter { path, by: by.into() }),
        Target::Below(_) => {
            lower.opaque(part, "cannot determine the directory: it is a pattern");
        }
        Target::NoFile => {}
        Target::Unknown(why) => {
            lower.opaque(part, &format!("cannot determine the directory: {why}"));
        }
    }
}

pub(super) fn write(lower: &mut Lower<'_>, word: &Word, place: &Place<'_>, by: &str) {
    write_value(lower, &word.value, place, by);
}

pub(super) fn write_value(lower: &mut Lower<'_>, value: &Value, place: &Place<'_>, by: &str) {
    match place.resolve(value) {
        Target::Path(path) | Target::Below(path) => push(lower, Access::Write, path, by),
        Target::NoFile => {}
        Target::Unknown(why) => {
            lower.opaque(by, &format!("cannot determine what it writes: {why}"));
        }
    }
}

/// A file that could be read. Unknown names are left to the sandbox: most reads are harmless.
pub(super) fn read(lower: &mut Lower<'_>, word: &Word, place: &Place<'_>, by: &str) {
    if let Target::Path(path) | Target::Below(path) = place.resolve(&word.value) {
        push(lower, Access::Read, path, by);
    }
}

fn push(lower: &mut Lower<'_>, access: Access, path: PathRef, by: &str) {
    lower.push(Action::Path { access, path, by: Some(by.into()) });
}

fn value_behind(
    lower: &mut Lower<'_>,
    word: &Word,
    key: &str,
    place: &Place<'_>,
    access: Access,
    by: &str,
) {
    let value = match &word.value {
        Value::Known { text, .. } => text.strip_prefix(key).map(Value::text),
        Value::Pattern { prefix, .. } | Value::Unknown { prefix, .. }
            if prefix.starts_with(key) =>
        {
            Some(Value::Unknown { prefix: String::new(), why: "it depends on a variable" })
        }
        _ => None,
    };
    match (value, access) {
        (Some(value), Access::Write) => write_value(lower, &value, place, by),
        (Some(Value::Known { text, .. }), Access::Read) => {
            if let Target::Path(path) = place.known(&text, false) {
                push(lower, Access::Read, path, by);
            }
        }
        _ => {}
    }
}

/// Every word that could name a file.
fn reads(lower: &mut Lower<'_>, command: &Command, program: &str, place: &Place<'_>) {
    if TEXT.contains(&program) {
        return;
    }
    let mut skip = usize::from(PATTERN_FIRST.contains(&program));
    for word in command.arguments().iter().take(MOST_WORDS) {
        let text = match &word.value {
            Value::Known { text, .. } | Value::Pattern { prefix: text, .. } => text,
            Value::Unknown { .. } => continue,
        };
        let option = text.len() > 1 && text.starts_with('-');
        if option
            || text.is_empty()
            || text.len() > 512
            || text.contains(['\n', '|', ';'])
            || text.contains("://")
        {
            continue;
        }
        if skip > 0 {
            skip -= 1;
            continue;
        }
        read(lower, word, place, program);
        // `-d @file`, `--data=@file`, `key=path`.
        if let Some(file) =
            text.split_once('@').or_else(|| text.split_once('=')).map(|(_, file)| file)
            && !file.is_empty()
            && let Target::Path(path) = place.known(file, file.starts_with('~'))
        {
            push(lower, Access::Read, path, program);
        }
    }
}
