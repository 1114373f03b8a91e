//! Nothing is decided by the text of a message or by the name of a rule: both have types.

use std::path::{Path, PathBuf};

/// What a decision by text looks like, without blanks.
const SIGNS: &[&str] = &[
    ".rule==\"",
    ".rule!=\"",
    ".rule.to_string()==",
    "rule.name()==",
    "rule.name()!=",
    "rule.name(){",
    ".text==\"",
    ".text!=\"",
    ".text.starts_with(",
    ".text.ends_with(",
    ".text.contains(\"",
    ".text.strip_prefix(",
    ".text.as_str(){",
    ".cause.as_deref()==",
    ".why==",
    ".why!=",
    ".why.starts_with(",
    ".why.ends_with(",
    ".why.contains(",
    ".why.as_str()",
    ".why().starts_with(",
    ".why().contains(",
    ".why()==",
    ".why{",
];

#[test]
fn nothing_is_decided_by_a_text_for_people() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Vec::new();
    for crate_dir in root.join("crates").read_dir().unwrap() {
        collect(&crate_dir.unwrap().path().join("src"), &mut sources);
    }
    assert!(sources.len() > 100, "only {} sources were found", sources.len());
    let mut found = Vec::new();
    for path in sources {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        found.extend(hits(&text).into_iter().map(|(line, sign)| format!("{name}:{line}: {sign}")));
    }
    assert!(found.is_empty(), "decided by text:\n{}", found.join("\n"));
}

#[test]
fn the_search_finds_what_it_is_meant_to_find() {
    for line in [
        "if reason.rule == \"protected\" {",
        "reasons.filter(|reason| reason\n    .text\n    .starts_with(\"redirected \"))",
        "pieces.filter(|piece| piece.why != \"toolchain\")",
        "match &*piece.why {",
        "match reason.rule.name() {",
    ] {
        assert_eq!(hits(line).len(), 1, "{line}");
    }
    for line in [
        "if reason.rule == Rule::Protected {",
        "// reason.rule == \"protected\"",
        "#[cfg(test)]\nmod tests { fn a() { reason.rule == \"x\" } }",
    ] {
        assert_eq!(hits(line), [], "{line}");
    }
}

/// Every sign in a source, with its line. Comments and unit tests do not count.
fn hits(text: &str) -> Vec<(usize, &'static str)> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let (mut code, mut lines) = (String::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for c in line.chars().filter(|c| !c.is_whitespace()) {
            code.push(c);
            lines.extend(std::iter::repeat_n(number, c.len_utf8()));
        }
    }
    let found = SIGNS.iter().flat_map(|sign| code.match_indices(sign).map(|(at, _)| (at, *sign)));
    let mut found: Vec<_> = found.map(|(at, sign)| (lines[at], sign)).collect();
    found.sort_unstable();
    found.dedup_by_key(|(line, _)| *line);
    found
}

fn collect(dir: &Path, sources: &mut Vec<PathBuf>) {
    let Ok(entries) = dir.read_dir() else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "tests") {
                collect(&path, sources);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && path.file_name().is_some_and(|name| name != "tests.rs")
        {
            sources.push(path);
        }
    }
}
