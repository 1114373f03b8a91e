//! Parses the command line and reports mistakes in it. `args` defines what can be typed.

use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, FromArgMatches, Parser};

use crate::args::{self, Args, RunArgs, Verb};
use crate::failure::{Failure, USAGE};
use crate::terminal;

/// Parses the command line of this process.
pub(crate) fn parse() -> Result<Args, clap::Error> {
    let verb = std::env::args_os().nth(1).unwrap_or_default();
    let run = (verb == "run").then(parse_run).flatten();
    run.map_or_else(Args::try_parse, Ok)
}

/// Parses the command line of `run` alone, because setting up the parsers of all the other commands
/// takes as long again. A mistake or `--help` is left to the whole parser.
fn parse_run() -> Option<Args> {
    let command = RunArgs::augment_args(clap::Command::new("ringwall run"));
    let matches = command.try_get_matches_from(std::env::args_os().skip(1)).ok()?;
    let verb = Verb::Run(RunArgs::from_arg_matches(&matches).ok()?);
    Some(Args { verb })
}

/// Prints help, or what is wrong with the command line. Mistakes exit with 64.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        terminal::print(&error.render().to_string());
        return ExitCode::SUCCESS;
    }
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(failure) = mistake(error, &words) {
        return failure.report();
    }
    let text = error.render().to_string();
    match text.trim_end().strip_prefix("error: ") {
        Some(text) => terminal::error(text),
        None => terminal::error_line(text.trim_end()),
    }
    ExitCode::from(USAGE)
}

/// The mistakes that we can explain better than the parser.
fn mistake(error: &clap::Error, words: &[OsString]) -> Option<Failure> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = context(error, ContextKind::InvalidSubcommand)?;
            let failure = Failure::usage(format!("unknown command `{typed}`"));
            Some(match similar_command(words, &typed) {
                Some(similar) => failure.hint(format!("did you mean `{similar}`?")),
                None => failure.hint("`ringwall --help` lists the commands"),
            })
        }
        ErrorKind::UnknownArgument => {
            let typed = context(error, ContextKind::InvalidArg)?;
            let corrected = with_separator(words, &typed)?;
            let verb = words.get(1)?.to_string_lossy();
            Some(
                Failure::usage(format!("`ringwall {verb}` expects its command after `--`"))
                    .hint(format!("run `{corrected}` instead")),
            )
        }
        ErrorKind::ValueValidation => {
            let source = error.source()?;
            if source.is::<std::num::ParseIntError>() {
                let typed = context(error, ContextKind::InvalidValue)?;
                return Some(Failure::usage(format!("`{typed}` is not a whole number")));
            }
            Some(Failure::usage(source))
        }
        _ => None,
    }
}

/// The command line with `--` in front of the word that the parser did not expect, if that is all
/// that was missing.
fn with_separator(words: &[OsString], unexpected: &str) -> Option<String> {
    if unexpected.starts_with('-') {
        return None;
    }
    let candidates = words.iter().enumerate().skip(2);
    let candidates = candidates.filter(|(_, word)| *word == OsStr::new(unexpected));
    // The same word may also be the value of an option, so the correction must parse.
    let corrected = candidates.map(|(at, _)| {
        let (before, after) = words.split_at(at);
        [before, &[OsString::from("--")], after].concat()
    });
    let parses = |words: &Vec<OsString>| Args::try_parse_from(words).is_ok();
    let words = corrected.into_iter().find(parses)?;
    let words = words.iter().skip(1).map(|word| model::shell_word(&word.to_string_lossy()));
    let words: Vec<_> = std::iter::once("ringwall".into()).chain(words).collect();
    Some(words.join(" "))
}

/// The command whose name is one slip of the fingers away from what was typed. The parser's own
/// suggestion does not notice two swapped letters in a short word.
fn similar_command(words: &[OsString], typed: &str) -> Option<String> {
    let mut command = args::command();
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        match command.find_subcommand(word) {
            Some(inner) => command = inner.clone(),
            None => break,
        }
    }
    let names = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    let names = names.map(|inner| (strsim::osa_distance(typed, inner.get_name()), inner));
    let (distance, nearest) = names.min_by_key(|(distance, _)| *distance)?;
    let most = (typed.chars().count() / 3).max(1);
    (distance <= most).then(|| nearest.get_name().to_owned())
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(line: &str) -> Option<Failure> {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        mistake(&Args::try_parse_from(&words).unwrap_err(), &words)
    }

    #[test]
    fn a_mistake_is_answered_with_the_corrected_command() {
        for (line, error, hint) in [
            (
                "ringwall run npm test",
                "`ringwall run` expects its command after `--`",
                Some("run `ringwall run -- npm test` instead"),
            ),
            (
                "ringwall run --level full npm --version",
                "`ringwall run` expects its command after `--`",
                Some("run `ringwall run --level full -- npm --version` instead"),
            ),
            (
                "ringwall run --phase npm npm $x",
                "`ringwall run` expects its command after `--`",
                Some("run `ringwall run --phase npm -- npm '$x'` instead"),
            ),
            (
                "ringwall explain git status",
                "`ringwall explain` expects its command after `--`",
                Some("run `ringwall explain -- git status` instead"),
            ),
            ("ringwall rnu", "unknown command `rnu`", Some("did you mean `run`?")),
            ("ringwall instal claude", "unknown command `instal`", Some("did you mean `install`?")),
            ("ringwall grant raed x", "unknown command `raed`", Some("did you mean `read`?")),
            ("ringwall zzz", "unknown command `zzz`", Some("`ringwall --help` lists the commands")),
            (
                "ringwall run --level rw -- x",
                "unknown level `rw`; expected `readonly`, `readwrite`, `network` or `full`",
                None,
            ),
        ] {
            let failure = report_of(line).unwrap();
            assert_eq!((failure.message(), failure.advice()), (error, hint), "{line}");
            assert_eq!(failure.code(), USAGE);
        }
    }

    #[test]
    fn other_mistakes_are_left_to_the_parser() {
        for line in ["ringwall run --foo x", "ringwall run", "ringwall install claude x"] {
            assert!(report_of(line).is_none(), "{line}");
        }
    }
}
