//! What the values in an agent's settings mean for its hooks.
//!
//! Owns what settings may say; which files count and what becomes of a change is
//! `evaluate/settings.rs`.

use model::{SettingsRules, Shape};
use serde_json::{Map, Value};

/// The variables that decide where we find our configuration and state, or what a program really
/// runs, whichever agent sets them.
const LOCATION_VARIABLES: &[&str] = &[
    "HOME",
    "PATH",
    "XDG_*",
    "RINGWALL_*",
    "CONTENT_FILTER_*",
    "LD_*",
    "DYLD_*",
    "BASH_ENV",
    "ENV",
    "NODE_OPTIONS",
    "TMPDIR",
];

/// Why an agent with these settings calls no hooks, or others than they say.
pub fn hooks_off(rules: &SettingsRules, settings: &Value) -> Option<String> {
    let off = rules.off_switches.iter().find(|switch| {
        settings.pointer(switch.pointer).is_some_and(|value| *value != Value::Bool(switch.on))
    });
    if let Some(switch) = off {
        let key = switch.pointer.trim_start_matches('/').replace('/', ".");
        return Some(format!("`{key}` switches hooks off"));
    }
    let (name, _) = variables(settings).find(|(name, _)| any(rules.off_variables, name))?;
    Some(format!("`env.{name}` switches hooks off"))
}

/// The first variable that changes which files or programs our hook uses, unless `accepted` sets it
/// to the same value.
pub fn relocates_hook<'a>(
    rules: &SettingsRules,
    settings: &'a Value,
    accepted: &Value,
) -> Option<&'a str> {
    let known = |name: &str, value: &Value| {
        accepted.get("env").and_then(|env| env.get(name)).is_some_and(|known| known == value)
    };
    let mut moving = variables(settings)
        .filter(|(name, _)| any(LOCATION_VARIABLES, name) || any(rules.location_variables, name));
    moving.find(|(name, value)| !known(name, value)).map(|(name, _)| name.as_str())
}

/// The first key whose value the agent cannot use. The agent then ignores the whole file.
pub fn wrong_shape<'a>(rules: &SettingsRules, settings: &'a Value) -> Option<&'a str> {
    first(rules, settings, &Value::Null, |fit| fit == Fit::Wrong)
}

/// The first key of which it cannot be said that the agent takes it: it is neither as in `accepted`
/// nor of a shape that is known here.
pub(crate) fn unproven_shape<'a>(
    rules: &SettingsRules,
    settings: &'a Value,
    accepted: &Value,
) -> Option<&'a str> {
    first(rules, settings, accepted, |fit| fit != Fit::Right)
}

fn first<'a>(
    rules: &SettingsRules,
    settings: &'a Value,
    accepted: &Value,
    wanted: impl Fn(Fit) -> bool,
) -> Option<&'a str> {
    let Value::Object(fields) = settings else { return Some("the whole file") };
    let misfit = fields.iter().find(|(key, value)| {
        let shape = rules.shapes.iter().find(|(name, _)| name == key).map(|(_, shape)| *shape);
        wanted(fit(shape, value, accepted.get(key)))
    });
    misfit.map(|(key, _)| key.as_str())
}

/// Whether the agent can use a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Right,
    Unproven,
    Wrong,
}

fn fit(shape: Option<Shape>, value: &Value, accepted: Option<&Value>) -> Fit {
    if accepted == Some(value) {
        return Fit::Right;
    }
    match (shape, value) {
        (None, _) => Fit::Unproven,
        (Some(Shape::Text), Value::String(_)) | (Some(Shape::Switch), Value::Bool(_)) => Fit::Right,
        (Some(Shape::Variables), Value::Object(fields)) => right_if(fields.values().all(is_plain)),
        (Some(Shape::Lists(names)), Value::Object(fields)) => lists(names, fields, accepted),
        (Some(Shape::Hooks), Value::Object(events)) => hooks(events, accepted),
        _ => Fit::Wrong,
    }
}

fn right_if(right: bool) -> Fit {
    if right { Fit::Right } else { Fit::Wrong }
}

fn lists(names: &[&str], fields: &Map<String, Value>, accepted: Option<&Value>) -> Fit {
    let each = fields.iter().map(|(key, value)| {
        if names.contains(&key.as_str()) {
            right_if(is_texts(value))
        } else if accepted.and_then(|accepted| accepted.get(key)) == Some(value) {
            Fit::Right
        } else {
            Fit::Unproven
        }
    });
    each.max().unwrap_or(Fit::Right)
}

fn hooks(events: &Map<String, Value>, accepted: Option<&Value>) -> Fit {
    let each = events.iter().map(|(event, groups)| {
        let accepted = accepted.and_then(|accepted| accepted.get(event)).and_then(Value::as_array);
        let Some(groups) = groups.as_array() else { return Fit::Wrong };
        groups.iter().map(|group| hook_group(group, accepted)).max().unwrap_or(Fit::Right)
    });
    each.max().unwrap_or(Fit::Right)
}

fn hook_group(group: &Value, accepted: Option<&Vec<Value>>) -> Fit {
    if accepted.is_some_and(|groups| groups.contains(group)) {
        return Fit::Right;
    }
    let Some(fields) = group.as_object() else { return Fit::Wrong };
    let Some(entries) = fields.get("hooks").and_then(Value::as_array) else { return Fit::Wrong };
    if fields.get("matcher").is_some_and(|matcher| !matcher.is_string()) {
        return Fit::Wrong;
    }
    let known = fields.keys().all(|key| key == "matcher" || key == "hooks");
    if known && entries.iter().all(is_command) { Fit::Right } else { Fit::Unproven }
}

