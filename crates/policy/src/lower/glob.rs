//! Patterns of paths: what a glob can reach is judged by the directories it starts from.

use model::{Access, Action, PathRef};

use crate::pattern::is_wildcard;
use crate::shell::Scene;

/// More alternatives than any honest pattern has.
const MOST_ALTERNATIVES: usize = 256;

/// The reads that a pattern means, relative to `base` where it is not absolute.
pub(super) fn lower_glob(
    pattern: &str,
    field: &str,
    base: Option<&str>,
    scene: &Scene,
) -> Vec<Action> {
    let invalid = |problem: &str| {
        vec![Action::Invalid { field: field.into(), problem: format!("`{pattern}` {problem}") }]
    };
    if pattern.starts_with('!') && !pattern.starts_with("!(") {
        // An exclusion reads nothing.
        return Vec::new();
    }
    if super::has_blank_ends(pattern) {
        return invalid("starts or ends with whitespace");
    }
    let Some(alternatives) = expand_braces(pattern) else {
        return invalid("has more alternatives than can be judged");
    };
    let mut actions = Vec::new();
    for alternative in alternatives {
        let (literal, rest) = split(&alternative);
        if rest.split('/').any(can_be_parent) {
            return invalid("has `..` after a wildcard");
        }
        let start = under(base, literal);
        actions.push(read(pattern, &start, field, scene));
        // A literal last name is asked for by that name, so deny rules on it apply.
        if let Some(name) =
            rest.rsplit('/').next().filter(|name| !rest.is_empty() && is_plain(name))
        {
            let named = format!("{}/{name}", start.trim_end_matches('/'));
            actions.push(read(pattern, &named, field, scene));
        }
    }
    actions
}

fn read(given: &str, start: &str, field: &str, scene: &Scene) -> Action {
    match model::absolute(start, &scene.cwd, &scene.home) {
        Ok(at) => {
            let path = PathRef { given: given.into(), at };
            Action::Path { access: Access::Read, path, by: None }
        }
        Err(error) => Action::Invalid { field: field.into(), problem: error.to_string() },
    }
}

/// The starting directory as text: absolute and `~` patterns ignore the base, as the tools do.
fn under(base: Option<&str>, literal: &str) -> String {
    let anchored = literal.starts_with('/') || literal.starts_with('~');
    match base {
        Some(base) if !anchored && !literal.is_empty() => format!("{base}/{literal}"),
        Some(base) if !anchored => base.to_owned(),
        _ if literal.is_empty() => ".".to_owned(),
        _ => literal.to_owned(),
    }
}

/// Splits into the leading components without wildcards and the rest.
fn split(pattern: &str) -> (&str, &str) {
    let wild = pattern.find(|c| is_wildcard(c) || c == '(');
    match wild {
        None => (pattern, ""),
        Some(at) => {
            let component = pattern.get(..at).and_then(|head| head.rfind('/'));
            pattern.split_at(component.map_or(0, |slash| slash + 1))
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c| is_wildcard(c) || c == '(')
}

/// Whether a component could be read as `..`, also as `[.][.]` or `\.\.`.
fn can_be_parent(component: &str) -> bool {
    let bare: String = component.chars().filter(|c| !matches!(c, '[' | ']' | '\\')).collect();
    bare == ".."
}

/// All alternatives of the braces, or `None` where there are too many.
fn expand_braces(pattern: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(text) = open.pop() {
        if done.len() + open.len() > MOST_ALTERNATIVES {
            return None;
        }
        match innermost(&text) {
            None => done.push(text),
            Some((before, inside, after)) => {
                open.extend(inside.split(',').map(|choice| format!("{before}{choice}{after}")));
            }
        }
    }
    Some(done)
}

/// The first brace pair that has no other inside: text before, between and after it.
fn innermost(text: &str) -> Option<(&str, &str, &str)> {
    let close = text.find('}')?;
    let open = text.get(..close)?.rfind('{')?;
    Some((text.get(..open)?, text.get(open + 1..close)?, text.get(close + 1..)?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::AbsPath;

    use super::*;

    fn starts(pattern: &str, base: Option<&str>) -> Vec<String> {
        let scene = Scene {
            cwd: "/w".into(),
            home: AbsPath::lexical(Path::new("/home/u")).unwrap(),
            top: None,
            quarantine: None,
        };
        let mut starts: Vec<_> = lower_glob(pattern, "pattern", base, &scene)
            .into_iter()
            .map(|action| match action {
                Action::Path { path, .. } => path.at.display().to_string(),
                Action::Invalid { .. } => "invalid".into(),
                other => panic!("{other:?}"),
            })
            .collect();
        starts.sort();
        starts.dedup();
        starts
    }

    #[test]
    fn a_pattern_starts_at_its_literal_directories() {
        assert_eq!(starts("**/*.rs", None), ["/w/."]);
        assert_eq!(starts("/etc/**", None), ["/etc/"]);
        assert_eq!(starts("../../*", None), ["/w/../../"]);
        assert_eq!(starts("src/*.rs", Some("/p")), ["/p/src/"]);
        assert_eq!(starts("~/x/*", Some("/p")), ["/home/u/x/"]);
        assert_eq!(starts("{/etc/*,src/*}", None), ["/etc/", "/w/src/"]);
        assert_eq!(starts("{a,{b,/c}}/*", None), ["/c/", "/w/a/", "/w/b/"]);
        assert_eq!(starts("!/target/**", None), Vec::<String>::new());
        assert_eq!(starts("README.md", None), ["/w/README.md"]);
    }

    #[test]
    fn a_literal_last_name_is_judged_by_that_name() {
        assert_eq!(starts("**/.env", None), ["/w/.", "/w/./.env"]);
    }

    #[test]
    fn climbing_behind_a_wildcard_is_invalid() {
        for pattern in ["*/../../x", "**/..", "[.][.]/x", "\\.\\./x", "a*/{..,b}/c"] {
            assert_eq!(starts(pattern, None), ["invalid"], "{pattern}");
        }
        assert_eq!(starts(&"{a,b}".repeat(12), None), ["invalid"]);
    }
}
