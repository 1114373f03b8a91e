//! Every row of the corpus through the live hook.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::hook_env::{Answer as _, HookEnv};

/// Rows may be added. Taking one out needs a reason, and this line.
const FEWEST_ROWS: usize = 320;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    tool: String,
    input: Value,
    cwd: Option<String>,
    expect: String,
    why: String,
}

#[test]
fn every_row_of_the_corpus_is_decided_as_expected() {
    let env = HookEnv::new();
    env.write(
        "home/.config/ringwall/ringwall.toml",
        &env.fill(
            "[filesystem]\ndeny_read = [\"**/.env\", \"**/gr\u{fc}n.key\"]\n\
             allow_read = [\"{root}/outside/granted\"]\n\
             [network]\ndenied_domains = [\"tracker.example.org\"]\n",
        ),
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/guard.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut misses = Vec::new();
    for row in &rows {
        let input: Value = serde_json::from_str(&env.fill(&row.input.to_string())).unwrap();
        let cwd = env.fill(row.cwd.as_deref().unwrap_or("{project}"));
        let answer = env.hook_event(&json!({
            "session_id": "corpus", "cwd": cwd, "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": row.tool, "tool_input": input,
        }));
        if answer.verdict() != row.expect {
            let Row { id, expect, why, .. } = row;
            misses.push(format!("{id}: {} instead of {expect} ({why})", answer.verdict()));
        }
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
    assert!(rows.len() >= FEWEST_ROWS, "{} rows are left", rows.len());
}
