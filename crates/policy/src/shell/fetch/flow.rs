//! Which output is content from outside, and where it flows.

use shell::{Analysis, Command, Input, Value, Word};

use super::super::git;
use super::edits::is_url;

/// Whether a command's output is content, be it through a row of filters.
pub(in crate::shell) fn output_is_content(analysis: &Analysis, index: usize) -> bool {
    flows(analysis, index, 0)
}

fn flows(analysis: &Analysis, index: usize, depth: usize) -> bool {
    let Some(command) = analysis.commands.get(index) else { return false };
    let piped = match &command.input {
        Input::Pipe(producers) => producers.as_slice(),
        _ => &[],
    };
    let mut sources = piped.iter().chain(&command.inner);
    emits(command) || (depth < 32 && sources.any(|source| flows(analysis, *source, depth + 1)))
}

/// Whether a command reads content from a pipe.
pub(in crate::shell) fn is_fed_content(analysis: &Analysis, command: &Command) -> bool {
    matches!(&command.input, Input::Pipe(producers) if producers.iter().any(|one| flows(analysis, *one, 0)))
}

/// Whether a substitution in a word brings content.
pub(in crate::shell) fn inner_brings(analysis: &Analysis, word: &Word) -> bool {
    word.inner.iter().any(|index| flows(analysis, *index, 0))
}

/// Whether a command's output is content from outside.
fn emits(command: &Command) -> bool {
    let Some(program) = command.program() else { return false };
    let has = |names: &[&str]| {
        command
            .arguments()
            .iter()
            .any(|word| word.value.known().is_some_and(|text| names.contains(&text)))
    };
    let url = command.arguments().iter().any(|word| match &word.value {
        Value::Known { text, .. } => is_url(text),
        Value::Unknown { .. } => true,
        Value::Pattern { prefix, .. } => is_url(prefix),
    });
    match program {
        "curl" => !has(&["--version", "-V", "--help", "-h", "-I", "--head"]),
        "wget" | "wget2" | "http" | "https" | "xh" | "xhs" | "curlie" => url || has(&["-i"]),
        "lynx" | "w3m" | "links" | "elinks" | "fetch" | "hurl" | "aria2c" => url,
        "nc" | "ncat" | "netcat" | "socat" | "telnet" => true,
        "git" => git::split(command).is_some_and(|git| {
            git.subcommand.value.known() == Some("archive")
                && git
                    .arguments
                    .iter()
                    .any(|word| word.value.known().is_some_and(|text| text.starts_with("--remote")))
        }),
        "aws" | "gsutil" | "gcloud" | "rclone" | "s3cmd" | "mc" | "az" => {
            command.arguments().last().and_then(|word| word.value.known()) == Some("-")
                || has(&["cat"])
        }
        "gh" => has(&["-"]),
        _ => false,
    }
}
