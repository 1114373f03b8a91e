//! `ringwall audit tail|query|verify`.

use std::process::ExitCode;

use audit::{Entry, Filter, Found, Line, Log};
use facts::Places;
use model::Verdict;
use serde_json::json;

use crate::args::{AuditVerb, QueryArgs, VerdictName};
use crate::failure::Failure;
use crate::terminal::{self, Paint};

pub(super) fn run(verb: AuditVerb) -> Result<ExitCode, Failure> {
    let places = Places::from_environment().map_err(Failure::new)?;
    let log = Log::at(places.audit_dir());
    match verb {
        AuditVerb::Tail { lines, json } => {
            let filter = Filter { last: Some(lines), ..Filter::default() };
            show(&log.query(&filter).map_err(Failure::new)?, json)
        }
        AuditVerb::Query(args) => {
            let json = args.json;
            show(&log.query(&filter(args)?).map_err(Failure::new)?, json)
        }
        AuditVerb::Verify { expect_head, json } => verify(&log, expect_head.as_deref(), json),
    }
}

fn filter(args: QueryArgs) -> Result<Filter, Failure> {
    let verdict = args.verdict.map(|verdict| match verdict {
        VerdictName::Allow => Verdict::Allow,
        VerdictName::Ask => Verdict::Ask,
        VerdictName::Deny => Verdict::Deny,
    });
    let QueryArgs { agent, session, tool, since, text, last, .. } = args;
    if let Some(since) = since.as_deref().filter(|since| !is_time(since)) {
        return Err(Failure::usage(format!("`{since}` is no time in UTC"))
            .hint("write it as 2026-11-15 or 2026-11-15T10:00:00Z"));
    }
    Ok(Filter { verdict, agent, session, tool, since, text, last })
}

/// Whether a text is a time of RFC 3339 in UTC, or the beginning of one up to a whole part.
fn is_time(text: &str) -> bool {
    const WHOLE: &str = "0000-01-01T00:00:00";
    let text = text.strip_suffix('Z').unwrap_or(text);
    let rest = match text.len() {
        4 | 7 | 10 | 13 | 16 => WHOLE.get(text.len()..).unwrap_or_default(),
        _ => "",
    };
    humantime::parse_rfc3339(&format!("{text}{rest}Z")).is_ok()
}

fn show(found: &Found, as_json: bool) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    if as_json {
        for line in &found.entries {
            text.push_str(&serde_json::to_string(line).map_err(Failure::new)?);
            text.push('\n');
        }
    } else {
        text = terminal::table(&found.entries.iter().map(row).collect::<Vec<_>>());
    }
    terminal::print(&text);
    for line in &found.unreadable {
        terminal::error_line(&format!("warning: line {line} of the log cannot be read"));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(line: &Line) -> Vec<String> {
    let time = line.entry.time().to_owned();
    match &line.entry {
        Entry::Decision(record) => {
            let actions = record.actions.iter().map(super::describe).collect::<Vec<_>>();
            vec![
                line.seq.to_string(),
                time,
                record.verdict.to_string(),
                record.agent.clone(),
                terminal::plain(&record.tool),
                terminal::plain(&actions.join(", ")),
                terminal::plain(&record.rules.join(", ")),
            ]
        }
        other => {
            let text = serde_json::to_string(other).unwrap_or_default();
            vec![line.seq.to_string(), time, "repair".into(), String::new(), String::new(), text]
        }
    }
}

fn verify(log: &Log, expected_head: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let report = log.verify(expected_head).map_err(Failure::new)?;
    let sound = report.faults.is_empty();
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
        let state = if sound { "sound" } else { "NOT sound" };
        text.push_str(&format!("{} records, head {head}: the log is {state}\n", report.records));
        terminal::print(&text);
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
