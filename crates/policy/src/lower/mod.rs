//! A tool call becomes the actions it would take.
//!
//! Known tools go by their agent's table; all others by the names of their fields. What a field
//! cannot mean is an [`Action::Invalid`], never a guess.

mod fields;
mod flags;
mod glob;

use model::{Access, Action, Effect, PathRef, Presence, Tool, ToolCall};
use serde_json::Value;

use crate::shell::{Scene, lower_command};

/// Every effect of the call.
pub fn lower(table: &[Tool], call: &ToolCall, scene: &Scene) -> Vec<Action> {
    let known = table.iter().find(|tool| tool.name == call.tool);
    let mut actions: Vec<Action> = match known {
        Some(tool) => tool.effects.iter().flat_map(|effect| apply(effect, call, scene)).collect(),
        None => fields::lower_unknown(call, scene),
    };
    let runs_commands = actions.iter().any(|action| matches!(action, Action::Run { .. }));
    if known.is_none() || runs_commands {
        let asker = if runs_commands { flags::Asker::Shell } else { flags::Asker::Other };
        actions.extend(flags::leave_sandbox(&call.input, asker));
    }
    if actions.is_empty() {
        actions.push(Action::NoEffect { tool: call.tool.clone() });
    }
    actions
}

fn apply(effect: &Effect, call: &ToolCall, scene: &Scene) -> Vec<Action> {
    match *effect {
        Effect::AskPerson => vec![Action::AskPerson { tool: call.tool.clone() }],
        Effect::Path { field, access, presence } => match text(call, field, presence) {
            Ok(Some(given)) => vec![path(access, given, field, scene)],
            // The tool falls back to its current directory.
            Ok(None) => vec![path(access, ".", field, scene)],
            Err(invalid) => vec![invalid],
        },
        Effect::Glob { field, base, presence } => match text(call, field, presence) {
            Ok(Some(pattern)) => {
                let base = text(call, base, Presence::Optional).ok().flatten();
                glob::lower_glob(pattern, field, base, scene)
            }
            Ok(None) => Vec::new(),
            Err(invalid) => vec![invalid],
        },
        // An empty text runs nothing.
        Effect::Command { field, .. } if call.input.get(field).is_some_and(|text| text == "") => {
            Vec::new()
        }
        Effect::Command { field, presence } => match text(call, field, presence) {
            Ok(Some(command)) => run(command, Some(field), scene),
            Ok(None) => Vec::new(),
            Err(invalid) => vec![invalid],
        },
        Effect::Url { field, presence } => match text(call, field, presence) {
            Ok(Some(target)) => vec![Action::Connect { target: target.into() }],
            Ok(None) => Vec::new(),
            Err(invalid) => vec![invalid],
        },
    }
}

/// A shell text: the text itself, and everything it would do.
fn run(command: &str, field: Option<&str>, scene: &Scene) -> Vec<Action> {
    let field = field.map(str::to_owned);
    let mut actions = vec![Action::Run { command: command.into(), field }];
    actions.extend(lower_command(command, scene));
    actions
}

/// The field's text. `null` counts as absent; an empty or wrongly typed value is invalid.
fn text<'call>(
    call: &'call ToolCall,
    field: &str,
    presence: Presence,
) -> Result<Option<&'call str>, Action> {
    let invalid = |problem: &str| Action::Invalid { field: field.into(), problem: problem.into() };
    match (call.input.get(field), presence) {
        (None | Some(Value::Null), Presence::Optional) => Ok(None),
        (None | Some(Value::Null), Presence::Required) => Err(invalid("it is missing")),
        (Some(Value::String(text)), _) if text.is_empty() => Err(invalid("it is empty")),
        (Some(Value::String(text)), _) => Ok(Some(text)),
        (Some(_), _) => Err(invalid("it is not a string")),
    }
}

/// The action on a path given as text.
///
/// Some tools trim their paths and some do not, so a path with blanks around it has two meanings.
fn path(access: Access, given: &str, field: &str, scene: &Scene) -> Action {
    if has_blank_ends(given) {
        let problem = "it starts or ends with whitespace".into();
        return Action::Invalid { field: field.into(), problem };
    }
    match model::absolute(given, &scene.cwd, &scene.home) {
        Ok(at) => Action::Path { access, path: PathRef { given: given.into(), at }, by: None },
        Err(error) => Action::Invalid { field: field.into(), problem: error.to_string() },
    }
}

fn has_blank_ends(text: &str) -> bool {
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    text.starts_with(blank) || text.ends_with(blank)
}

#[cfg(test)]
mod tests;
