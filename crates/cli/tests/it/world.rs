//! A small machine of its own for each test: a home, a project, something outside.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_ringwall");

pub(crate) struct World {
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

/// What a hook process gave back.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let world = Self { _dir: dir, root };
        for dir in ["home", "outside/granted", "project/src", "project-evil"] {
            std::fs::create_dir_all(world.root.join(dir)).unwrap();
        }
        for (file, text) in [
            ("outside/secret.txt", "canary"),
            ("outside/granted/notes.txt", "notes"),
            ("project/src/main.rs", "fn main() {}\n"),
            ("project/.env", "TOKEN=x\n"),
            ("project-evil/x", "x"),
        ] {
            std::fs::write(world.root.join(file), text).unwrap();
        }
        symlink(world.root.join("outside"), world.project().join("link-out")).unwrap();
        symlink("src", world.project().join("link-in")).unwrap();
        symlink("loop", world.project().join("loop")).unwrap();
        symlink(world.root.join("outside/not-yet"), world.project().join("dangling")).unwrap();
        symlink(world.project(), world.root.join("project-link")).unwrap();
        world.git(&["init", "-q"]);
        world
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.home().join(".local/state/ringwall/audit/log.jsonl")
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a program, by way of another process for the same reason as [`copy_binary`].
    pub(crate) fn program(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(&path);
        assert_eq!(feed(shell, text.as_bytes()).code, Some(0));
        path
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// Replaces `{root}`, `{project}` and `{home}`.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{root}", &self.root.display().to_string())
            .replace("{project}", &self.project().display().to_string())
            .replace("{home}", &self.home().display().to_string())
    }

    fn git(&self, args: &[&str]) {
        let status = Command::new("git").args(args).current_dir(self.project()).status().unwrap();
        assert!(status.success());
    }

    /// A command in this world: nothing of the real environment but the search path.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .current_dir(self.project());
        command
    }

    pub(crate) fn ringwall(&self, args: &[&str]) -> Output {
        self.command(BINARY).args(args).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a command that must succeed, and gives its output.
    pub(crate) fn said(&self, args: &[&str]) -> String {
        let output = self.ringwall(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    pub(crate) fn hook_command(&self) -> Command {
        let mut command = self.command(BINARY);
        command.args(["hook", "claude"]).env("CLAUDE_PROJECT_DIR", self.project());
        command
    }

    /// Calls the hook as the client would.
    pub(crate) fn hook(&self, tool: &str, input: &Value) -> Answer {
        self.hook_event(&json!({
            "session_id": "s", "cwd": self.project(), "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input,
        }))
    }

    pub(crate) fn hook_event(&self, event: &Value) -> Answer {
        feed(self.hook_command(), event.to_string().as_bytes())
    }
}

/// Copies our binary. Another process does it: a file that this one has open for writing would be
/// inherited by whatever a parallel test starts just then, and could not be run ("text file busy").
pub(crate) fn copy_binary(to: impl AsRef<Path>) {
    let status = Command::new("cp").arg(BINARY).arg(to.as_ref()).status().unwrap();
    assert!(status.success());
}

/// Starts a command, writes to its stdin, and waits.
pub(crate) fn feed(mut command: Command, input: &[u8]) -> Answer {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A hook that has heard enough may stop reading.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Answer {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Answer {
    /// What the client would do with this answer.
    pub(crate) fn verdict(&self) -> &'static str {
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

    pub(crate) fn reason(&self) -> String {
        let answer: Value = serde_json::from_str(&self.stdout).unwrap();
        answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap_or_default().into()
    }
}
