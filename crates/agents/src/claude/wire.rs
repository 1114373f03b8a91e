//! Claude Code's hook calls and answers, in exactly the shape it honours.

use std::path::PathBuf;

use model::{Decision, Event, EventKind, Mode, Reason, Redirect, ToolCall, Verdict};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agent::{DecodeError, Reply};

/// A model needs a few reasons, not hundreds.
const MOST_REASONS: usize = 8;

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    session_id: String,
    cwd: Option<PathBuf>,
    permission_mode: Option<String>,
    hook_event_name: Option<String>,
    tool_name: Option<String>,
    tool_input: Option<Value>,
    source: Option<String>,
    file_path: Option<PathBuf>,
}

pub(super) fn decode(bytes: &[u8]) -> Result<Event, DecodeError> {
    let malformed = |why: String| DecodeError::Malformed { agent: "Claude Code", why };
    let wire: Wire = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    let mode = match wire.permission_mode.as_deref() {
        Some("bypassPermissions" | "dontAsk") => Mode::NeverAsks,
        _ => Mode::Asks,
    };
    let name = match wire.hook_event_name {
        Some(name) => name,
        None if wire.tool_name.is_some() => "PreToolUse".to_owned(),
        None => return Err(malformed("`hook_event_name` is missing".into())),
    };
    let kind = match name.as_str() {
        "PreToolUse" => {
            let tool = wire.tool_name.filter(|tool| !tool.is_empty());
            let tool = tool.ok_or_else(|| malformed("`tool_name` is missing".into()))?;
            let Some(Value::Object(input)) = wire.tool_input else {
                return Err(malformed("`tool_input` is not an object".into()));
            };
            EventKind::BeforeTool(ToolCall { tool, input })
        }
        "SessionStart" | "SubagentStart" => EventKind::Started(name),
        // Skills are not settings: they never hold our hooks.
        "ConfigChange" if wire.source.as_deref() != Some("skills") => {
            EventKind::SettingsChanged(wire.file_path)
        }
        _ => EventKind::Other(name),
    };
    Ok(Event { session: wire.session_id, cwd: wire.cwd, mode, kind })
}

pub(super) fn encode(event: &Event, decision: &Decision, notices: &[String]) -> Reply {
    let mut answer = match &event.kind {
        EventKind::BeforeTool(call) => before_tool(call, decision),
        EventKind::SettingsChanged(_) => settings_changed(decision),
        EventKind::Started(_) | EventKind::Other(_) => Map::new(),
    };
    if !notices.is_empty() {
        answer.insert("systemMessage".into(), json!(format!("ringwall: {}", notices.join("; "))));
    }
    if answer.is_empty() {
        return Reply::default();
    }
    Reply { stdout: Value::Object(answer).to_string().into_bytes() }
}

/// Text that goes in front of the model.
pub(super) fn tell(event: &str, text: &str) -> Reply {
    let answer = json!({
        "hookSpecificOutput": { "hookEventName": event, "additionalContext": text }
    });
    Reply { stdout: answer.to_string().into_bytes() }
}

fn before_tool(call: &ToolCall, decision: &Decision) -> Map<String, Value> {
    let mut output = Map::new();
    match (decision.verdict(), decision.redirect()) {
        (Verdict::Allow, None) => return Map::new(),
        // Without "allow": the client's own permission rules judge the corrected call.
        (Verdict::Allow, Some(redirect)) => {
            let mut input = call.input.clone();
            input.insert(redirect.field.clone(), json!(redirect.value));
            output.insert("updatedInput".into(), Value::Object(input));
            output.insert("additionalContext".into(), json!(moved(redirect)));
        }
        (verdict @ (Verdict::Ask | Verdict::Deny), _) => {
            output.insert("permissionDecision".into(), json!(verdict.to_string()));
            output.insert("permissionDecisionReason".into(), json!(message(decision)));
        }
    }
    output.insert("hookEventName".into(), json!("PreToolUse"));
    Map::from_iter([("hookSpecificOutput".to_owned(), Value::Object(output))])
}

fn settings_changed(decision: &Decision) -> Map<String, Value> {
    match decision.verdict() {
        Verdict::Allow => Map::new(),
        Verdict::Ask | Verdict::Deny => Map::from_iter([
            ("decision".to_owned(), json!("block")),
            ("reason".to_owned(), json!(message(decision))),
        ]),
    }
}

