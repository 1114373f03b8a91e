use std::path::Path;

use model::AbsPath;
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
    let scene = Scene {
        cwd: "/w".into(),
        home: AbsPath::lexical(Path::new("/home/u")).unwrap(),
        top: None,
        quarantine: None,
    };
    let input: Map<_, _> = input.as_object().unwrap().clone();
    lower(TABLE, &ToolCall { tool: tool.into(), input }, &scene)
}

fn shown(tool: &str, input: &Value) -> Vec<String> {
    lowered(tool, input)
        .into_iter()
        .map(|action| match action {
            Action::Path { access, path, .. } => format!("{access} {}", path.at.display()),
            Action::Run { command, .. } => format!("run {command}"),
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

/// Judges every row and names the first that differs.
fn check(rows: &[(&str, Value, &[&str])]) {
    for (tool, input, expected) in rows {
        assert_eq!(shown(tool, input), *expected, "{tool} {input}");
    }
}

#[test]
fn what_could_be_a_path_is_one_also_where_it_is_relative() {
    check(&[
        (
            "mcp__fs__move_file",
            json!({"source": "pc", "destination": ".git/hooks/pre-commit"}),
            &["write /w/pc", "write /w/.git/hooks/pre-commit"],
        ),
        ("mcp__x__go", json!({"destination": "link-out/pwn"}), &["write /w/link-out/pwn"]),
        ("mcp__x__go", json!({"source": ".env"}), &["write /w/.env"]),
        ("mcp__fs__read", json!({"from": ".env"}), &["read /w/.env"]),
        ("mcp__x__go", json!({"sources": ["/a/b", "c/d"]}), &["write /a/b", "write /w/c/d"]),
        ("mcp__x__go", json!({"destination": " /etc/x\n"}), &["write /etc/x"]),
        (
            "mcp__fs__copy",
            json!({"from": "a\nb", "to": "x://y"}),
            &["write /w/a\nb", "write /w/x://y"],
        ),
        ("mcp__fs__rename", json!({"old": "a", "newName": "/b"}), &["write /w/a", "write /b"]),
        ("mcp__fs__read", json!({"output_path": "x"}), &["write /w/x"]),
        ("mcp__fs__get_page", json!({"output": "a.json"}), &["write /w/a.json"]),
    ]);
}

#[test]
fn a_word_makes_nothing_a_write_but_what_says_so() {
    check(&[
        ("mcp__mail__send", json!({"to": "bob"}), &["read /w/bob"]),
        ("mcp__mail__send", json!({"to": "bob@example.org"}), &["read /w/bob@example.org"]),
        ("mcp__x__go", json!({"to": "ringwall.toml"}), &["write /w/ringwall.toml"]),
        ("mcp__x__go", json!({"target": "de"}), &["read /w/de"]),
        ("mcp__x__go", json!({"target": "frozen.txt"}), &["write /w/frozen.txt"]),
        ("mcp__x__save", json!({"target": "de"}), &["write /w/de"]),
        ("mcp__x__get_page", json!({"output": "json"}), &["read /w/json"]),
    ]);
}

#[test]
fn moving_a_tree_writes_the_protected_names_that_it_could_hold() {
    let claude = &["write /w/x", "write /w/.claude", "write /w/.claude/settings.json"][..];
    check(&[
        ("mcp__fs__move_file", json!({"source": "x", "destination": ".claude"}), claude),
        (
            "mcp__fs__copy",
            json!({"source": "x", "path": "./a/../.claude"}),
            &["write /w/x", "write /w/./a/../.claude", "write /w/.claude/settings.json"],
        ),
        (
            "mcp__fs__delete_directory",
            json!({"path": ".git/info"}),
            &["write /w/.git/info", "write /w/.git/info/attributes"],
        ),
        (
            "mcp__x__go",
            json!({"target": ".vscode"}),
            &["write /w/.vscode", "write /w/.vscode/tasks.json"],
        ),
        ("mcp__fs__create_directory", json!({"path": ".vscode"}), &["write /w/.vscode"]),
        ("mcp__fs__read_file", json!({"source": ".vscode"}), &["read /w/.vscode"]),
    ]);
}

#[test]
fn names_of_fields_are_read_word_by_word() {
    for key in [
        "file1",
        "path1",
        "PDFPath",
        "content_path",
        "textFile",
        "pathname",
        "dirpath",
        "basedir",
        "sources",
        "filePath",
        "file_name",
        "path_list",
    ] {
        assert_eq!(shown("mcp__x__go", &json!({key: "/etc/x"})), ["write /etc/x"], "{key}");
    }
}

#[test]
fn what_is_nested_means_what_stands_above_it() {
    check(&[
        ("mcp__x__go", json!({"files": {"/etc/cron.d/x": "text"}}), &["write /etc/cron.d/x"]),
        ("mcp__x__go", json!({"files": {"/etc/file": "text\n"}}), &["write /etc/file"]),
        (
            "mcp__x__go",
            json!({"files": {"a.sh": "/bin/x", "b": "c"}}),
            &["write /w/a.sh", "write /w/b", "read /w/c"],
        ),
        (
            "mcp__x__go",
            json!({"files": [{"name": "/etc/x", "content": "/y", "size": 3}]}),
            &["write /etc/x"],
        ),
        ("mcp__x__read", json!({"file": {"name": "/etc/passwd"}}), &["read /etc/passwd"]),
        ("mcp__x__read", json!({"path": {"value": "/etc/passwd"}}), &["read /etc/passwd"]),
        ("mcp__x__read", json!({"path": {"a": {"b": ["/etc/passwd"]}}}), &["read /etc/passwd"]),
        ("mcp__x__read", json!({"source": {"value": "/etc/passwd"}}), &["read /etc/passwd"]),
        (
            "mcp__x__rename",
            json!({"files": {"a.txt": ".git/hooks/x"}}),
            &["write /w/a.txt", "write /w/.git/hooks/x"],
        ),
        ("mcp__x__go", json!({"changes": {"file:///etc/hosts": []}}), &["write /etc/hosts"]),
        ("mcp__x__go", json!({"command": {"text": "/x", "run": "ls"}}), &["run ls"]),
        ("mcp__x__go", json!({"input": {"route": "/a/b", "message": "/c/d"}}), &["nothing"]),
    ]);
}

#[test]
fn patterns_start_somewhere() {
    check(&[
        ("mcp__x__list", json!({"pattern": "/etc/**"}), &["read /etc/"]),
        ("mcp__x__list", json!({"glob": "/etc/**"}), &["read /etc/"]),
        ("mcp__x__list", json!({"glob": "/etc/passwd"}), &["read /etc/passwd"]),
        ("mcp__x__list", json!({"pattern": "../../**"}), &["read /w/../../"]),
        ("mcp__x__find_files", json!({"pattern": "/etc/passwd"}), &["read /etc/passwd"]),
        ("mcp__x__delete_files", json!({"pattern": ".git/hooks/*"}), &["write /w/.git/hooks/"]),
        ("mcp__x__search_code", json!({"pattern": "/api/users/.* "}), &["nothing"]),
        ("mcp__x__list", json!({"excludePatterns": ["/etc/**"]}), &["nothing"]),
    ]);
}

#[test]
fn file_urls_are_paths_in_every_field() {
    for text in ["FILE:///etc/passwd", "file:/etc/passwd", " file:///etc/passwd"] {
        assert_eq!(shown("mcp__x__open", &json!({"x": text})), ["write /etc/passwd"], "{text}");
    }
    for text in ["file:\\\\etc", "fi\tle:///etc/passwd", "file:///%65tc", "file://host/etc"] {
        assert_eq!(shown("mcp__x__open", &json!({"url": text})), ["invalid url"], "{text}");
    }
}

#[test]
fn what_is_no_path_raises_no_alarm() {
    let long = "the lock is taken twice / ".repeat(40);
    for (tool, input) in [
        ("mcp__x__go", json!({"from": "/login"})),
        ("mcp__x__go", json!({"url": "https://example.org/a/../b"})),
        ("mcp__x__go", json!({"directory_depth": 2, "file_index": 0, "max_files": 3})),
        ("mcp__x__go", json!({"files": 3, "root": 1})),
        ("mcp__x__go", json!({"root_cause": long})),
        ("mcp__x__go", json!({"file_type": "/x", "xpath": "//div/a", "profile": "/x"})),
        ("mcp__x__go", json!({"input": "first\nsecond", "source": "/* c */\nint x;"})),
        ("mcp__x__go", json!({"sandbox": false})),
        ("mcp__x__go", json!({"repo": "owner/name", "target_branch": "feature/x"})),
        ("mcp__x__go", json!({"title": "File: main.rs", "text": "file:main.rs"})),
        ("mcp__x__move_slider", json!({"from": 0, "to": 10})),
    ] {
        assert_eq!(shown(tool, &input), ["nothing"], "{tool} {input}");
    }
    check(&[
        ("mcp__github__get_file_contents", json!({"path": ""}), &["read /w/."]),
        ("mcp__github__get_file_contents", json!({"path": "/"}), &["read /"]),
        ("mcp__fs__write_file", json!({"path": ""}), &["invalid path"]),
        ("ReportFindings", json!({"findings": [{"file": "a.rs", "line": 3}]}), &["read /w/a.rs"]),
    ]);
}

#[test]
fn blanks_around_a_path_are_invalid() {
    for text in [" /w/a", "/w/a ", "a\n", "\u{feff}a", "\u{a0}", " "] {
        assert_eq!(shown("mcp__x__go", &json!({"path": text})), ["invalid path"], "{text:?}");
    }
}
