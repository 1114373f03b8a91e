//! Warnings about rules that are valid but have no effect on this machine.

use model::AbsPath;
use policy::{PathRule, Policy};

use crate::keys::KEYS;
use crate::load::Warning;

/// Rules that can match nothing on this machine.
pub fn check(policy: &Policy, workspace: &AbsPath) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for key in KEYS {
        for (rule, origin) in (key.paths)(policy) {
            if let Some(missing) = missing_part(rule, workspace) {
                let text = format!(
                    "`{}` in {} matches nothing: {missing} does not exist",
                    rule.text(),
                    key.name
                );
                warnings.push(Warning { origin: origin.clone(), text });
            }
        }
    }
    warnings
}

/// The directory that a rule starts from, if it does not exist. One missing name below an existing
/// directory is fine: a rule can be written before its file.
fn missing_part(rule: &PathRule, workspace: &AbsPath) -> Option<AbsPath> {
    let prefix = rule.prefix(workspace)?;
    let needed = if rule.is_pattern() { prefix } else { prefix.parent() };
    (!needed.as_path().exists()).then_some(needed)
}
