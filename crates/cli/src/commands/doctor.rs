//! `ringwall doctor`: proves what is claimed, by trying it.
//!
//! Every installed hook is called exactly as its agent would call it, with a call that must be
//! refused and one that must pass.

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use agents::{Agent, Form, HookCommand};
use audit::Log;
use model::{FileText, Verdict};
use serde::Serialize;
use serde_json::{Value, json};

use super::{install::version_of, setup_failed};
use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::setup::{Options, Setup, settings_files};
use crate::terminal::{self, Paint};

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
        checks.extend(hooks(&setup));
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
        rows.push(vec![terminal::paint(mark, colour), check.name.clone(), check.text.clone()]);
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
    warnings.extend(config::check(&setup.loaded.policy, &setup.ground.workspace));
    for warning in warnings {
        checks.push(check("configuration", State::Note, warning.to_string(), None));
    }
    for line in &setup.loaded.ignored {
        let remedy = Some("look at it, then run `ringwall trust`");
        checks.push(check("trust", State::Note, format!("ignored: {line}"), remedy));
    }
    checks.push(match &setup.ground.unfit {
        None => check("workspace", State::Good, setup.ground.workspace.to_string(), None),
        Some(why) => {
            check("workspace", State::Bad, why.clone(), Some("start in a project directory"))
        }
    });
    checks.push(binary(setup));
    checks.push(quarantine(setup));
    checks.push(log(setup));
    checks
}

/// Nothing that decides may lie where an agent can write.
fn binary(setup: &Setup) -> Check {
    match std::env::current_exe() {
        Ok(path) if path.starts_with(setup.ground.workspace.as_path()) => check(
            "binary",
            State::Note,
            format!("{} lies in the workspace, where commands can overwrite it", path.display()),
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
            "off: no directory is set, so downloads are not redirected",
            Some("set quarantine.dir to switch it on"),
        ),
    }
}

fn log(setup: &Setup) -> Check {
    let log = Log::at(setup.places.audit_dir());
    match log.verify(None) {
        Ok(report) if report.faults.is_empty() => {
            let text = format!("{} records in {}, sound", report.records, log.path().display());
            check("audit", State::Good, text, None)
        }
        Ok(report) => {
            let text = format!("{} fault(s) in {}", report.faults.len(), log.path().display());
            check("audit", State::Bad, text, Some("`ringwall audit verify` names each line"))
        }
        Err(error) => check("audit", State::Bad, error.to_string(), None),
    }
}

/// Every settings file of one agent: switches, and each hook entry by calling it.
fn hooks(setup: &Setup) -> Vec<Check> {
    let agent = setup.agent;
    let version = version_of(agent);
    let mut checks = vec![match &version {
        Some((version, _)) => check(agent.name, State::Good, format!("version {version}"), None),
        None => check(agent.name, State::Note, format!("`{}` is not on PATH", agent.program), None),
    }];
    let mut entries = 0;
    for path in settings_files(agent, &setup.places, setup.ground.workspace.as_path()) {
        let text = match facts::read_small(&path) {
            FileText::Text(text) => text,
            FileText::Missing => continue,
            FileText::Unreadable(why) => {
                let text = format!("{}: {why}", path.display());
                checks.push(check(agent.name, State::Bad, text, None));
                continue;
            }
        };
        checks.extend(switches(agent, &path, &text));
        match agents::installed(agent, &text) {
            Ok(found) => {
                for (event, hook) in found.iter().filter(|(event, _)| event == "PreToolUse") {
                    entries += 1;
                    checks.push(call(setup, &path, event, hook));
                }
            }
            Err(error) => {
                let text = format!("{}: {error}", path.display());
                checks.push(check(agent.name, State::Bad, text, None));
            }
        }
    }
    if entries == 0 {
        let remedy = format!("ringwall install {}", agent.name);
        // An agent that is not there needs no hook.
        let state = if version.is_some() { State::Bad } else { State::Note };
        checks.push(check(agent.name, state, "the hook is not installed", Some(&remedy)));
    }
    checks
}

fn switches(agent: &Agent, path: &Path, text: &str) -> Vec<Check> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let off = agent.off_switches.iter().filter(|switch| {
        value.pointer(switch.pointer).is_some_and(|value| *value != Value::Bool(switch.on))
    });
    let bad = |switch: &model::OffSwitch| {
        let key = switch.pointer.trim_start_matches('/');
        let text = format!("`{key}` in {} switches hooks off", path.display());
        check(agent.name, State::Bad, text, Some("remove that key"))
    };
    off.map(bad).collect()
}

/// Calls a hook entry as the agent would: one call that must be refused, one that must pass.
fn call(setup: &Setup, path: &Path, event: &str, hook: &HookCommand) -> Check {
    let place = format!("{event} in {}", path.display());
    let forbidden = json!({"command": "true", "dangerouslyDisableSandbox": true});
    let harmless = json!({"command": "true"});
    let outcome = answer(setup, hook, &forbidden)
        .and_then(|refused| answer(setup, hook, &harmless).map(|allowed| (refused, allowed)));
    let remedy = format!("ringwall install {}", setup.agent.name);
    let (state, text) = match outcome {
        Ok((Verdict::Deny, Verdict::Allow)) => {
            (State::Good, format!("{place}: refuses what it must, passes what it may"))
        }
        Ok((Verdict::Deny, _)) => (State::Bad, format!("{place}: refuses a harmless call")),
        Ok(_) => (State::Bad, format!("{place}: let a call pass that must be refused")),
        Err(why) => (State::Bad, format!("{place}: {why}")),
    };
    check(setup.agent.name, state, text, (state == State::Bad).then_some(remedy.as_str()))
}

fn answer(setup: &Setup, hook: &HookCommand, input: &Value) -> Result<Verdict, String> {
    let workspace = setup.ground.workspace.as_path();
    let call = json!({
        "session_id": "doctor",
        "cwd": workspace,
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": input,
    });
    let mut command = match hook.form {
        Form::Exec => {
            let mut command = Command::new(&hook.program);
            command.args(&hook.args);
            command
        }
        Form::Shell => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(&hook.program);
            command
        }
    };
    let mut child = command
        .current_dir(workspace)
        .env(setup.agent.project_dir_variable, workspace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(call.to_string().as_bytes()).map_err(|error| error.to_string())?;
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    verdict(output.status.code(), &output.stdout).ok_or_else(|| {
        format!("it answered nothing usable: {}", String::from_utf8_lossy(&output.stderr).trim())
    })
}

/// What the client would make of an answer.
fn verdict(code: Option<i32>, stdout: &[u8]) -> Option<Verdict> {
    match (code, stdout) {
        (Some(2), _) => Some(Verdict::Deny),
        (Some(0), b"") => Some(Verdict::Allow),
        (Some(0), answer) => {
            let answer: Value = serde_json::from_slice(answer).ok()?;
            match answer.pointer("/hookSpecificOutput/permissionDecision").and_then(Value::as_str) {
                None => Some(Verdict::Allow),
                Some("deny") => Some(Verdict::Deny),
                Some("ask") => Some(Verdict::Ask),
                Some(_) => None,
            }
        }
        _ => None,
    }
}
