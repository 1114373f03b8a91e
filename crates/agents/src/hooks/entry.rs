//! Which hook entries are ours, and whether they are as we write them.

use serde_json::{Map, Value};

use super::{EditError, groups, parse_strictly, without_mark};
use crate::agent::{Agent, Form, HookCommand};

/// The name of our binary, unless the user renamed it.
const OUR_NAME: &str = "ringwall";

/// What settings hold of our hook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// Every entry that starts us: the event it belongs to, and how it is started.
    pub hooks: Vec<(String, HookCommand)>,
    /// In what the settings differ from what [`install`](super::install) writes.
    pub changes: Vec<String>,
}

/// Looks for our hook in settings.
pub fn installed(agent: &Agent, text: &str, programs: &[String]) -> Result<Installed, EditError> {
    let (_, body) = without_mark(text);
    let mut found = Installed::default();
    if body.trim().is_empty() {
        return Ok(found);
    }
    let settings = parse_strictly(body)?;
    let events = settings.get("hooks").and_then(Value::as_object);
    for (event, list) in events.into_iter().flatten() {
        for group in list.as_array().into_iter().flatten() {
            let entries = group.get("hooks").and_then(Value::as_array);
            for entry in entries.into_iter().flatten() {
                if let Some(hook) = ours(agent, entry, programs) {
                    found.changes.extend(change(agent, event, group, entry, &hook));
                    found.hooks.push((event.clone(), hook));
                }
            }
        }
    }
    let Some((_, first)) = found.hooks.first() else { return Ok(found) };
    if found.hooks.iter().any(|(_, hook)| hook != first) {
        found.changes.push("its entries do not all start the same program".into());
    }
    for (event, _) in agent.hook_events {
        if !found.hooks.iter().any(|(found, _)| found == event) {
            found.changes.push(format!("it is not called at `{event}`"));
        }
    }
    Ok(found)
}

/// How a hook entry starts Ringwall for this agent, if it does.
///
/// Our arguments alone prove nothing: other tools call themselves `hook claude` too. Nor does our
/// name somewhere in a line: a script of the user's may start us, and is the user's.
pub(super) fn ours(agent: &Agent, entry: &Value, programs: &[String]) -> Option<HookCommand> {
    let hook = started_by(entry)?;
    let name = hook.program.rsplit('/').next();
    let known = name == Some(OUR_NAME) || programs.contains(&hook.program);
    (known && hook.args.starts_with(&["hook".to_owned(), agent.name.to_owned()])).then_some(hook)
}

fn started_by(entry: &Value) -> Option<HookCommand> {
    let command = entry.get("command")?.as_str()?;
    let Some(args) = entry.get("args") else {
        let mut words = words(command)?.into_iter();
        let hook = HookCommand { program: words.next()?, args: words.collect(), form: Form::Shell };
        // Whatever a shell would read in another way than we wrote it is not ours.
        return (hook.line() == command).then_some(hook);
    };
    let args = args.as_array()?.iter().map(|arg| arg.as_str().map(str::to_owned));
    Some(HookCommand {
        program: command.into(),
        args: args.collect::<Option<_>>()?,
        form: Form::Exec,
    })
}

/// In what an entry of ours differs from what we write.
fn change(
    agent: &Agent,
    event: &str,
    group: &Value,
    entry: &Value,
    hook: &HookCommand,
) -> Option<String> {
    let wanted = groups(agent, hook).into_iter().find(|wanted| wanted.event == event);
    let Some(wanted) = wanted else {
        return Some(format!("it is called at `{event}`, which it does not handle"));
    };
    if !hook.foreign_args().is_empty() {
        let args = hook.foreign_args().join(" ");
        return Some(format!("at `{event}` it is started with `{args}`"));
    }
    if group.get("matcher") != wanted.group.get("matcher") {
        return Some(format!("at `{event}` its matcher is different"));
    }
    let known = |key: &String| key == "matcher" || key == "hooks";
    let group_key = group.as_object().and_then(|group| group.keys().find(|key| !known(key)));
    let wanted = wanted.entry()?;
    let differs = |key: &&String| entry.get(key.as_str()) != wanted.get(key.as_str());
    let mut keys = [entry, wanted].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
    let key = group_key.or_else(|| keys.find(differs))?;
    Some(format!("at `{event}` its `{key}` is not what `ringwall install` writes"))
}

/// The words of a command line that is quoted as ours are.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' => words.push(std::mem::take(&mut word)),
            '\\' => word.push(chars.next()?),
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    c => word.push(c),
                }
            },
            c => word.push(c),
        }
    }
    words.push(word);
    Some(words)
}
