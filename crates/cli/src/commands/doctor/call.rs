//! Calls an installed hook as its agent would.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use agents::{Form, HookCommand};
use model::{Record, Verdict};
use serde_json::{Value, json};

use super::{Check, State, check};
use crate::child;
use crate::pipeline;
use crate::setup::{Options, Setup};

/// The hook's own deadline is far shorter, the agent's is far longer.
const LIMIT: Duration = Duration::from_secs(5);

/// One call that must be denied for its flag, one that must be allowed, and one that must be denied
/// for its path.
pub(super) fn try_out(setup: &Setup, path: &Path, event: &str, hook: &HookCommand) -> Vec<Check> {
    let place = format!("{event} in {}", path.display());
    let session = announce(setup);
    let outside = outside(setup, hook, &session);
    let (state, text) = match outcome(setup, hook, outside.as_ref(), &session) {
        Ok(()) => (State::Good, "denies what it must deny, allows a harmless call".to_owned()),
        Err(why) => (State::Bad, why),
    };
    let name = setup.agent.name;
    let remedy = format!("ringwall install {name}");
    let remedy = (state == State::Bad).then_some(remedy.as_str());
    let mut checks = vec![check(name, state, format!("{place}: {text}"), remedy)];
    if outside.is_none() {
        let text = format!(
            "{place}: a denied read was not tried, because the policy allows reading everywhere"
        );
        checks.push(check(name, State::Note, text, None));
    }
    checks
}

/// Starts a session in the audit log, so that the calls below can be distinguished from an agent's.
/// Only this process can know the session's name, so no call of an agent can pass for one of these.
fn announce(setup: &Setup) -> String {
    let now = SystemTime::now();
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let session = format!("{}-{:x}-{:x}", super::AGENT, since.as_nanos(), std::process::id());
    let record = Record {
        time: humantime::format_rfc3339_millis(now).to_string(),
        agent: super::AGENT.into(),
        session: session.clone(),
        workspace: setup.context.workspace.to_string(),
        tool: "doctor".into(),
        actions: Vec::new(),
        verdict: Verdict::Allow,
        rules: Vec::new(),
        config: setup.loaded.fingerprint.clone(),
        micros: 0,
        notes: vec![format!("tests the hook of {}", setup.agent.title)],
    };
    // A log that cannot be written is reported by a check of its own.
    let _ = audit::Log::at(setup.places.audit_dir()).append(&record);
    session
}

fn outcome(
    setup: &Setup,
    hook: &HookCommand,
    outside: Option<&Value>,
    session: &str,
) -> Result<(), String> {
    let allowed = "allowed a call that must be denied";
    let leaving = json!({"command": "true", "dangerouslyDisableSandbox": true});
    if answer(hook, setup, &call(setup, "Bash", &leaving, session))? != Verdict::Deny {
        return Err(allowed.into());
    }
    let harmless = json!({"command": "true"});
    if answer(hook, setup, &call(setup, "Bash", &harmless, session))? != Verdict::Allow {
        return Err("denied a harmless call".into());
    }
    match outside {
        Some(outside) if answer(hook, setup, outside)? != Verdict::Deny => {
            Err(format!("{allowed}: a read outside the workspace"))
        }
        _ => Ok(()),
    }
}

/// A call that reads what this hook's policy denies, if there is such a path.
fn outside(setup: &Setup, hook: &HookCommand, session: &str) -> Option<Value> {
    let workspace = setup.context.workspace.as_path();
    let phase = hook.phase_args().last().map(|arg| arg.trim_start_matches("--phase=").to_owned());
    let options = Options { workspace: Some(workspace.into()), phase, ..Options::default() };
    let in_force = Setup::prepare(setup.agent, &options, session).ok()?;
    // No one can have prepared for this name.
    let name = format!("ringwall-doctor-{}", std::process::id());
    let dirs = [workspace.parent()?, setup.places.home.as_path(), Path::new("/")];
    let mut calls = dirs
        .into_iter()
        .map(|dir| call(setup, "Read", &json!({"file_path": dir.join(&name)}), session));
    calls.find(|call| {
        let event = (setup.agent.decode)(call.to_string().as_bytes());
        event.is_ok_and(|event| {
            pipeline::judge(&in_force, &event).decision.verdict() == Verdict::Deny
        })
    })
}

fn call(setup: &Setup, tool: &str, input: &Value, session: &str) -> Value {
    json!({
        "session_id": session,
        "cwd": setup.context.workspace.as_path(),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": input,
    })
}

fn answer(hook: &HookCommand, setup: &Setup, call: &Value) -> Result<Verdict, String> {
    let workspace = setup.context.workspace.as_path();
    let mut command = match hook.form {
        Form::Exec => {
            let mut command = Command::new(&hook.program);
            command.args(&hook.args);
            command
        }
        Form::Shell => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(hook.line());
            command
        }
    };
    command.current_dir(workspace).env(setup.agent.project_dir_variable, workspace);
    let ended = child::run(&mut command, call.to_string().as_bytes(), LIMIT)
        .map_err(|error| format!("cannot call the hook: {error}"))?;
    verdict(ended.status.code(), &ended.stdout).ok_or_else(|| {
        format!("the hook gave no valid answer: {}", String::from_utf8_lossy(&ended.stderr).trim())
    })
}

/// What the agent would do with an answer.
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
