//! Finds entries by a [`Filter`].

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use model::{Action, PathRef, Record, Verdict};
use serde::Serialize;

use crate::entry::{Entry, Line};
use crate::lines::Text;
use crate::snapshot::{ReadError, Snapshot};

/// Which entries to find. An empty filter matches everything.
///
/// An entry that is not a decision has no verdict, agent, session, tool or text, so a filter on one
/// of these does not match it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only decisions with this verdict.
    pub verdict: Option<Verdict>,
    /// Only this agent's.
    pub agent: Option<String>,
    /// Only this session's.
    pub session: Option<String>,
    /// No decisions of these sessions.
    pub except_sessions: BTreeSet<String>,
    /// Only this tool's.
    pub tool: Option<String>,
    /// Only from this time on, as RFC 3339 in UTC or the beginning of it (`2026-01-31`).
    pub since: Option<String>,
    /// Only those that have this text in an action, rule, note or the workspace.
    pub text: Option<String>,
    /// Only this many, the newest.
    pub last: Option<usize>,
}

/// What a query found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The entries, oldest first.
    pub entries: Vec<Line>,
    /// The numbers of the lines that could not be read, counted from one.
    pub unreadable: Vec<usize>,
}

/// Finds entries of the log in `directory`.
pub(crate) fn query(directory: &Path, filter: &Filter) -> Result<Found, ReadError> {
    let mut snapshot = Snapshot::of(directory)?;
    let most = filter.last.unwrap_or(usize::MAX);
    let mut entries = VecDeque::new();
    let mut unreadable = Vec::new();
    while let Some(raw) = snapshot.next_line()? {
        let line = match raw.text {
            Text::Whole(text) => serde_json::from_slice::<Line>(text).ok(),
            Text::Torn(_) | Text::TooLong => None,
        };
        match line {
            None => unreadable.push(raw.number),
            Some(line) if filter.matches_entry(&line.entry) => {
                entries.push_back(line);
                if entries.len() > most {
                    entries.pop_front();
                }
            }
            Some(_) => {}
        }
    }
    Ok(Found { entries: entries.into(), unreadable })
}

impl Filter {
    fn matches_entry(&self, entry: &Entry) -> bool {
        if self.since.as_deref().is_some_and(|since| instant(entry.time()) < instant(since)) {
            return false;
        }
        match entry {
            Entry::Decision(record) => self.matches(record),
            Entry::Repaired { .. } | Entry::HeadLost { .. } => {
                self.verdict.is_none()
                    && [&self.agent, &self.session, &self.tool, &self.text]
                        .iter()
                        .all(|wanted| wanted.is_none())
            }
        }
    }

    fn matches(&self, record: &Record) -> bool {
        let same = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        self.verdict.is_none_or(|wanted| wanted == record.verdict)
            && same(&self.agent, &record.agent)
            && same(&self.session, &record.session)
            && !self.except_sessions.contains(&record.session)
            && same(&self.tool, &record.tool)
            && self.text.as_deref().is_none_or(|text| mentions(record, text))
    }
}

/// The time without `Z`, which would sort after the fraction of a second that it may follow.
fn instant(time: &str) -> &str {
    time.strip_suffix('Z').unwrap_or(time)
}

fn mentions(record: &Record, text: &str) -> bool {
    let names =
        |path: &PathRef| path.given.contains(text) || path.at.to_string_lossy().contains(text);
    let in_action = |action: &Action| match action {
        Action::Path { path, .. } | Action::Enter { path, .. } | Action::Place { path, .. } => {
            names(path)
        }
        Action::Fetch(fetch) => names(&fetch.to),
        Action::Run { command, .. } => command.contains(text),
        Action::RunFetched { part } | Action::Opaque { part, .. } => part.contains(text),
        Action::Connect { target } => target.contains(text),
        Action::LeaveSandbox { field } => field.contains(text),
        Action::AskPerson { tool } | Action::NoEffect { tool } => tool.contains(text),
        Action::ChangeSettings { path } => path.to_string_lossy().contains(text),
        Action::Invalid { field, problem } => field.contains(text) || problem.contains(text),
    };
    record.workspace.contains(text)
        || record.actions.iter().any(in_action)
        || record.rules.iter().chain(&record.notes).any(|line| line.contains(text))
}
