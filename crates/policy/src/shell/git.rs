//! git: where it works, what it writes, and what it would run.

use model::Action;
use shell::{Command, Dir, Grammar, Parsed, Value, Word, parse_options};

use super::Lower;
use super::files::{enter, write, write_value};
use super::options::gnu;
use super::place::{Place, Target};

/// Options before the subcommand.
const GLOBAL: Grammar = Grammar {
    short: "Cc",
    long: &["git-dir", "work-tree", "namespace", "config-env", "exec-path", "super-prefix"],
    flags: &[
        "no-pager",
        "paginate",
        "bare",
        "no-replace-objects",
        "literal-pathspecs",
        "help",
        "version",
        "html-path",
        "man-path",
        "info-path",
    ],
    abbreviates: false,
    stops_at_operand: true,
};

/// Variables that name a place.
const PLACES: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
];
/// Variables that name a program or bring configuration.
const PROGRAMS: &[&str] = &[
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
];
/// Values with which such a program does nothing, or only shows text.
const HARMLESS: &[&str] =
    &["", "true", ":", "cat", "less", "more", "/bin/true", "false", "/dev/null"];

/// A git command without its global options.
pub(super) struct Git<'w> {
    pub(super) global: Parsed<'w>,
    pub(super) subcommand: &'w Word,
    pub(super) arguments: &'w [Word],
}

/// Splits git's arguments at the subcommand.
pub(super) fn split(command: &Command) -> Option<Git<'_>> {
    let global = parse_options(command.arguments(), &GLOBAL);
    let subcommand = *global.operands.first()?;
    let at = command.arguments().iter().position(|word| std::ptr::eq(word, subcommand))?;
    let arguments = command.arguments().get(at + 1..).unwrap_or_default();
    Some(Git { global, subcommand, arguments })
}

/// Notes what git does, and says in which directory its subcommand works.
pub(super) fn lower(lower: &mut Lower<'_>, command: &Command, place: &Place<'_>) -> Dir {
    environment(lower, command, place);
    let part = lower.shown(command);
    let Some(git) = split(command) else { return place.dir.clone() };
    let mut here = place.dir.clone();
    for option in &git.global.options {
        let at = Place { dir: &here, home: place.home };
        match (option.name.as_str(), &option.value) {
            ("-C", Some(value)) => {
                enter(lower, value, &at, "git", part);
                here = match at.resolve(value) {
                    Target::Path(path) => Dir::Known(path.at),
                    _ => Dir::Unknown("it depends on git -C"),
                };
            }
            ("--git-dir" | "--work-tree", Some(value)) => enter(lower, value, &at, "git", part),
            ("-c", Some(Value::Known { text, .. })) => setting(lower, text, &at, part),
            ("-c" | "--config-env" | "--exec-path", Some(_)) => {
                lower.opaque(part, "cannot determine which configuration it sets");
            }
            _ => {}
        }
    }
    let clones = git.subcommand.value.known() == Some("clone");
    let place = Place { dir: &here, home: place.home };
    if clones {
        // A clone works on no repository; where it lands is judged separately.
    } else if matches!(place.dir, Dir::Unknown(_)) {
        lower.opaque(part, "cannot determine which repository it works on");
    } else if let Dir::Known(dir) = place.dir {
        let path = model::PathRef { given: dir.display().to_string(), at: dir.clone() };
        lower.push(Action::Enter { path, by: "git".into() });
    }
    let Some(subcommand) = git.subcommand.value.known() else {
        lower.opaque(part, "cannot determine which git command runs");
        return here;
    };
    writes(lower, subcommand, git.arguments, &place);
    let runs = |text: &str| {
        text.starts_with("ext::")
            || text.starts_with("--upload-pack=") && !text.ends_with("git-upload-pack")
    };
    if git.arguments.iter().any(|word| word.value.known().is_some_and(runs)) {
        lower.opaque(part, "it names a program that git runs");
    }
    if subcommand == "config" {
        config(lower, git.arguments, part);
    }
    if matches!(
        subcommand,
        "bisect" | "filter-branch" | "rebase" | "submodule" | "difftool" | "mergetool"
    ) {
        program_arguments(lower, subcommand, git.arguments, part);
    }
    here
}

/// Variables for git, on the command or exported before it.
fn environment(lower: &mut Lower<'_>, command: &Command, place: &Place<'_>) {
    let part = lower.shown(command);
    for assignment in &command.assignments {
        let name = assignment.name.as_str();
        if PLACES.contains(&name) {
            if assignment.value.known() != Some("") {
                enter(lower, &assignment.value, place, name, part);
            }
        } else if PROGRAMS.contains(&name)
            && !assignment.value.known().is_some_and(|text| HARMLESS.contains(&text))
        {
            lower.opaque(part, &format!("`{name}` makes git run a program or read configuration"));
        }
    }
}

/// One `-c name=value`.
fn setting(lower: &mut Lower<'_>, text: &str, place: &Place<'_>, part: &str) {
    let (name, value) = text.split_once('=').unwrap_or((text, "true"));
    let name = name.to_ascii_lowercase();
    if name == "core.worktree" {
        return enter(lower, &Value::text(value), place, "git", part);
    }
    if runs_program(&name) && !HARMLESS.contains(&value) {
        let alias = name.starts_with("alias.") && !value.starts_with('!');
        if !alias {
            lower.opaque(part, &format!("`{name}` makes git run a program"));
        }
    }
}

