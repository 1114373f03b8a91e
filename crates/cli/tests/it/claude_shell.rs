//! Shell commands of the real Claude Code: downloads land in quarantine, worktrees hold.

use std::path::{Path, PathBuf};
use std::process::Command;

use fixtures::{Server, TestEnv, git, text};
use model_server::clients::ClaudeRun;
use model_server::{ModelServer, Script, Step, ToolResult};
use serde_json::{Value, json};

/// A host repository with a linked worktree, a repository to clone, and a home.
struct WorktreeEnv {
    env: TestEnv,
}

impl WorktreeEnv {
    fn set() -> Self {
        let stage = Self { env: TestEnv::temporary() };
        for repository in ["host", "source/lib"] {
            stage.env.write(&format!("{repository}/file.txt"), "content\n");
            let at = stage.env.path(repository);
            git(&at, &["init", "-q", "-b", "main", "."]);
            git(&at, &["add", "."]);
            git(&at, &["commit", "-q", "-m", "first"]);
        }
        git(stage.env.path("source/lib"), &["update-server-info"]);
        git(stage.env.path("host"), &["worktree", "add", "-q", "-b", "agent", "../worktree"]);
        stage
    }

    fn worktree(&self) -> PathBuf {
        self.env.path("worktree")
    }

    fn quarantine(&self) -> PathBuf {
        self.env.path("quarantine")
    }

    fn head(&self) -> String {
        git(self.env.path("host"), &["rev-parse", "HEAD"])
    }

    fn play(&self, steps: Vec<Step>, mode: &str, guard: bool) -> Vec<ToolResult> {
        let server = ModelServer::start(Script::new(steps));
        let mut run = ClaudeRun::new(&server, self.worktree())
            .permission_mode(mode)
            .env("GIT_AUTHOR_NAME", "t")
            .env("GIT_AUTHOR_EMAIL", "t@example.org")
            .env("GIT_COMMITTER_NAME", "t")
            .env("GIT_COMMITTER_EMAIL", "t@example.org");
        let mut settings = json!({});
        if guard {
            settings = self.installed_settings(run.home());
            let config = run.home().join(".config/ringwall");
            std::fs::create_dir_all(&config).unwrap();
            let dir = self.quarantine().display().to_string();
            std::fs::write(config.join("ringwall.toml"), format!("[quarantine]\ndir = {dir:?}\n"))
                .unwrap();
        }
        settings["permissions"] = json!({"allow": ["Bash"]});
        run = run.user_settings(&settings);
        let finished = run.run();
        assert!(finished.success(), "{}\n{}", finished.stdout, finished.stderr);
        server.tool_results()
    }

    fn installed_settings(&self, home: &Path) -> Value {
        let client = model_server::clients::claude();
        let output = Command::new(self.env.binary())
            .args(["install", "claude"])
            .env_clear()
            .env("HOME", home)
            .env("PATH", format!("{}:/usr/bin:/bin", client.parent().unwrap().display()))
            .current_dir(self.worktree())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&std::fs::read(home.join(".claude/settings.json")).unwrap()).unwrap()
    }
}

fn bash(command: &str) -> Step {
    Step::call("Bash", json!({"command": command, "description": "d"}))
}

/// Whether the client runs the corrected call or has to be told is the client's business: this
/// finds out, and follows the instruction where there is one.
#[test]
fn a_clone_without_a_destination_ends_in_quarantine_in_every_mode() {
    for mode in ["default", "bypassPermissions"] {
        let stage = WorktreeEnv::set();
        let server = Server::plain(stage.env.path("source"));
        let clone = bash(&format!("git clone -q {}/lib/.git", server.url()));
        let instructed = Step::from_result(|told| match told.split("run this instead: ").nth(1) {
            Some(rest) => bash(rest.lines().next().unwrap_or_default()),
            None => Step::text("done"),
        });
        let results = stage.play(vec![clone, instructed], mode, true);
        let told: Vec<_> = results.iter().map(|result| result.text.as_str()).collect();
        assert!(stage.quarantine().join("lib/file.txt").is_file(), "{mode}: {told:?}");
        assert!(!stage.worktree().join("lib").exists(), "{mode}: {told:?}");
        // 2.1.325 runs the corrected call in both modes; one that does not has to be told.
        assert!(results.len() <= 2, "{mode}: {told:?}");
    }
}

#[test]
fn the_host_checkout_is_not_committed_to_from_a_worktree() {
    let attempt = |stage: &WorktreeEnv| {
        let host = stage.env.path("host");
        vec![bash(&format!("cd {} && git commit --allow-empty -qm x", host.display()))]
    };
    let stage = WorktreeEnv::set();
    let before = stage.head();
    let results = stage.play(attempt(&stage), "bypassPermissions", true);
    assert!(
        results[0].is_error && results[0].text.contains("another checkout"),
        "{}",
        results[0].text
    );
    assert_eq!(stage.head(), before);
    // The same without the guard moves it.
    stage.play(attempt(&stage), "bypassPermissions", false);
    assert_ne!(stage.head(), before);
}

#[test]
fn the_rules_are_in_front_of_the_model() {
    let stage = WorktreeEnv::set();
    let server = ModelServer::start(Script::new([bash("true")]));
    let run = ClaudeRun::new(&server, stage.worktree());
    let settings = stage.installed_settings(run.home());
    let run = run.user_settings(&settings);
    assert!(run.run().success());
    assert!(server.saw("isolated git worktree"), "the session was not told its rules");
}
