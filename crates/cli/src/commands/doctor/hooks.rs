//! The settings of one agent: whether they call our hook, and whether the agent accepts them.

use std::path::Path;

use agents::Installed;
use model::{FileText, HookGroup};
use serde_json::Value;

use super::call::try_out;
use super::{Check, State, check};
use crate::client::{self, Opinion};
use crate::installs::Installs;
use crate::setup::Setup;

/// Every settings file of one agent: its values, our entries, and each of them by calling it.
pub(super) fn checks(setup: &Setup) -> Vec<Check> {
    let agent = setup.agent;
    let version = client::version_of(agent);
    let mut checks = vec![match &version {
        Some((version, _)) => check(agent.name, State::Good, format!("version {version}"), None),
        None => check(agent.name, State::Note, format!("`{}` is not on PATH", agent.program), None),
    }];
    let installs = Installs::read(&setup.places.state_dir).unwrap_or_else(|error| {
        let text = format!("cannot read the list of installs: {error}");
        let remedy = format!("move {}/installs.json away", setup.places.state_dir.display());
        checks.push(check(agent.name, State::Bad, text, Some(&remedy)));
        Installs::default()
    });
    let mut hooked = false;
    for path in &setup.context.settings.files {
        let found = settings(setup, &installs, path);
        hooked |= found.hooked;
        checks.extend(found.checks);
    }
    if !hooked {
        // An agent that is not installed needs no hook.
        let state = if version.is_some() { State::Bad } else { State::Note };
        let remedy = remedy(setup);
        checks.push(check(agent.name, state, "the hook is not installed", Some(&remedy)));
    }
    checks
}

fn remedy(setup: &Setup) -> String {
    format!("ringwall install {}", setup.agent.name)
}

/// What was found in one settings file.
#[derive(Default)]
struct Found {
    /// Our hook is in it, in whatever state, or was installed there.
    hooked: bool,
    checks: Vec<Check>,
}

fn settings(setup: &Setup, installs: &Installs, path: &Path) -> Found {
    let agent = setup.agent;
    let mut found = Found::default();
    let mut say = |state: State, text: String, remedy: Option<&str>| {
        found.checks.push(check(agent.name, state, format!("{}: {text}", path.display()), remedy));
    };
    let recorded = installs.find(agent.name, path);
    let text = match facts::read_small(path) {
        FileText::Text(text) => text,
        FileText::Missing if recorded.is_none() => return found,
        FileText::Missing => {
            say(
                State::Bad,
                "the file was removed, and the hook with it".into(),
                Some(&remedy(setup)),
            );
            return Found { hooked: true, ..found };
        }
        FileText::Unreadable(why) => {
            say(State::Bad, why, None);
            return found;
        }
    };
    let Installed { hooks, changes } =
        match agents::installed(agent, &text, &installs.programs(agent.name)) {
            Ok(installed) => installed,
            Err(error) => {
                say(State::Bad, error.to_string(), Some("fix it by hand"));
                return Found { hooked: recorded.is_some(), ..found };
            }
        };
    let value = serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(&text));
    let value: Value = value.unwrap_or_default();
    for (state, text) in values(setup, &value) {
        say(state, text, Some("remove or fix that key"));
    }
    for change in &changes {
        say(State::Bad, format!("the hook was changed: {change}"), Some(&remedy(setup)));
    }
    let is_there = |group: &HookGroup| group.is_in(&value);
    if changes.is_empty() && recorded.is_some_and(|install| !install.groups.iter().all(is_there)) {
        let gone = "the hook that was installed here was removed";
        let other = "the hook was changed: it is not the one that was installed";
        let text = if hooks.is_empty() { gone } else { other };
        say(State::Bad, text.into(), Some(&remedy(setup)));
    }
    if !hooks.is_empty() {
        match client::opinion(agent, &text) {
            Opinion::Accepts => say(State::Good, format!("{} accepts it", agent.title), None),
            Opinion::Rejects(complaints) => {
                for complaint in complaints {
                    let text = format!("{} may ignore all of it: {complaint}", agent.title);
                    say(State::Bad, text, Some("fix it by hand"));
                }
            }
            Opinion::Unknown(why) => {
                say(
                    State::Note,
                    format!("cannot check whether {} accepts it: {why}", agent.title),
                    None,
                );
            }
        }
    }
    let called = hooks.iter().filter(|(event, _)| event == "PreToolUse");
    found.hooked = !hooks.is_empty() || recorded.is_some();
    found.checks.extend(called.flat_map(|(event, hook)| try_out(setup, path, event, hook)));
    found
}

/// What the values in settings do to hooks.
fn values(setup: &Setup, settings: &Value) -> Vec<(State, String)> {
    let rules = &setup.context.settings.rules;
    let mut found = Vec::new();
    found.extend(policy::hooks_off(rules, settings).map(|why| (State::Bad, why)));
    found.extend(policy::wrong_shape(rules, settings).map(|key| {
        let text = format!(
            "{} does not accept the value of `{key}` and ignores the file",
            setup.agent.title
        );
        (State::Bad, text)
    }));
    found.extend(policy::relocates_hook(rules, settings, &Value::Null).map(|name| {
        (State::Note, format!("`env.{name}` changes the environment that our hook runs in"))
    }));
    found
}
