//! Changes to the agent's own settings while it runs: none may switch our hook off.

use std::path::Path;

use model::{Facts, FileText, Origin, Reason, Verdict};
use serde_json::Value;

use super::allow;
use crate::Ground;

pub(super) fn judge(ground: &Ground, path: &Path, facts: &Facts) -> Reason {
    let hooked = ground.hooked.iter().find(|hooked| hooked.path == path);
    let value = match facts.text(path) {
        FileText::Missing if hooked.is_none() => {
            return allow("settings", "a settings file without our hook was removed");
        }
        FileText::Missing => return refuse(path, "it was removed, and our hook with it"),
        FileText::Unreadable(why) => return refuse(path, &format!("it cannot be read: {why}")),
        FileText::Text(text) => match serde_json::from_str::<Value>(&text) {
            Ok(value) => value,
            Err(error) => return refuse(path, &format!("it is no valid JSON: {error}")),
        },
    };
    let off = ground.off_switches.iter().find(|switch| {
        value.pointer(switch.pointer).is_some_and(|value| *value != Value::Bool(switch.on))
    });
    if let Some(switch) = off {
        let key = switch.pointer.trim_start_matches('/').replace('/', ".");
        return refuse(path, &format!("`{key}` would switch hooks off"));
    }
    match hooked {
        Some(hooked) if !value.get("hooks").is_some_and(|hooks| holds(hooks, &hooked.command)) => {
            refuse(path, "it no longer calls our hook")
        }
        _ => allow("settings", "the change leaves our hook in place"),
    }
}

/// Whether a text stands anywhere in a value.
fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found == text,
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(fields) => fields.values().any(|field| holds(field, text)),
        _ => false,
    }
}

fn refuse(path: &Path, why: &str) -> Reason {
    Reason {
        verdict: Verdict::Deny,
        rule: "settings".into(),
        origin: Origin::BuiltIn,
        text: format!("the change to {} is refused: {why}", path.display()),
        instead: Some("only the user can change it, while no agent runs".into()),
    }
}
