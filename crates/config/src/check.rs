//! Warnings about rules that are valid and still cannot be meant.

use model::{AbsPath, Sourced};
use policy::{PathRule, Policy};

use crate::load::Warning;

/// Rules that can match nothing on this machine.
pub fn check(policy: &Policy, workspace: &AbsPath) -> Vec<Warning> {
    let files = &policy.filesystem;
    let rules = [
        ("allow_read", &files.allow_read),
        ("allow_write", &files.allow_write),
        ("deny_read", &files.deny_read),
        ("deny_write", &files.deny_write),
        ("quiet", &files.quiet),
    ];
    let mut warnings = Vec::new();
    for (key, rules) in rules {
        for rule in rules {
            if let Some(missing) = missing_part(rule, workspace) {
                let text = format!(
                    "`{}` in {key} matches nothing: {missing} does not exist",
                    rule.value.text()
                );
                warnings.push(Warning { origin: rule.origin.clone(), text });
            }
        }
    }
    warnings
}

/// The directory a rule starts from, where that is missing. A single missing name below an
/// existing directory is fine: rules may stand before their files.
fn missing_part(rule: &Sourced<PathRule>, workspace: &AbsPath) -> Option<AbsPath> {
    let prefix = rule.value.prefix(workspace)?;
    let needed = if rule.value.is_pattern() { prefix } else { prefix.parent() };
    (!needed.as_path().exists()).then_some(needed)
}
