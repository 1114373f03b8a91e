//! Archives: what they unpack, and where to.

use model::shell_word;
use shell::{Command, Grammar, Value, parse_options};

use super::super::Lower;
use super::super::place::{Place, Target};
use super::edits::{append, option_edit, push};

/// An archive from a pipe, unpacked somewhere.
pub(super) fn unpack(lower: &mut Lower<'_>, command: &Command, place: &Place<'_>) {
    if !unpacks(command) {
        return;
    }
    let by = command.program().unwrap_or("tar").to_owned();
    let target = lower.scene.target().to_path_buf();
    let parsed = parse_options(command.arguments(), &TAR);
    match parsed.last(&["-C", "--directory", "--cd", "-D", "-d"]) {
        Some(option) => {
            let edit = option_edit(lower, option, &target);
            let at = option
                .value
                .as_ref()
                .map_or(Target::Unknown("it is missing"), |value| place.resolve(value));
            push(lower, command, &by, at, target, edit);
        }
        None => {
            let flag = match by.as_str() {
                "cpio" => "-D",
                "unzip" => "-d",
                _ => "-C",
            };
            let edit = (!by.starts_with("7z")).then(|| {
                append(command, &format!("{flag} {}", shell_word(&target.display().to_string())))
            });
            push(lower, command, &by, place.known(".", false), target, edit.flatten());
        }
    }
}

const TAR: Grammar = Grammar {
    short: "CfbTXVgHILKNFD",
    long: &[
        "directory",
        "cd",
        "file",
        "exclude",
        "files-from",
        "exclude-from",
        "transform",
        "strip-components",
        "use-compress-program",
    ],
    flags: &[],
    abbreviates: true,
    stops_at_operand: false,
};

/// Whether an archiver writes files from its archive, rather than listing or making one.
fn unpacks(command: &Command) -> bool {
    let Some(program) = command.program() else { return false };
    let words: Vec<_> = command.arguments().iter().filter_map(|word| word.value.known()).collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    match program {
        "cpio" => {
            words
                .iter()
                .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('i'))
                || has(&["--extract"])
        }
        "unzip" => !has(&["-l", "-t", "-p", "-Z", "-v"]),
        "7z" | "7za" => has(&["x", "e"]) && !has(&["-so"]),
        "unrar" => has(&["x", "e"]),
        _ => {
            let stdout = has(&["-O", "--to-stdout"]);
            let old_style =
                words.first().is_some_and(|word| !word.starts_with('-') && word.contains('x'));
            let cluster = words
                .iter()
                .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('x'));
            !stdout && (old_style || cluster || has(&["--extract", "--get"]))
        }
    }
}

/// The directories that an archiver writes to, for archives that are files.
pub(in crate::shell) fn unpack_dirs(command: &Command) -> Vec<Value> {
    let creates = !unpacks(command);
    let parsed = parse_options(command.arguments(), &TAR);
    if creates {
        let words: Vec<_> =
            command.arguments().iter().filter_map(|word| word.value.known()).collect();
        let makes = words
            .first()
            .is_some_and(|word| word.trim_start_matches('-').starts_with(['c', 'r', 'u']))
            || words.contains(&"--create");
        let file = parsed.last(&["-f", "--file"]).and_then(|option| option.value.clone());
        return file.filter(|_| makes).into_iter().collect();
    }
    parsed
        .all(&["-C", "--directory", "--cd", "-D"])
        .filter_map(|option| option.value.clone())
        .collect()
}
