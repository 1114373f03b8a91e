//! How an agent's settings call our hook, and how they can stop calling it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What makes an agent's settings stop calling hooks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SettingsRules {
    /// The keys that switch hooks off.
    pub off_switches: &'static [OffSwitch],
    /// The variables below `env` that switch hooks off or start something else in their place. A
    /// final `*` matches any ending, here and below.
    pub off_variables: &'static [&'static str],
    /// The variables below `env` that change where the agent keeps its own directories.
    pub location_variables: &'static [&'static str],
    /// What the agent expects under a key. It ignores a file that holds anything else there, hooks
    /// and all.
    pub shapes: &'static [(&'static str, Shape)],
}

/// A key of an agent's settings that switches hooks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffSwitch {
    /// Its place, as a JSON pointer.
    pub pointer: &'static str,
    /// The value that leaves hooks on. Anything else counts as off; an absent key is on.
    pub on: bool,
}

/// What an agent expects under a key of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A text.
    Text,
    /// `true` or `false`.
    Switch,
    /// Names and their values.
    Variables,
    /// An object in which these keys hold lists of texts.
    Lists(&'static [&'static str]),
    /// Events, and the groups of hooks under each.
    Hooks,
}

/// A group of hooks that calls us, and the event that it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookGroup {
    /// The event.
    pub event: String,
    /// The group, with its matcher and our entry.
    pub group: Value,
}

impl HookGroup {
    /// The entry that starts us.
    pub fn entry(&self) -> Option<&Value> {
        self.group.pointer("/hooks/0")
    }

    /// Whether settings hold it. They may hold other entries beside ours, and nothing else may differ.
    pub fn is_in(&self, settings: &Value) -> bool {
        let groups = settings.get("hooks").and_then(|hooks| hooks.get(&self.event));
        let entry = self.entry();
        groups.and_then(Value::as_array).into_iter().flatten().any(|found| {
            let known = |key: &String| key == "matcher" || key == "hooks";
            found.as_object().is_some_and(|found| found.keys().all(known))
                && found.get("matcher") == self.group.get("matcher")
                && found
                    .get("hooks")
                    .and_then(Value::as_array)
                    .is_some_and(|entries| entry.is_some_and(|entry| entries.contains(entry)))
        })
    }
}
