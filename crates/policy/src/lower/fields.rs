//! Tools that no table knows: MCP servers, newer versions, other agents' names.
//!
//! Their fields are judged by name. Whether the tool reads or writes is taken from its own name,
//! and in doubt it writes.

use model::{Access, Action, ToolCall};
use serde_json::Value;

use super::{Scene, path};

/// Words that make a field a path, whatever it holds.
const PATH_WORDS: &[&str] = &[
    "cwd",
    "dir",
    "directories",
    "directory",
    "dirs",
    "file",
    "filename",
    "filenames",
    "filepath",
    "filepaths",
    "files",
    "folder",
    "folders",
    "notebook",
    "path",
    "paths",
    "root",
    "roots",
    "workdir",
    "workspace",
];
/// Words that make a field a path only where its value is absolute, climbs, or starts at home.
const MAYBE_WORDS: &[&str] = &[
    "dest",
    "destination",
    "from",
    "input",
    "location",
    "output",
    "source",
    "src",
    "target",
    "to",
    "uri",
    "url",
];
/// Words that say a path field is something else after all: `file_type`, `path_count`.
const NOT_PATH_WORDS: &[&str] = &[
    "content",
    "contents",
    "count",
    "encoding",
    "extension",
    "extensions",
    "filter",
    "format",
    "id",
    "ids",
    "limit",
    "max",
    "min",
    "mode",
    "pattern",
    "regex",
    "size",
    "text",
    "type",
    "types",
];
/// Words that make a field shell text.
const COMMAND_WORDS: &[&str] = &["bash", "cmd", "command", "commands", "shell"];
/// First words of tool names that only look.
const READING_WORDS: &[&str] = &[
    "cat",
    "check",
    "count",
    "describe",
    "diff",
    "directory",
    "fetch",
    "find",
    "get",
    "glob",
    "grep",
    "head",
    "info",
    "inspect",
    "list",
    "load",
    "lookup",
    "ls",
    "open",
    "query",
    "read",
    "search",
    "show",
    "stat",
    "tail",
    "tree",
    "view",
];
/// Words that say a tool changes something, wherever they stand.
const WRITING_WORDS: &[&str] = &[
    "append", "apply", "copy", "create", "delete", "edit", "insert", "make", "mkdir", "move",
    "patch", "put", "remove", "rename", "replace", "rm", "save", "set", "touch", "truncate",
    "update", "upload", "write",
];
/// Deeper input than any tool has.
const MOST_DEPTH: usize = 16;

/// The actions that the fields of an unknown tool stand for.
pub(super) fn lower_unknown(call: &ToolCall, scene: &Scene) -> Vec<Action> {
    let mut walk = Walk { access: access_of(&call.tool), scene, actions: Vec::new() };
    for (key, value) in &call.input {
        walk.field(key, value, 0);
    }
    walk.actions
}

struct Walk<'a> {
    access: Access,
    scene: &'a Scene,
    actions: Vec<Action>,
}

impl Walk<'_> {
    fn field(&mut self, key: &str, value: &Value, depth: usize) {
        if depth > MOST_DEPTH {
            let problem = "it is nested too deep to be judged".into();
            return self.actions.push(Action::Invalid { field: key.into(), problem });
        }
        match value {
            Value::Object(inner) => {
                for (key, value) in inner {
                    self.field(key, value, depth + 1);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.field(key, item, depth + 1);
                }
            }
            Value::String(text) => self.text(key, text),
            Value::Null | Value::Bool(_) => {}
            Value::Number(_) => {
                if meaning(key) == Meaning::Path && !words(key).any(|word| word == "root") {
                    let problem = "it is not a text".into();
                    self.actions.push(Action::Invalid { field: key.into(), problem });
                }
            }
        }
    }

    fn text(&mut self, key: &str, text: &str) {
        if let Some(local) = text.strip_prefix("file://") {
            // `file://host/x` and `file:///x` both name a path; percent escapes are decoded by
            // whoever opens it, so an escaped path cannot be judged.
            let at = local.find('/').and_then(|slash| local.get(slash..)).unwrap_or(local);
            if at.contains('%') {
                let problem = "it has percent escapes in a file URL".into();
                self.actions.push(Action::Invalid { field: key.into(), problem });
            } else {
                self.actions.push(path(self.access, at, key, self.scene));
            }
            return;
        }
        match meaning(key) {
            Meaning::Command => self.actions.push(Action::Run { command: text.into() }),
            Meaning::Path => self.actions.push(path(self.access, text, key, self.scene)),
            Meaning::MaybePath if looks_like_path(text) => {
                self.actions.push(path(self.access, text, key, self.scene));
            }
            Meaning::MaybePath | Meaning::Other => {}
        }
    }
}

#[derive(PartialEq, Eq)]
enum Meaning {
    Path,
    MaybePath,
    Command,
    Other,
}

fn meaning(key: &str) -> Meaning {
    let has = |list: &[&str]| words(key).any(|word| list.contains(&word.as_str()));
    if has(NOT_PATH_WORDS) {
        Meaning::Other
    } else if has(PATH_WORDS) {
        Meaning::Path
    } else if has(COMMAND_WORDS) {
        Meaning::Command
    } else if has(MAYBE_WORDS) {
        Meaning::MaybePath
    } else {
        Meaning::Other
    }
}

fn looks_like_path(text: &str) -> bool {
    let climbs = || text.split('/').any(|component| component == "..");
    text.starts_with('/') || text.starts_with('~') || (climbs() && !text.contains("://"))
}

/// What a tool does to its paths, by its own name: reads only where that is all it says.
fn access_of(tool: &str) -> Access {
    // `mcp__server__tool`: the server's name says nothing about this tool.
    let name = tool.rsplit("__").next().unwrap_or(tool);
    let writes = words(name).any(|word| WRITING_WORDS.contains(&word.as_str()));
    let reads = words(name).any(|word| READING_WORDS.contains(&word.as_str()));
    if reads && !writes { Access::Read } else { Access::Write }
}

/// The words of an identifier in any of the usual spellings, in lower case.
fn words(name: &str) -> impl Iterator<Item = String> + '_ {
    let mut spaced = String::with_capacity(name.len() + 4);
    let mut previous_lower = false;
    for character in name.chars() {
        if character.is_uppercase() && previous_lower {
            spaced.push(' ');
        }
        previous_lower = character.is_lowercase() || character.is_numeric();
        spaced.push(if character.is_alphanumeric() { character } else { ' ' });
    }
    let words: Vec<String> = spaced.split(' ').map(str::to_lowercase).collect();
    words.into_iter().filter(|word| !word.is_empty())
}
