//! `ringwall grant --last`: the grants that the last run in this workspace lacked.
//!
//! They are read from the audit log, which no run can write.

use std::process::ExitCode;

use audit::{Entry, Filter, Line, Log};
use clap::Parser;
use facts::Places;
use model::Record;

use crate::args::{Args, Verb};
use crate::commands::setup_failed;
use crate::failure::Failure;
use crate::setup::{Options, Setup};
use crate::terminal::{self, plain};

pub(super) fn run() -> Result<ExitCode, Failure> {
    let places = Places::from_environment().map_err(Failure::new)?;
    let agent = agents::ALL.first().ok_or_else(|| Failure::new("no agent is known"))?;
    let setup = Setup::prepare(agent, &Options::default(), "").map_err(setup_failed)?;
    let workspace = setup.context.workspace.to_string();
    let Some(last) = last_run(&Log::at(places.audit_dir()), &workspace)? else {
        terminal::print(&format!("no run has ended in {} yet\n", plain(&workspace)));
        return Ok(ExitCode::SUCCESS);
    };
    let commands = proposals(&last);
    if commands.is_empty() {
        terminal::print("the last run lacked nothing that a grant could allow\n");
        return Ok(ExitCode::SUCCESS);
    }
    if !terminal::is_attended() {
        let lines: String = commands.iter().map(|(line, _)| plain(line) + "\n").collect();
        terminal::print(&lines);
        return Ok(ExitCode::SUCCESS);
    }
    for (line, verb) in commands {
        if terminal::confirm(&plain(&line)) {
            super::add(verb)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The record of the end of the newest run in a workspace.
fn last_run(log: &Log, workspace: &str) -> Result<Option<Record>, Failure> {
    let filter = Filter { tool: Some(run::RUN_ENDED.into()), ..Filter::default() };
    let found = log.query(&filter).map_err(Failure::new)?;
    let record = |line: Line| match line.entry {
        Entry::Decision(record) if record.workspace == workspace => Some(record),
        _ => None,
    };
    Ok(found.entries.into_iter().rev().find_map(record))
}

/// The commands that the record names, as far as they are grants. They are parsed as if they were
/// typed, so that nothing else can be in them.
fn proposals(record: &Record) -> Vec<(String, crate::args::GrantVerb)> {
    let commands = record.notes.iter().filter_map(|note| note.strip_prefix(run::ALLOW_NOTE));
    let mut proposals = Vec::new();
    for line in commands {
        let words = shlex(line);
        let Ok(Args { verb: Verb::Grant(grant) }) = Args::try_parse_from(words) else { continue };
        if let Some(verb) = grant.verb
            && !proposals.iter().any(|(known, _)| known == line)
        {
            proposals.push((line.to_owned(), verb));
        }
    }
    proposals
}

/// The words of a command that `printed_word` has quoted.
fn shlex(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut escaped) = (Vec::new(), None, false, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '$' if !quoted && !escaped && chars.as_str().starts_with('\'') => {
                chars.next();
                word.get_or_insert_with(String::new).push_str(&with_escapes(&mut chars));
            }
            _ if escaped => {
                escaped = false;
                word.get_or_insert_with(String::new).push(c);
            }
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_with(String::new);
            }
            '\\' if !quoted => escaped = true,
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_with(String::new).push(c),
        }
    }
    words.extend(word);
    words
}

/// The text up to the quotation mark, with escapes read.
fn with_escapes(chars: &mut std::str::Chars<'_>) -> String {
    let mut bytes = Vec::new();
    let add = |bytes: &mut Vec<u8>, c: char| bytes.extend(c.to_string().into_bytes());
    while let Some(c) = chars.next() {
        match c {
            '\'' => break,
            '\\' => match chars.next() {
                Some('x') => {
                    let digits: String = chars.by_ref().take(2).collect();
                    bytes.extend(u8::from_str_radix(&digits, 16));
                }
                Some(c) => add(&mut bytes, c),
                None => {}
            },
            c => add(&mut bytes, c),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_they_were_before_they_were_quoted() {
        for word in ["/a", "/a b", "it's", "", "a\\b", "$x`y`\"z\"", "a\nb'\\\u{1b}é"] {
            let line = format!("ringwall grant read {}", model::printed_word(word));
            assert_eq!(shlex(&line), ["ringwall", "grant", "read", word], "{line}");
        }
    }
}
