//! Edits of an agent's JSON settings: our hook in or out, everything else byte for byte as it was.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

use crate::agent::{Agent, Form, HookCommand};

/// Seconds that the client waits for our hook. Our own deadline is far below.
const CLIENT_TIMEOUT: &str = "10";

/// Why settings cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file is no JSON.
    #[error("the settings are not valid JSON: {0}")]
    Broken(String),
    /// A key holds something else than this agent would put there.
    #[error("`{0}` in the settings is not what the agent expects there")]
    Shape(String),
}

/// The settings with our hook in them. Text of a file that does not exist yet: `""`.
pub fn install(agent: &Agent, text: &str, hook: &HookCommand) -> Result<String, EditError> {
    // A second install replaces the first.
    let text = uninstall(agent, text)?.unwrap_or_else(|| text.to_owned());
    let text = if text.trim().is_empty() { "{}\n" } else { &text };
    let root = parse(text)?;
    let settings = object(root.object_value_or_create(), "settings")?;
    let hooks = object(settings.object_value_or_create("hooks"), "hooks")?;
    for (event, matcher) in agent.hook_events {
        let groups = hooks.array_value_or_create(event);
        let groups = groups.ok_or_else(|| EditError::Shape(format!("hooks.{event}")))?;
        groups.ensure_multiline();
        groups.append(group(hook, *matcher));
    }
    Ok(root.to_string())
}

/// The settings without our hook, or `None` where it was not in them.
pub fn uninstall(agent: &Agent, text: &str) -> Result<Option<String>, EditError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let root = parse(text)?;
    let Some(settings) = root.object_value() else { return Ok(None) };
    let Some(hooks) = settings.object_value("hooks") else { return Ok(None) };
    let mut removed = false;
    for (event, _) in agent.hook_events {
        let Some(groups) = hooks.array_value(event) else { continue };
        for group in groups.elements() {
            let entries = group.as_object().and_then(|group| group.array_value("hooks"));
            let Some(entries) = entries else { continue };
            for entry in entries.elements() {
                if entry.to_serde_value().is_some_and(|entry| is_ours(agent, &entry)) {
                    entry.remove();
                    removed = true;
                }
            }
            if removed && entries.elements().is_empty() {
                group.remove();
            }
        }
        if removed
            && groups.elements().is_empty()
            && let Some(property) = hooks.get(event)
        {
            property.remove();
        }
    }
    if removed
        && hooks.properties().is_empty()
        && let Some(property) = settings.get("hooks")
    {
        property.remove();
    }
    Ok(removed.then(|| root.to_string()))
}

/// Our hook entries in the settings: the event each stands under, and how it is started.
pub fn installed(agent: &Agent, text: &str) -> Result<Vec<(String, HookCommand)>, EditError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let value = parse(text)?.to_serde_value().unwrap_or_default();
    let mut found = Vec::new();
    let events = value.get("hooks").and_then(Value::as_object);
    for (event, groups) in events.into_iter().flatten() {
        let entries = groups.as_array().into_iter().flatten();
        let entries = entries.filter_map(|group| group.get("hooks")?.as_array()).flatten();
        for entry in entries.filter(|entry| is_ours(agent, entry)) {
            found.push((event.clone(), started_by(entry)));
        }
    }
    Ok(found)
}

fn started_by(entry: &Value) -> HookCommand {
    let program = entry.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
    match entry.get("args").and_then(Value::as_array) {
        Some(args) => {
            let args = args.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            HookCommand { program, args, form: Form::Exec }
        }
        None => HookCommand { program, args: Vec::new(), form: Form::Shell },
    }
}

/// Whether a hook entry starts Ringwall for this agent, wherever the binary is.
fn is_ours(agent: &Agent, entry: &Value) -> bool {
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    match entry.get("args").and_then(Value::as_array) {
        Some(args) => {
            let binary = command.rsplit('/').next().unwrap_or(command);
            let args: Vec<_> = args.iter().filter_map(Value::as_str).collect();
            binary.starts_with("ringwall") && args.starts_with(&["hook", agent.name])
        }
        None => {
            let wanted = format!(" hook {}", agent.name);
            let ends = command.ends_with(&wanted) || command.contains(&format!("{wanted} "));
            ends && command.contains("ringwall")
        }
    }
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| EditError::Broken(error.to_string()))
}