/// A hook of the plainest kind.
fn is_command(entry: &Value) -> bool {
    let Some(fields) = entry.as_object() else { return false };
    let fits = |(key, value): (&String, &Value)| match key.as_str() {
        "type" => value == "command",
        "command" => value.is_string(),
        "args" => is_texts(value),
        "timeout" => value.as_u64().is_some_and(|seconds| seconds > 0),
        "onFailure" => value == "block" || value == "continue",
        _ => false,
    };
    fields.contains_key("type") && fields.contains_key("command") && fields.iter().all(fits)
}

fn is_plain(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

fn variables(settings: &Value) -> impl Iterator<Item = (&String, &Value)> {
    settings.get("env").and_then(Value::as_object).into_iter().flatten()
}

fn any(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => *pattern == name,
    })
}

#[cfg(test)]
mod tests {
    use model::OffSwitch;
    use serde_json::json;

    use super::*;

    const RULES: SettingsRules = SettingsRules {
        off_switches: &[OffSwitch { pointer: "/disableAllHooks", on: false }],
        off_variables: &["BARE", "SHELL_*"],
        location_variables: &["AGENT_DIR"],
        shapes: &[
            ("model", Shape::Text),
            ("verbose", Shape::Switch),
            ("env", Shape::Variables),
            ("permissions", Shape::Lists(&["allow", "deny"])),
            ("hooks", Shape::Hooks),
        ],
    };

    #[test]
    fn keys_and_variables_switch_hooks_off() {
        for off in [
            json!({"disableAllHooks": true}),
            json!({"disableAllHooks": "no"}),
            json!({"env": {"BARE": "1"}}),
            json!({"env": {"SHELL_PREFIX": "/bin/true"}}),
        ] {
            assert!(hooks_off(&RULES, &off).is_some(), "{off}");
        }
        for on in [json!({}), json!({"disableAllHooks": false}), json!({"env": {"BARELY": "1"}})] {
            assert_eq!(hooks_off(&RULES, &on), None, "{on}");
        }
    }

    #[test]
    fn variables_that_move_the_ground_are_seen_unless_the_user_had_them() {
        for name in
            ["HOME", "XDG_STATE_HOME", "CONTENT_FILTER_SANDBOX_DIR", "LD_PRELOAD", "AGENT_DIR"]
        {
            let settings = json!({"env": {"EDITOR": "vi", name: "/x"}});
            assert_eq!(relocates_hook(&RULES, &settings, &Value::Null), Some(name));
            assert_eq!(relocates_hook(&RULES, &settings, &settings), None);
            let other = json!({"env": {name: "/y"}});
            assert_eq!(relocates_hook(&RULES, &settings, &other), Some(name));
        }
        assert_eq!(relocates_hook(&RULES, &json!({"env": {"HOMER": "x"}}), &Value::Null), None);
    }

    #[test]
    fn what_the_agent_cannot_use_is_wrong() {
        for (key, value) in [
            ("model", json!(5)),
            ("verbose", json!("yes")),
            ("env", json!([])),
            ("env", json!({"A": {}})),
            ("permissions", json!({"allow": "Bash"})),
            ("permissions", json!({"allow": [5]})),
            ("hooks", json!([])),
            ("hooks", json!({"PreToolUse": {}})),
            ("hooks", json!({"PreToolUse": [{"matcher": "*"}]})),
            ("hooks", json!({"PreToolUse": [{"matcher": 5, "hooks": []}]})),
        ] {
            let settings = json!({key: value});
            assert_eq!(wrong_shape(&RULES, &settings), Some(key), "{settings}");
        }
        assert!(wrong_shape(&RULES, &json!([])).is_some());
        let fine = json!({"model": "x", "permissions": {"allow": ["Bash"], "mode": "plan"},
                          "unheard": 5, "env": {"A": 5}});
        assert_eq!(wrong_shape(&RULES, &fine), None);
    }

    #[test]
    fn what_is_neither_known_nor_as_it_was_is_unproven() {
        let plain = json!({"type": "command", "command": "x", "timeout": 5});
        let odd = json!({"type": "agent", "prompt": "x"});
        let group = |entry: &Value| json!({"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]});
        for (key, value) in [
            ("sandbox", json!({"network": 5})),
            ("permissions", json!({"mode": "plan"})),
            ("hooks", group(&odd)),
            ("hooks", group(&json!({"type": "command"}))),
            ("hooks", group(&json!({"type": "command", "command": "x", "timeout": "5"}))),
        ] {
            let settings = json!({key: value});
            assert_eq!(unproven_shape(&RULES, &settings, &Value::Null), Some(key), "{settings}");
            assert_eq!(unproven_shape(&RULES, &settings, &settings), None, "{settings}");
        }
        let accepted = json!({"hooks": group(&odd)});
        let added = json!({"model": "x", "hooks": {
            "PreToolUse": [accepted["hooks"]["PreToolUse"][0], {"hooks": [plain]}], "Stop": [],
        }});
        assert_eq!(unproven_shape(&RULES, &added, &accepted), None);
    }
}
