//! `ringwall audit tail|query|verify`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use audit::{Entry, Filter, Found, Line, Log};
use facts::Places;
use model::{Record, Verdict};
use serde_json::json;

use super::doctor;
use crate::args::{AuditVerb, QueryArgs, VerdictName};
use crate::failure::Failure;
use crate::terminal::{self, Paint};

pub(super) fn run(verb: AuditVerb) -> Result<ExitCode, Failure> {
    let places = Places::from_environment().map_err(Failure::new)?;
    let log = Log::at(places.audit_dir());
    let (filter, json) = match verb {
        AuditVerb::Tail { lines, json } => {
            (Filter { last: Some(lines), ..Filter::default() }, json)
        }
        AuditVerb::Query(args) => {
            let json = args.json;
            (filter(args)?, json)
        }
        AuditVerb::Verify { expect_head, json } => {
            return verify(&log, expect_head.as_deref(), json);
        }
    };
    let doctor = doctor_sessions(&log)?;
    // What doctor tries must be denied, so it is no news among the denials.
    let hides_doctor = filter.verdict == Some(Verdict::Deny) && filter.session.is_none();
    let except_sessions = if hides_doctor { doctor.clone() } else { BTreeSet::new() };
    let found = log.query(&Filter { except_sessions, ..filter }).map_err(Failure::new)?;
    show(&found, &doctor, json)
}

/// The sessions that doctor announced as its own. An agent cannot announce one: every call of an
/// agent is recorded under the agent's name.
fn doctor_sessions(log: &Log) -> Result<BTreeSet<String>, Failure> {
    let filter = Filter { agent: Some(doctor::AGENT.into()), ..Filter::default() };
    let found = log.query(&filter).map_err(Failure::new)?;
    let session = |line: Line| match line.entry {
        Entry::Decision(record) => Some(record.session),
        _ => None,
    };
    Ok(found.entries.into_iter().filter_map(session).collect())
}

fn filter(args: QueryArgs) -> Result<Filter, Failure> {
    let verdict = args.verdict.map(|verdict| match verdict {
        VerdictName::Allow => Verdict::Allow,
        VerdictName::Ask => Verdict::Ask,
        VerdictName::Deny => Verdict::Deny,
    });
    let QueryArgs { agent, session, tool, since, text, last, .. } = args;
    if let Some(since) = since.as_deref().filter(|since| !is_time(since)) {
        return Err(Failure::usage(format!("`{since}` is not a time in UTC"))
            .hint("write it as 2026-11-15 or 2026-11-15T10:00:00Z"));
    }
    Ok(Filter { verdict, agent, session, tool, since, text, last, ..Filter::default() })
}

/// Whether a text is an RFC 3339 time in UTC, or the beginning of one: a year, a month, a day …
fn is_time(text: &str) -> bool {
    const WHOLE: &str = "0000-01-01T00:00:00";
    let text = text.strip_suffix('Z').unwrap_or(text);
    let rest = match text.len() {
        4 | 7 | 10 | 13 | 16 => WHOLE.get(text.len()..).unwrap_or_default(),
        _ => "",
    };
    humantime::parse_rfc3339(&format!("{text}{rest}Z")).is_ok()
}

fn show(found: &Found, doctor: &BTreeSet<String>, as_json: bool) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    if as_json {
        for line in &found.entries {
            text.push_str(&serde_json::to_string(line).map_err(Failure::new)?);
            text.push('\n');
        }
    } else {
        let rows: Vec<_> = found.entries.iter().map(|line| row(line, doctor)).collect();
        text = terminal::table(&rows);
    }
    terminal::print(&text);
    for line in &found.unreadable {
        terminal::error_line(&format!("warning: line {line} of the log cannot be read"));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(line: &Line, doctor: &BTreeSet<String>) -> Vec<String> {
    let (seq, time) = (line.seq.to_string(), line.entry.time().to_owned());
    let repair = |text: String| {
        vec![seq.clone(), time.clone(), "repair".into(), "-".into(), "-".into(), text]
    };
    match &line.entry {
        Entry::Decision(record) => {
            let agent = match record.agent.as_str() {
                _ if doctor.contains(&record.session) => doctor::AGENT,
                "" => "-",
                agent => agent,
            };
            let tool = terminal::plain(&record.tool);
            let verdict = record.verdict.to_string();
            let rules = terminal::plain(&record.rules.join(", "));
            vec![seq, time, verdict, agent.into(), tool, terminal::plain(&what(record)), rules]
        }
        Entry::Repaired { bytes, .. } => {
            repair(format!("an unfinished record was removed ({bytes} bytes)"))
        }
        Entry::HeadLost { found, .. } => {
            repair(format!("the head of the log was {found}; records may have been cut off"))
        }
    }
}

/// What was tried and, unless it was allowed, why it was denied: the notes name the path or the
/// host, which the actions of a run do not.
fn what(record: &Record) -> String {
    let actions = record.actions.iter().map(super::describe).collect::<Vec<_>>().join(", ");
    if record.verdict == Verdict::Allow || record.notes.is_empty() {
        return actions;
    }
    let notes = record.notes.join("; ");
    if actions.is_empty() { notes } else { format!("{actions}: {notes}") }
}

fn verify(log: &Log, expected_head: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let report = log.verify(expected_head).map_err(Failure::new)?;
    let valid = report.faults.is_empty();
    if as_json {
        let shown = json!({
            "log": log.path(),
            "records": report.records,
            "head": report.head,
            "faults": report.faults,
        });
        terminal::print(&format!("{shown:#}\n"));
    } else {
        let mut text = String::new();
        for fault in &report.faults {
            let place = format!("{}:{}:", log.path().display(), fault.line);
            text.push_str(&format!("{} {}\n", terminal::paint(&place, Paint::Red), fault.problem));
        }
        let head = report.head.as_deref().unwrap_or("none");
        let state = if valid { "valid" } else { "NOT valid" };
        text.push_str(&format!("{} records, head {head}: the log is {state}\n", report.records));
        terminal::print(&text);
    }
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
