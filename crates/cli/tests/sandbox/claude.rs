//! The real Claude Code, whole, behind the wall. Its model is a scripted server on the host, reached
//! as a granted name.

use std::path::PathBuf;

use fixtures::{RunOutput, TestEnv, User};
use model_server::{ModelServer, Script, Step};
use serde_json::json;

const MODEL: &str = "model.example.org";

struct Session {
    env: TestEnv,
    client: PathBuf,
}

impl Session {
    fn new() -> Self {
        Self { env: TestEnv::new(User::Me), client: model_server::clients::claude() }
    }

    /// Plays a script behind the wall.
    fn play(&self, script: Script, options: &[&str]) -> (RunOutput, ModelServer) {
        let server = ModelServer::start(script);
        let port = server.url().rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
        let config = self.env.write(
            "claude.toml",
            &format!(
                "version = 1\n[network]\nallowed_domains = [\"{MODEL}:{port}\"]\nprivate_domains = \
                 [\"{MODEL}:{port}\"]\n"
            ),
        );
        let events = self.env.path("events.jsonl");
        let _ = std::fs::remove_file(&events);
        let mut command = self.env.command(self.env.binary());
        command
            .args(["run", "--agent", "claude", "--config"])
            .arg(config)
            .arg("--events")
            .arg(&events)
            .args(options)
            .arg("--")
            .arg(&self.client)
            .args(["--output-format", "stream-json", "--verbose"])
            .args(["--permission-mode", "bypassPermissions", "--tools", "Bash,Read,Write,Edit"])
            .args(["--print", "--", "Follow the script."])
            .env("RINGWALL_TEST_HOSTS", format!("{MODEL}=127.0.0.1,other.example.org=127.0.0.1"))
            .env("ANTHROPIC_BASE_URL", format!("http://{MODEL}:{port}"))
            .env("ANTHROPIC_API_KEY", "dummy-not-a-key")
            .env("IS_SANDBOX", "1");
        (RunOutput::new(&command.output().unwrap(), &events), server)
    }
}

#[test]
fn it_edits_and_runs_and_ends_by_itself_without_a_violation() {
    let session = Session::new();
    let project = session.env.project().display().to_string();
    let steps = vec![
        Step::call(
            "Write",
            json!({"file_path": format!("{project}/made.txt"), "content": "made\n"}),
        ),
        Step::call(
            "Bash",
            json!({"command": "cat made.txt && echo ran > ran.txt && git --version"}),
        ),
    ];
    let (ran, server) = session.play(Script::new(steps), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(session.env.read("project/made.txt"), "made\n");
    assert_eq!(session.env.read("project/ran.txt"), "ran\n");
    assert_eq!(server.tool_results().len(), 2, "{ran:?}");
    assert!(ran.violations().is_empty(), "{ran:?}");
    assert!(!session.env.home().join(".claude.json").exists());
}

#[test]
fn a_read_and_a_fetch_that_are_not_granted_stop_it() {
    let session = Session::new();
    let secret = session.env.home().join(".ssh/id_ed25519").display().to_string();
    let read = Step::call("Read", json!({"file_path": secret}));
    let (ran, server) = session.play(Script::new([read]), &[]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(ran.stderr.contains("~/.ssh/id_ed25519"), "{ran:?}");
    assert!(!server.saw("SECRET-KEY"));
    let fetch = Step::call("Bash", json!({"command": "curl -sS http://other.example.org/x"}));
    let (ran, _server) = session.play(Script::new([fetch]), &[]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(ran.stderr.contains("other.example.org"), "{ran:?}");
}

/// In the phase for planning, the client writes the plan with its own tools and nothing else.
#[test]
fn it_plans_and_writes_no_source() {
    let session = Session::new();
    let file = |name: &str| session.env.project().join(name).display().to_string();
    let steps = vec![
        Step::call("Write", json!({"file_path": file("TODO.md"), "content": "- one\n"})),
        Step::call("Read", json!({"file_path": file("TODO.md")})),
        Step::call(
            "Edit",
            json!({"file_path": file("TODO.md"), "old_string": "one", "new_string": "two"}),
        ),
    ];
    let (ran, _server) = session.play(Script::new(steps), &["--phase", "plan"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(session.env.read("project/TODO.md"), "- two\n", "{ran:?}");
    assert!(ran.violations().is_empty(), "{ran:?}");
    let source = Step::call("Write", json!({"file_path": file("main.c"), "content": "x\n"}));
    let (ran, _server) = session.play(Script::new([source]), &["--phase", "plan"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(ran.stderr.contains(&file("main.c")), "{ran:?}");
    assert!(!session.env.project().join("main.c").exists());
}
