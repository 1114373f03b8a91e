//! Changes to the agent's own settings while it runs: none may disable our hook.
//!
//! An agent ignores a file with a value it cannot use, and our hook with it. So a file that holds
//! our hook may change only where the result is known to be usable.

use std::path::Path;

use model::{Facts, FileText, HookGroup, Origin, Reason, Remedy, Rule};
use serde_json::Value;

use super::allow;
use crate::settings::{hooks_off, relocates_hook, unproven_shape};
use crate::{Context, SettingsContext};

const INSTEAD: &str = "only the user can change it, while no agent is running; `ringwall install` \
                       then accepts the file as it is";

pub(super) fn judge(context: &Context, path: &Path, facts: &Facts) -> Reason {
    match fault(&context.settings, path, facts) {
        Some(why) => deny(path, &why),
        None => allow(Rule::Settings, "the change keeps the Ringwall hook"),
    }
}

fn fault(context: &SettingsContext, path: &Path, facts: &Facts) -> Option<String> {
    // Asked once, where the user's own file is judged.
    if context.files.first().is_some_and(|user| user == path) && !any_calls_us(context, facts) {
        return Some("no settings file would call the Ringwall hook any more".into());
    }
    let hooked = context.hooked.iter().find(|hooked| hooked.path == path);
    let settings = match read(path, facts) {
        Ok(Some(settings)) => settings,
        Ok(None) => {
            return hooked.map(|_| "the file was removed, and the Ringwall hook with it".into());
        }
        Err(why) => return Some(why),
    };
    if let Some(why) = hooks_off(&context.rules, &settings) {
        return Some(why);
    }
    if hooked.is_some_and(|hooked| !all_are_in(&hooked.groups, &settings)) {
        return Some("the file no longer calls the Ringwall hook as installed".into());
    }
    let accepted = hooked.map_or(&Value::Null, |hooked| &hooked.accepted);
    if let Some(name) = relocates_hook(&context.rules, &settings, accepted) {
        return Some(format!(
            "`env.{name}` would change which files or programs the Ringwall hook uses"
        ));
    }
    let ours = hooked.is_some() || calls_us(context, &settings);
    let unproven = ours.then(|| unproven_shape(&context.rules, &settings, accepted)).flatten();
    unproven.map(|key| {
        format!("a wrong value under `{key}` would make the agent ignore the file, and the Ringwall hook")
    })
}

fn any_calls_us(context: &SettingsContext, facts: &Facts) -> bool {
    let calls = |file: &Path| {
        read(file, facts).ok().flatten().is_some_and(|settings| calls_us(context, &settings))
    };
    context.calls.is_empty() || context.files.iter().any(|file| calls(file))
}

fn calls_us(context: &SettingsContext, settings: &Value) -> bool {
    context.calls.iter().any(|groups| all_are_in(groups, settings))
}

fn all_are_in(groups: &[HookGroup], settings: &Value) -> bool {
    groups.iter().all(|group| group.is_in(settings))
}

/// The settings in a file, or `None` where there is no file.
fn read(path: &Path, facts: &Facts) -> Result<Option<Value>, String> {
    match facts.text(path) {
        FileText::Missing => Ok(None),
        FileText::Unreadable(why) => Err(format!("the file cannot be read: {why}")),
        FileText::Text(text) => {
            // Agents skip a byte order mark.
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            let settings = serde_json::from_str(text);
            settings.map(Some).map_err(|error| format!("the file is not valid JSON: {error}"))
        }
    }
}

fn deny(path: &Path, why: &str) -> Reason {
    let tried = format!("the change to {} is denied", path.display());
    Reason::deny_because(Rule::Settings, Origin::BuiltIn, &tried, why).with(Remedy::advice(INSTEAD))
}
