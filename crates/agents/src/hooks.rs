//! Edits of an agent's JSON settings: our hook in or out, everything else byte for byte as it was.

mod entry;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use model::HookGroup;
use serde_json::{Map, Value, json};

use crate::agent::{Agent, Form, HookCommand};

pub use entry::{Installed, installed};

/// Seconds that the client waits for our hook. Our own deadline is far below.
const CLIENT_TIMEOUT: u32 = 10;

/// Agents skip it at the start of a file.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Why settings cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file is not JSON. Agents take no comments and no final commas, and ignore such a file.
    #[error("the settings are not valid JSON, so the agent ignores all of them: {0}")]
    Broken(String),
    /// A key holds something else than this agent would put there.
    #[error("`{0}` in the settings has a value that the agent does not accept")]
    Shape(String),
    /// Of two keys with one name an agent takes the last.
    #[error("a key appears twice in the settings, and the agent uses only one of them")]
    Twice,
}

/// The groups that settings must hold so that this hook is called, one for each event.
pub fn groups(agent: &Agent, hook: &HookCommand) -> Vec<HookGroup> {
    let mut entry = Map::new();
    entry.insert("type".into(), json!("command"));
    entry.insert("command".into(), json!(hook.command_field()));
    if hook.form == Form::Exec {
        entry.insert("args".into(), json!(hook.args));
    }
    entry.insert("timeout".into(), json!(CLIENT_TIMEOUT));
    // Versions that do not know this key ignore it; the others block when our hook cannot answer.
    entry.insert("onFailure".into(), json!("block"));
    let group = |matcher: Option<&str>| match matcher {
        Some(matcher) => json!({ "matcher": matcher, "hooks": [entry] }),
        None => json!({ "hooks": [entry] }),
    };
    let events = agent.hook_events.iter();
    events
        .map(|(event, matcher)| HookGroup { event: (*event).into(), group: group(*matcher) })
        .collect()
}

/// The settings with our hook in them. Text of a file that does not exist yet: `""`.
///
/// `programs` are the paths our binary had or has, besides those that bear its name.
pub fn install(
    agent: &Agent,
    text: &str,
    hook: &HookCommand,
    programs: &[String],
) -> Result<String, EditError> {
    let (mark, body) = without_mark(text);
    let body = if body.trim().is_empty() { "{}\n" } else { body };
    parse_strictly(body)?;
    // A second install replaces the first.
    let body = take_out(agent, body, programs)?.unwrap_or_else(|| body.to_owned());
    let root = parse(&body)?;
    let settings = object(root.object_value_or_create(), "settings")?;
    let hooks = object(settings.object_value_or_create("hooks"), "hooks")?;
    let wanted = groups(agent, hook);
    for HookGroup { event, group } in &wanted {
        let groups = hooks.array_value_or_create(event);
        let groups = groups.ok_or_else(|| EditError::Shape(format!("hooks.{event}")))?;
        groups.ensure_multiline();
        groups.append(input(group));
    }
    let edited = root.to_string();
    let value = parse_strictly(&edited)?;
    if !wanted.iter().all(|group| group.is_in(&value)) {
        return Err(EditError::Twice);
    }
    Ok(format!("{mark}{edited}"))
}

/// The settings without our hook, or `None` where it was not in them.
///
/// More lenient than [`install`]: a hook can be taken out of any file that can be read at all.
pub fn uninstall(
    agent: &Agent,
    text: &str,
    programs: &[String],
) -> Result<Option<String>, EditError> {
    let (mark, body) = without_mark(text);
    if body.trim().is_empty() {
        return Ok(None);
    }
    Ok(take_out(agent, body, programs)?.map(|body| format!("{mark}{body}")))
}

fn take_out(agent: &Agent, body: &str, programs: &[String]) -> Result<Option<String>, EditError> {
    let root = parse(body)?;
    let Some(settings) = root.object_value() else { return Ok(None) };
    let Some(hooks) = settings.object_value("hooks") else { return Ok(None) };
    let mut changed = false;
    for property in hooks.properties() {
        let Some(groups) = property.array_value() else { continue };
        let mut emptied = false;
        for group in groups.elements() {
            let entries = group.as_object().and_then(|group| group.array_value("hooks"));
            let Some(entries) = entries else { continue };
            let ours: Vec<_> = entries
                .elements()
                .into_iter()
                .filter(|entry| {
                    let entry = entry.to_serde_value();
                    entry.is_some_and(|entry| entry::ours(agent, &entry, programs).is_some())
                })
                .collect();
            if ours.is_empty() {
                continue;
            }
            changed = true;
            for entry in ours {
                entry.remove();
            }
            if entries.elements().is_empty() {
                group.remove();
                emptied = groups.elements().is_empty();
            }
        }
        if emptied {
            property.remove();
        }
    }
    if changed
        && hooks.properties().is_empty()
        && let Some(property) = settings.get("hooks")
    {
        property.remove();
    }
    Ok(changed.then(|| root.to_string()))
}

/// The byte order mark, if there is one, and the rest.
fn without_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => (BYTE_ORDER_MARK, body),
        None => ("", text),
    }
}

/// Reads settings as agents do.
fn parse_strictly(body: &str) -> Result<Value, EditError> {
    serde_json::from_str(body).map_err(|error| EditError::Broken(error.to_string()))
}

fn parse(body: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(body, &ParseOptions::default())
        .map_err(|error| EditError::Broken(error.to_string()))
}

fn object(found: Option<CstObject>, key: &str) -> Result<CstObject, EditError> {
    found.ok_or_else(|| EditError::Shape(key.into()))
}

/// A value as the editor takes it.
fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(fields.collect())
        }
    }
}

#[cfg(test)]
mod tests;