/// What a corrected call moved where.
fn moved(redirect: &Redirect) -> String {
    let lines = redirect.moves.iter().map(|moved| format!("[ringwall] {moved}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The message for the agent: each deciding reason with its rule, its origin and the way out.
fn message(decision: &Decision) -> String {
    let mut sentences: Vec<String> = Vec::new();
    for reason in decision.deciding() {
        let sentence = sentence(reason);
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
        if sentences.len() == MOST_REASONS {
            sentences.push("ringwall: and more".into());
            break;
        }
    }
    sentences.join("\n")
}

fn sentence(reason: &Reason) -> String {
    let mut text = format!("ringwall: {} [rule {}, {}]", reason.text, reason.rule, reason.origin);
    if let Some(instead) = &reason.instead {
        text.push_str(". Instead: ");
        text.push_str(&instead.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use model::{Origin, Remedy, Rule};

    use super::*;

    fn call(input: &Value) -> Event {
        let line = json!({
            "session_id": "s", "cwd": "/p", "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": input,
        });
        decode(line.to_string().as_bytes()).unwrap()
    }

    fn reason(verdict: Verdict) -> Reason {
        let reason = Reason::deny(Rule::Workspace, Origin::BuiltIn, "no");
        Reason { verdict, ..reason.with(Remedy::advice("yes")) }
    }

    fn answered(event: &Event, decision: &Decision, notices: &[String]) -> Value {
        let reply = encode(event, decision, notices);
        if reply.stdout.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&reply.stdout).unwrap()
        }
    }

    #[test]
    fn an_allowed_call_is_answered_with_silence() {
        let event = call(&json!({"command": "ls"}));
        let decision = Decision::single(reason(Verdict::Allow));
        assert_eq!(answered(&event, &decision, &[]), Value::Null);
    }

    #[test]
    fn a_refusal_has_the_event_name_the_decision_and_the_way_out() {
        let event = call(&json!({"command": "ls"}));
        let answer = answered(&event, &Decision::single(reason(Verdict::Deny)), &[]);
        assert_eq!(
            answer,
            json!({"hookSpecificOutput": {
                "permissionDecision": "deny",
                "permissionDecisionReason": "ringwall: no [rule workspace, built in]. Instead: yes",
                "hookEventName": "PreToolUse",
            }})
        );
    }

    #[test]
    fn a_rewrite_echoes_the_whole_input() {
        let event = call(&json!({"command": "ls", "timeout": 5, "description": "d"}));
        let redirect =
            Redirect { field: "command".into(), value: "ls -l".into(), moves: Vec::new() };
        let decision = Decision::new(vec![reason(Verdict::Allow)], vec![], Some(redirect));
        let answer = answered(&event, &decision, &[]);
        assert_eq!(
            answer["hookSpecificOutput"]["updatedInput"],
            json!({"command": "ls -l", "timeout": 5, "description": "d"})
        );
    }

    #[test]
    fn notices_reach_the_user_without_deciding_anything() {
        let event = call(&json!({"command": "ls"}));
        let decision = Decision::single(reason(Verdict::Allow));
        let answer = answered(&event, &decision, &["the log is full".into()]);
        assert_eq!(answer, json!({"systemMessage": "ringwall: the log is full"}));
    }

    #[test]
    fn a_refused_settings_change_is_blocked() {
        let event = decode(
            br#"{"hook_event_name":"ConfigChange","source":"local_settings","file_path":"/p/x"}"#,
        )
        .unwrap();
        let answer = answered(&event, &Decision::single(reason(Verdict::Deny)), &[]);
        assert_eq!(answer["decision"], "block");
    }

    #[test]
    fn what_claude_code_never_sends_is_malformed() {
        for line in [
            "",
            "{",
            "[]",
            "null",
            "{}",
            r#"{"hook_event_name":"PreToolUse"}"#,
            r#"{"hook_event_name":"PreToolUse","tool_name":"","tool_input":{}}"#,
            r#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#,
            r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":[]}"#,
            r#"{"hook_event_name":"PreToolUse","tool_name":["Bash"],"tool_input":{}}"#,
            r#"{"tool_name":"Bash"}"#,
            r#"{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"\ud800"}}"#,
        ] {
            assert!(decode(line.as_bytes()).is_err(), "{line}");
        }
    }
}