/// Whether a configuration key names a program that git runs.
fn runs_program(name: &str) -> bool {
    const KEYS: &[&str] = &[
        "core.sshcommand",
        "core.hookspath",
        "core.fsmonitor",
        "core.editor",
        "core.pager",
        "core.askpass",
        "core.gitproxy",
        "core.alternaterefscommand",
        "sequence.editor",
        "diff.external",
        "interactive.difffilter",
        "gpg.program",
        "credential.helper",
        "protocol.ext.allow",
        "protocol.allow",
        "uploadpack.packobjectshook",
        "http.proxy",
        "init.templatedir",
        "include.path",
    ];
    const ENDS: &[&str] = &[
        ".clean",
        ".smudge",
        ".process",
        ".textconv",
        ".command",
        ".cmd",
        ".driver",
        ".helper",
        ".uploadpack",
        ".receivepack",
        ".program",
        ".vcs",
        ".insteadof",
        ".path",
    ];
    const STARTS: &[&str] = &["alias.", "pager.", "includeif."];
    KEYS.contains(&name)
        || STARTS.iter().any(|start| name.starts_with(start))
        || ENDS.iter().any(|end| name.ends_with(end))
}

/// `git config`: keys that run programs, in files that others read.
fn config(lower: &mut Lower<'_>, arguments: &[Word], part: &str) {
    let parsed = parse_options(
        arguments,
        &gnu("ft", &["file", "type", "blob", "default", "get", "get-all", "get-regexp", "unset"]),
    );
    if parsed.has(&["--get", "--get-all", "--get-regexp", "-l", "--list", "--unset"]) {
        return;
    }
    let mut operands = parsed.operands.iter();
    let (key, value) = (operands.next(), operands.next());
    if let (Some(key), Some(value)) = (key.and_then(|word| word.value.known()), value) {
        let value = value.value.known().unwrap_or("?");
        let name = key.to_ascii_lowercase();
        let alias = name.starts_with("alias.") && !value.starts_with('!');
        if runs_program(&name) && !alias && !HARMLESS.contains(&value) {
            lower.opaque(part, &format!("`{name}` makes git run a program later"));
        }
        if name == "core.worktree" || name == "core.bare" {
            lower.opaque(part, "it changes the working tree of this repository");
        }
    }
}

/// Paths that a subcommand writes besides its own repository.
fn writes(lower: &mut Lower<'_>, subcommand: &str, arguments: &[Word], place: &Place<'_>) {
    match subcommand {
        "worktree" => {
            let parsed = parse_options(arguments, &gnu("bB", &["reason"]));
            let verb = parsed.operands.first().and_then(|word| word.value.known());
            match verb {
                Some("add" | "remove" | "repair" | "lock" | "unlock") => {
                    if let Some(path) = parsed.operands.get(1) {
                        write(lower, path, place, "git worktree");
                    }
                }
                Some("move") => {
                    for path in parsed.operands.iter().skip(1) {
                        write(lower, path, place, "git worktree");
                    }
                }
                _ => {}
            }
        }
        "init" => {
            let parsed = parse_options(
                arguments,
                &gnu("b", &["template", "separate-git-dir", "object-format", "initial-branch"]),
            );
            for path in parsed.operands {
                write(lower, path, place, "git init");
            }
        }
        "bundle" if arguments.first().and_then(|word| word.value.known()) == Some("create") => {
            let parsed =
                parse_options(arguments.get(1..).unwrap_or_default(), &gnu("", &["version"]));
            if let Some(path) = parsed.operands.first() {
                write(lower, path, place, "git bundle");
            }
        }
        "archive" | "format-patch" | "diff" | "log" | "show" => {
            let parsed = parse_options(arguments, &gnu("o", &["output", "output-directory"]));
            let names = if subcommand == "diff" || subcommand == "log" || subcommand == "show" {
                &["--output"][..]
            } else {
                &["-o", "--output", "--output-directory"][..]
            };
            let values: Vec<_> =
                parsed.all(names).filter_map(|option| option.value.clone()).collect();
            for value in values {
                write_value(lower, &value, place, "git");
            }
        }
        "checkout-index" | "read-tree" => {
            let parsed = parse_options(arguments, &gnu("", &["prefix"]));
            if let Some(value) = parsed.last(&["--prefix"]).and_then(|option| option.value.clone())
            {
                write_value(lower, &value, place, "git");
            }
        }
        _ => {}
    }
}

/// Subcommands that run what they are given.
fn program_arguments(lower: &mut Lower<'_>, subcommand: &str, arguments: &[Word], part: &str) {
    let first = arguments.first().and_then(|word| word.value.known());
    let runs = match subcommand {
        "bisect" => first == Some("run"),
        "filter-branch" => true,
        "rebase" => arguments.iter().any(|word| {
            word.value.known().is_some_and(|text| text == "-x" || text.starts_with("--exec"))
        }),
        "submodule" => first == Some("foreach"),
        _ => arguments.iter().any(|word| {
            word.value
                .known()
                .is_some_and(|text| text.starts_with("-x") || text.starts_with("--extcmd"))
        }),
    };
    if runs {
        lower.opaque(part, "git runs a command from its arguments");
    }
}
