//! What must be asked of the machine before actions can be judged.

use std::path::Component;

use model::{AbsPath, Action, PathRef, Query};

use crate::{Context, PathRule, Policy};

/// Every question that [`evaluate`](crate::evaluate) will want answered.
pub fn needs(policy: &Policy, context: &Context, actions: &[Action]) -> Vec<Query> {
    let mut queries = Vec::new();
    for action in actions {
        match action {
            Action::Path { path, .. } | Action::Enter { path, .. } | Action::Place { path, .. } => {
                queries.extend(readings(path).into_iter().map(Query::Resolve));
            }
            Action::Fetch(fetch) => {
                queries.extend(readings(&fetch.to).into_iter().map(Query::Resolve));
            }
            Action::ChangeSettings { path } => queries.push(Query::Text(path.clone())),
            _ => {}
        }
    }
    if queries.iter().any(|query| matches!(query, Query::Resolve(_))) {
        let prefixes = path_rules(policy).filter_map(|rule| rule.prefix(&context.workspace));
        queries.extend(prefixes.map(|path| Query::Resolve(path.as_path().to_path_buf())));
    }
    queries
}

/// The ways in which programs read a path with `..` in it: as the kernel does, component by
/// component through links, and as path libraries do, by its text. Both must be fine.
pub(crate) fn readings(path: &PathRef) -> Vec<std::path::PathBuf> {
    let mut readings = vec![path.at.clone()];
    let climbs = path.at.components().any(|component| component == Component::ParentDir);
    if climbs && let Ok(lexical) = AbsPath::lexical(&path.at) {
        readings.push(lexical.as_path().to_path_buf());
    }
    readings
}

/// Every rule whose prefix can lead through a link.
fn path_rules(policy: &Policy) -> impl Iterator<Item = &PathRule> {
    let files = &policy.filesystem;
    [&files.allow_read, &files.allow_write, &files.deny_read, &files.deny_write]
        .into_iter()
        .flatten()
        .chain(&policy.quarantine.dir)
        .map(|rule| &rule.value)
}
