//! `ringwall doctor`: checks the sandbox and the hooks by trying them.
//!
//! Every installed hook is called exactly as its agent would call it, with calls that must be
//! denied and one that must be allowed. The agent's own program is asked whether it accepts the
//! settings.

mod call;
mod hooks;
mod sandbox;

use std::process::ExitCode;

use audit::Log;
use serde::Serialize;
use serde_json::json;

use super::setup_failed;
use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::setup::{Options, Setup};
use crate::terminal::{self, Paint};

pub(super) use sandbox::try_acts;

/// The agent that the audit log names for doctor's own calls. No agent may be called this.
pub(super) const AGENT: &str = "doctor";

#[derive(Serialize)]
struct Check {
    name: String,
    state: State,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Good,
    Note,
    Bad,
}

pub(super) fn run(args: DoctorArgs) -> Result<ExitCode, Failure> {
    run_with(&args.common.into(), args.json)
}

pub(super) fn run_with(options: &Options, as_json: bool) -> Result<ExitCode, Failure> {
    let mut checks = Vec::new();
    for agent in agents::ALL.iter().copied() {
        let setup = Setup::prepare(agent, options, "doctor").map_err(setup_failed)?;
        if checks.is_empty() {
            checks.extend(machine(&setup));
        }
        checks.extend(hooks::checks(&setup));
    }
    let bad = checks.iter().any(|check| check.state == State::Bad);
    if as_json {
        terminal::print(&format!("{:#}\n", json!({ "good": !bad, "checks": checks })));
    } else {
        terminal::print(&as_text(&checks));
    }
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn as_text(checks: &[Check]) -> String {
    let mut rows = Vec::new();
    for check in checks {
        let (mark, colour) = match check.state {
            State::Good => ("ok", Paint::Green),
            State::Note => ("note", Paint::Yellow),
            State::Bad => ("FAIL", Paint::Red),
        };
        rows.push(vec![
            terminal::paint(mark, colour),
            check.name.clone(),
            terminal::plain(&check.text),
        ]);
        if let Some(remedy) = &check.remedy {
            let arrow = terminal::paint("->", Paint::Dim);
            rows.push(vec![String::new(), String::new(), format!("{arrow} {remedy}")]);
        }
    }
    terminal::table(&rows)
}

fn check(name: &str, state: State, text: impl Into<String>, remedy: Option<&str>) -> Check {
    Check { name: name.into(), state, text: text.into(), remedy: remedy.map(str::to_owned) }
}

/// What does not depend on an agent.
fn machine(setup: &Setup) -> Vec<Check> {
    let mut checks = Vec::new();
    let files = setup.loaded.files.len();
    checks.push(check("configuration", State::Good, format!("{files} file(s), valid"), None));
    let mut warnings = setup.loaded.warnings.clone();
    warnings.extend(config::check(&setup.loaded.policy, &setup.context.workspace));
    for warning in warnings {
        checks.push(check("configuration", State::Note, warning.to_string(), None));
    }
    for line in setup.loaded.untrusted() {
        let remedy = Some("read the file, then run `ringwall trust`");
        checks.push(check("trust", State::Note, format!("ignored: {line}"), remedy));
    }
    checks.push(match &setup.context.unfit {
        None => check("workspace", State::Good, setup.context.workspace.to_string(), None),
        Some(why) => {
            check("workspace", State::Bad, why.clone(), Some("start in a project directory"))
        }
    });
    checks.push(binary(setup));
    checks.push(quarantine(setup));
    checks.push(log(setup));
    checks.extend(killed_runs(setup));
    checks.extend(sandbox::checks(setup));
    checks
}

/// The program that decides must not be where an agent can write.
fn binary(setup: &Setup) -> Check {
    match std::env::current_exe() {
        Ok(path) if path.starts_with(setup.context.workspace.as_path()) => check(
            "binary",
            State::Note,
            format!("{} is in the workspace, where commands can overwrite it", path.display()),
            Some("install it elsewhere: cargo install --path crates/cli"),
        ),
        Ok(path) => check("binary", State::Good, path.display().to_string(), None),
        Err(error) => check("binary", State::Bad, error.to_string(), None),
    }
}

fn quarantine(setup: &Setup) -> Check {
    match &setup.loaded.policy.quarantine.dir {
        Some(dir) => check("quarantine", State::Good, dir.value.text().to_owned(), None),
        None => check(
            "quarantine",
            State::Note,
            "off: downloads are not redirected, because no directory is set",
            Some("set quarantine.dir to turn it on"),
        ),
    }
}

/// Searches for what runs left that were killed, wherever they were.
fn killed_runs(setup: &Setup) -> Vec<Check> {
    let recovered = ::run::recover(&setup.places.state_dir, None);
    let told = |run: &::run::Recovered| {
        let text = format!("a run in {} was killed; its directories were searched", run.workspace);
        let mut checks = vec![check("runs", State::Note, text, None)];
        checks.extend(run.told().map(|found| {
            let moved = found.moved_to.map_or(String::new(), |to| format!(", moved to {to}"));
            check("runs", State::Bad, format!("{}: {}{moved}", found.what, found.path), None)
        }));
        checks
    };
    recovered.iter().flat_map(told).collect()
}

fn log(setup: &Setup) -> Check {
    let log = Log::at(setup.places.audit_dir());
    match log.verify(None) {
        Ok(report) if report.faults.is_empty() => {
            let text = format!("{} records in {}, valid", report.records, log.path().display());
            check("audit", State::Good, text, None)
        }
        Ok(report) => {
            let text = format!("{} error(s) in {}", report.faults.len(), log.path().display());
            check("audit", State::Bad, text, Some("`ringwall audit verify` shows each line"))
        }
        Err(error) => check("audit", State::Bad, error.to_string(), None),
    }
}
