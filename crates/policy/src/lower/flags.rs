//! The off-switch: input fields with which a call asks to leave the agent's own sandbox.

use model::Action;
use serde_json::{Map, Value};

/// Words that, next to `sandbox` in a field's name, mean "outside it" when the field is truthy.
/// Names are compared without case, `_` and `-`.
const AWAY: &[&str] = &[
    "bypass",
    "danger",
    "disable",
    "escape",
    "exit",
    "ignore",
    "leave",
    "nosandbox",
    "outside",
    "sandboxoff",
    "skip",
    "unsandbox",
    "without",
];
/// Other agents' names for the same, which do not mention a sandbox.
const LEAVE: &[&str] = &[
    "dangerouslyskippermissions",
    "escalatedpermissions",
    "requireescalated",
    "runescalated",
    "withescalatedpermissions",
];

/// Field names that hold the sandbox's own setting, and the values that switch it off. Only with a
/// tool that runs commands: elsewhere `sandbox: false` chooses a payment provider's live account.
const SETTING: &[&str] =
    &["sandbox", "sandboxed", "sandboxenabled", "sandboxmode", "sandboxpermissions", "usesandbox"];
const OFF: &[&str] = &[
    "bypass",
    "dangerfullaccess",
    "disabled",
    "escalated",
    "false",
    "full",
    "0",
    "no",
    "none",
    "off",
    "requireescalated",
    "unsandboxed",
    "withescalatedpermissions",
];

/// What kind of tool the input is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    /// One that runs commands.
    Shell,
    /// Any other.
    Other,
}

/// The fields of this input that ask to leave the sandbox, at any depth.
pub(super) fn leave_sandbox(input: &Map<String, Value>, asker: Asker) -> Vec<Action> {
    let mut found = Vec::new();
    visit(input, asker, &mut found);
    found
}

fn visit(object: &Map<String, Value>, asker: Asker, found: &mut Vec<Action>) {
    for (key, value) in object {
        let name = squash(key);
        let away = name.contains("sandbox") && AWAY.iter().any(|word| name.contains(word));
        let leaves = (away || LEAVE.contains(&name.as_str())) && is_truthy(value);
        let setting = asker == Asker::Shell && SETTING.contains(&name.as_str());
        if leaves || (setting && switches_off(value)) {
            found.push(Action::LeaveSandbox { field: key.clone() });
        }
        visit_value(value, asker, found);
    }
}

fn visit_value(value: &Value, asker: Asker, found: &mut Vec<Action>) {
    match value {
        Value::Object(inner) => visit(inner, asker, found),
        Value::Array(items) => items.iter().for_each(|item| visit_value(item, asker, found)),
        _ => {}
    }
}

/// Anything but a clear "no" counts as "yes".
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !matches!(squash(text).as_str(), "" | "false" | "0" | "no" | "off"),
        Value::Array(_) | Value::Object(_) => true,
    }
}

fn switches_off(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => OFF.contains(&squash(text).as_str()),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn squash(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn leaves(input: &Value) -> bool {
        asks(input, Asker::Shell)
    }

    fn asks(input: &Value, asker: Asker) -> bool {
        !leave_sandbox(input.as_object().unwrap(), asker).is_empty()
    }

    #[test]
    fn every_truthy_spelling_of_the_switch_is_seen() {
        for input in [
            json!({"dangerouslyDisableSandbox": true}),
            json!({"dangerouslyDisableSandbox": "true"}),
            json!({"dangerouslyDisableSandbox": " True "}),
            json!({"dangerouslyDisableSandbox": 1}),
            json!({"dangerouslyDisableSandbox": "yes"}),
            json!({"dangerouslyDisableSandbox": {}}),
            json!({"dangerously_disable_sandbox": true}),
            json!({"DANGEROUSLY-DISABLE-SANDBOX": true}),
            json!({"bypassSandbox": true}),
            json!({"sandbox_bypass": true}),
            json!({"sandboxDisabled": "1"}),
            json!({"runOutsideSandbox": true}),
            json!({"unsandboxed": true}),
            json!({"with_escalated_permissions": true}),
            json!({"sandbox_permissions": "require_escalated"}),
            json!({"sandbox": false}),
            json!({"sandbox": "off"}),
            json!({"sandboxMode": "danger-full-access"}),
            json!({"options": {"dangerouslyDisableSandbox": true}}),
            json!({"calls": [{"dangerouslyDisableSandbox": true}]}),
        ] {
            assert!(leaves(&input), "{input}");
        }
    }

    #[test]
    fn a_clear_no_is_no() {
        for input in [
            json!({"dangerouslyDisableSandbox": false}),
            json!({"dangerouslyDisableSandbox": "false"}),
            json!({"dangerouslyDisableSandbox": 0}),
            json!({"dangerouslyDisableSandbox": null}),
            json!({"dangerouslyDisableSandbox": ""}),
            json!({"sandbox": true}),
            json!({"sandbox_permissions": "use_default"}),
            json!({"command": "echo dangerouslyDisableSandbox"}),
        ] {
            assert!(!leaves(&input), "{input}");
        }
    }

    #[test]
    fn a_setting_called_sandbox_counts_only_where_commands_run() {
        for input in [json!({"sandbox": false}), json!({"options": {"sandbox_mode": "off"}})] {
            assert!(asks(&input, Asker::Shell), "{input}");
            assert!(!asks(&input, Asker::Other), "{input}");
        }
        for input in [json!({"bypassSandbox": true}), json!({"with_escalated_permissions": 1})] {
            assert!(asks(&input, Asker::Other), "{input}");
        }
    }
}