fn object(found: Option<CstObject>, key: &str) -> Result<CstObject, EditError> {
    found.ok_or_else(|| EditError::Shape(key.into()))
}

/// One matcher group with one hook entry.
fn group(hook: &HookCommand, matcher: Option<&str>) -> CstInputValue {
    let text = |text: &str| CstInputValue::String(text.to_owned());
    let mut entry =
        vec![("type".into(), text("command")), ("command".into(), text(&hook.command_field()))];
    if hook.form == Form::Exec {
        let args = hook.args.iter().map(|arg| text(arg)).collect();
        entry.push(("args".into(), CstInputValue::Array(args)));
    }
    entry.push(("timeout".into(), CstInputValue::Number(CLIENT_TIMEOUT.into())));
    // Versions that do not know this key ignore it; the others block when our hook cannot answer.
    entry.push(("onFailure".into(), text("block")));
    let mut group = Vec::new();
    if let Some(matcher) = matcher {
        group.push(("matcher".into(), text(matcher)));
    }
    group.push(("hooks".into(), CstInputValue::Array(vec![CstInputValue::Object(entry)])));
    CstInputValue::Object(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALL;

    fn hook(form: Form) -> HookCommand {
        let args = vec!["hook".into(), "claude".into()];
        HookCommand { program: "/opt/my tools/ringwall".into(), args, form }
    }

    const TEXTS: [&str; 6] = [
        "",
        "{}\n",
        "{\n  \"model\": \"x\"\n}\n",
        "{\n  // mine\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"/bin/true\"}]}\n    ]\n  },\n  \"z\": [1,2,  3]\n}\n",
        "{\"hooks\":{\"Stop\":[]},\"a\":{\"b\":null}}",
        "{\n\t\"hooks\": {}\n}",
    ];

    #[test]
    fn installing_keeps_everything_else() {
        for text in TEXTS {
            for form in [Form::Exec, Form::Shell] {
                let edited = install(ALL[0], text, &hook(form)).unwrap();
                let found = installed(ALL[0], &edited).unwrap();
                let events: Vec<_> = found.iter().map(|(event, _)| event.as_str()).collect();
                assert_eq!(events.len(), ALL[0].hook_events.len(), "{edited}");
                assert!(events.contains(&"PreToolUse"));
                for line in
                    text.lines().filter(|line| line.contains("mine") || line.contains("/bin/true"))
                {
                    assert!(edited.contains(line.trim_end_matches(',')), "{line} in {edited}");
                }
            }
        }
    }

    #[test]
    fn installing_twice_is_installing_once() {
        for text in TEXTS {
            let once = install(ALL[0], text, &hook(Form::Exec)).unwrap();
            let twice = install(ALL[0], &once, &hook(Form::Exec)).unwrap();
            assert_eq!(installed(ALL[0], &twice).unwrap().len(), ALL[0].hook_events.len());
        }
    }

    #[test]
    fn uninstalling_takes_out_only_ours() {
        for text in TEXTS {
            let edited = install(ALL[0], text, &hook(Form::Shell)).unwrap();
            let back = uninstall(ALL[0], &edited).unwrap().unwrap();
            assert_eq!(installed(ALL[0], &back).unwrap(), vec![]);
            let meaning = |text: &str| {
                let mut value = if text.is_empty() {
                    serde_json::json!({})
                } else {
                    parse(text).unwrap().to_serde_value().unwrap()
                };
                // An empty table of hooks means the same as none.
                if value["hooks"] == serde_json::json!({}) {
                    value.as_object_mut().unwrap().remove("hooks");
                }
                value
            };
            assert_eq!(meaning(&back), meaning(text), "{back}");
            assert_eq!(uninstall(ALL[0], text).unwrap(), None);
        }
    }

    #[test]
    fn settings_of_another_shape_are_left_alone() {
        for text in ["[]", "{\"hooks\": 3}", "{\"hooks\": {\"PreToolUse\": {}}}", "{", "nonsense"] {
            assert!(install(ALL[0], text, &hook(Form::Exec)).is_err(), "{text}");
        }
    }

    #[test]
    fn a_path_with_a_space_is_quoted_for_a_shell() {
        assert_eq!(hook(Form::Shell).line(), "'/opt/my tools/ringwall' hook claude");
    }
}
