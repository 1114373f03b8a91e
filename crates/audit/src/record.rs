//! Prepares a record for the log: removes secrets and cuts long texts.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use model::{Action, Fetch, PathRef, Record};

use crate::redact::redact;

/// The longest text that is kept whole, in bytes.
const LONGEST_TEXT: usize = 2048;
/// All texts of one list together. Even with every byte escaped, a line stays within bounds.
const LONGEST_TEXTS: usize = 24 * 1024;
/// The longest list that is kept whole.
const LONGEST_LIST: usize = 256;
/// Space for the words that report how much was cut.
const ROOM_FOR_CUT: usize = 48;

/// The same record without secrets, and with long texts and lists cut.
///
/// What was cut is mentioned in its place or in the notes. Paths that are not UTF-8 get replacement
/// characters, because JSON cannot hold them.
#[must_use]
pub fn redact_record(mut record: Record) -> Record {
    cut_list(&mut record.actions, "actions", &mut record.notes);
    cut_list(&mut record.rules, "rules", &mut record.notes);
    if record.notes.len() > LONGEST_LIST {
        let more = record.notes.len() - LONGEST_LIST + 1;
        record.notes.truncate(LONGEST_LIST - 1);
        record.notes.push(format!("{more} more notes were cut"));
    }
    let mut fields = Room::new();
    let mut rules = Room::new();
    let mut notes = Room::new();
    let mut actions = Room::new();
    Record {
        time: fields.text(record.time),
        agent: fields.text(record.agent),
        session: fields.text(record.session),
        workspace: fields.text(record.workspace),
        tool: fields.text(record.tool),
        actions: record.actions.into_iter().map(|action| actions.action(action)).collect(),
        verdict: record.verdict,
        rules: record.rules.into_iter().map(|rule| rules.text(rule)).collect(),
        config: fields.text(record.config),
        micros: record.micros,
        notes: record.notes.into_iter().map(|note| notes.text(note)).collect(),
    }
}

/// How many bytes of text may still follow.
struct Room(usize);

impl Room {
    fn new() -> Self {
        Self(LONGEST_TEXTS)
    }

    fn text(&mut self, text: String) -> String {
        let redacted = match redact(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(redacted) => Some(redacted),
        };
        let kept = cut(redacted.unwrap_or(text), self.0.min(LONGEST_TEXT));
        self.0 = self.0.saturating_sub(kept.len());
        kept
    }

    fn path(&mut self, path: &Path) -> PathBuf {
        self.text(path.to_string_lossy().into_owned()).into()
    }

    fn path_ref(&mut self, path: PathRef) -> PathRef {
        PathRef { given: self.text(path.given), at: self.path(&path.at) }
    }

    fn action(&mut self, action: Action) -> Action {
        match action {
            Action::Path { access, path, by } => {
                let by = by.map(|by| self.text(by));
                Action::Path { access, path: self.path_ref(path), by }
            }
            Action::Place { path, by } => {
                Action::Place { path: self.path_ref(path), by: self.text(by) }
            }
            Action::Enter { path, by } => {
                Action::Enter { path: self.path_ref(path), by: self.text(by) }
            }
            // The edits are in the corrected text; the log needs only where the content would go.
            Action::Fetch(fetch) => Action::Fetch(Box::new(Fetch {
                by: self.text(fetch.by),
                to: self.path_ref(fetch.to),
                corrected: self.path(&fetch.corrected),
                edits: Vec::new(),
                at: fetch.at,
                instead: None,
            })),
            Action::RunFetched { part } => Action::RunFetched { part: self.text(part) },
            Action::Opaque { part, why } => {
                Action::Opaque { part: self.text(part), why: self.text(why) }
            }
            Action::Run { command, field } => Action::Run { command: self.text(command), field },
            Action::Connect { target } => Action::Connect { target: self.text(target) },
            Action::LeaveSandbox { field } => Action::LeaveSandbox { field: self.text(field) },
            Action::AskPerson { tool } => Action::AskPerson { tool: self.text(tool) },
            Action::ChangeSettings { path } => Action::ChangeSettings { path: self.path(&path) },
            Action::NoEffect { tool } => Action::NoEffect { tool: self.text(tool) },
            Action::Invalid { field, problem } => {
                Action::Invalid { field: self.text(field), problem: self.text(problem) }
            }
        }
    }
}

/// Cuts a list, and reports it in the notes.
fn cut_list<T>(list: &mut Vec<T>, name: &str, notes: &mut Vec<String>) {
    if list.len() > LONGEST_LIST {
        notes.insert(0, format!("{} more {name} were cut", list.len() - LONGEST_LIST));
        list.truncate(LONGEST_LIST);
    }
}

/// Cuts a text to at most this many bytes, including the words that report the cut.
fn cut(mut text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let keep = most.saturating_sub(ROOM_FOR_CUT);
    let keep = (0..=keep).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let bytes = text.len() - keep;
    text.truncate(keep);
    text + &format!("… [{bytes} bytes cut]")
}
