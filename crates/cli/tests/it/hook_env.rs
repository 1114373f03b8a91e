//! [`HookEnv`]: a project with links into it and out of it, and the hook as the client calls it.

use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use fixtures::{Finished, TestEnv, feed, git};
use serde_json::{Value, json};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_ringwall");

pub(crate) struct HookEnv {
    env: TestEnv,
}

impl Deref for HookEnv {
    type Target = TestEnv;

    fn deref(&self) -> &TestEnv {
        &self.env
    }
}

impl HookEnv {
    pub(crate) fn new() -> Self {
        let env = TestEnv::temporary();
        for (file, text) in [
            ("outside/secret.txt", "canary"),
            ("outside/granted/notes.txt", "notes"),
            ("project/src/main.rs", "fn main() {}\n"),
            ("project/.env", "TOKEN=x\n"),
            ("project-evil/x", "x"),
        ] {
            env.write(file, text);
        }
        symlink(env.path("outside"), env.path("project/link-out")).unwrap();
        symlink("src", env.path("project/link-in")).unwrap();
        symlink("loop", env.path("project/loop")).unwrap();
        symlink(env.path("outside/not-yet"), env.path("project/dangling")).unwrap();
        symlink(env.project(), env.path("project-link")).unwrap();
        git(env.project(), &["init", "-q"]);
        Self { env }
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.home().join(".local/state/ringwall/audit/log.jsonl")
    }

    /// Replaces `{root}`, `{project}` and `{home}`.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{root}", &self.root.display().to_string())
            .replace("{project}", &self.project().display().to_string())
            .replace("{home}", &self.home().display().to_string())
    }

    pub(crate) fn hook_command(&self) -> Command {
        let mut command = self.command(BINARY);
        command.args(["hook", "claude"]).env("CLAUDE_PROJECT_DIR", self.project());
        command
    }

    /// Calls the hook as the client would.
    pub(crate) fn hook(&self, tool: &str, input: &Value) -> Finished {
        self.hook_event(&json!({
            "session_id": "s", "cwd": self.project(), "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input,
        }))
    }

    pub(crate) fn hook_event(&self, event: &Value) -> Finished {
        feed(self.hook_command(), event.to_string().as_bytes())
    }
}

/// What the client understands when a hook ends.
pub(crate) trait Answer {
    /// What the client would do with this answer.
    fn verdict(&self) -> &'static str;

    fn reason(&self) -> String;
}

impl Answer for Finished {
    fn verdict(&self) -> &'static str {
        match self.code {
            Some(2) if !self.stderr.is_empty() => "deny",
            Some(0) if self.stdout.is_empty() => "allow",
            Some(0) => {
                let answer: Value = serde_json::from_str(&self.stdout).unwrap();
                match answer.pointer("/hookSpecificOutput/permissionDecision") {
                    None if answer["decision"] == "block" => "deny",
                    None => "allow",
                    Some(Value::String(decision)) if decision == "deny" => "deny",
                    Some(Value::String(decision)) if decision == "ask" => "ask",
                    other => panic!("{other:?}"),
                }
            }
            other => panic!("exit {other:?}: {}", self.stderr),
        }
    }

    fn reason(&self) -> String {
        let answer: Value = serde_json::from_str(&self.stdout).unwrap();
        answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap_or_default().into()
    }
}
