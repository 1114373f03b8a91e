use std::path::Path;

use serde_json::{Map, json};

use super::*;

const TABLE: &[Tool] = &[
    Tool {
        name: "Read",
        effects: &[Effect::Path {
            field: "file_path",
            access: Access::Read,
            presence: Presence::Required,
        }],
    },
    Tool {
        name: "Bash",
        effects: &[Effect::Command { field: "command", presence: Presence::Required }],
    },
    Tool { name: "TodoWrite", effects: &[] },
];

fn lowered(tool: &str, input: &Value) -> Vec<Action> {
    let scene = Scene { cwd: "/w".into(), home: AbsPath::lexical(Path::new("/home/u")).unwrap() };
    let input: Map<_, _> = input.as_object().unwrap().clone();
    lower(TABLE, &ToolCall { tool: tool.into(), input }, &scene)
}

fn shown(tool: &str, input: &Value) -> Vec<String> {
    lowered(tool, input)
        .into_iter()
        .map(|action| match action {
            Action::Path { access, path } => format!("{access} {}", path.at.display()),
            Action::Run { command } => format!("run {command}"),
            Action::Invalid { field, .. } => format!("invalid {field}"),
            Action::LeaveSandbox { .. } => "leave sandbox".into(),
            Action::NoEffect { .. } => "nothing".into(),
            other => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_field_that_cannot_be_a_path_is_invalid() {
    for input in [
        json!({}),
        json!({"file_path": null}),
        json!({"file_path": ""}),
        json!({"file_path": ["/etc/passwd"]}),
        json!({"file_path": 7}),
        json!({"file_path": "a\u{0}b"}),
    ] {
        assert_eq!(shown("Read", &input), ["invalid file_path"], "{input}");
    }
}

#[test]
fn commands_and_their_off_switch_are_separate_actions() {
    let input = json!({"command": "ls", "dangerouslyDisableSandbox": true});
    assert_eq!(shown("Bash", &input), ["run ls", "leave sandbox"]);
}

#[test]
fn a_known_tool_without_effects_has_none() {
    assert_eq!(shown("TodoWrite", &json!({"path": "/etc/passwd"})), ["nothing"]);
}

#[test]
fn unknown_tools_are_judged_by_their_fields() {
    for (tool, input, expected) in [
        ("mcp__fs__read_file", json!({"path": "/etc/passwd"}), vec!["read /etc/passwd"]),
        ("mcp__fs__write_file", json!({"path": "a", "content": "/x"}), vec!["write /w/a"]),
        (
            "mcp__fs__move_file",
            json!({"source": "/a", "destination": "/b"}),
            vec!["write /a", "write /b"],
        ),
        (
            "mcp__fs__read_multiple_files",
            json!({"paths": ["a", "/b"]}),
            vec!["read /w/a", "read /b"],
        ),
        ("mcp__x__go", json!({"options": {"filePath": "~/x"}}), vec!["write /home/u/x"]),
        ("mcp__x__go", json!({"uri": "file:///etc/passwd"}), vec!["write /etc/passwd"]),
        ("mcp__x__go", json!({"uri": "file:///etc/%70asswd"}), vec!["invalid uri"]),
        ("mcp__x__go", json!({"url": "https://example.org/a/../b"}), vec!["nothing"]),
        ("mcp__x__run", json!({"command": "ls"}), vec!["run ls"]),
        ("mcp__x__go", json!({"query": "/etc"}), vec!["nothing"]),
        ("mcp__x__go", json!({"path": 3}), vec!["invalid path"]),
        ("mcp__x__go", json!({"file_type": "/x"}), vec!["nothing"]),
        ("MultiEdit", json!({"file_path": "/etc/hosts", "edits": []}), vec!["write /etc/hosts"]),
        ("ReadSettings", json!({"file": "/x"}), vec!["read /x"]),
        ("Unknown", json!({"bypassSandbox": true}), vec!["leave sandbox"]),
    ] {
        assert_eq!(shown(tool, &input), expected, "{tool} {input}");
    }
}
