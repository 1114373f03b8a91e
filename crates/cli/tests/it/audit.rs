//! The log under many writers, murder and forgery.

use std::io::Write;
use std::process::{Child, Stdio};

use fixtures::text;
use serde_json::{Value, json};

use crate::hook_env::{Answer as _, HookEnv};

fn start(env: &HookEnv, number: usize) -> Child {
    let mut child = env
        .hook_command()
        // How long it takes is not the question here, and the machine may be busy.
        .env("RINGWALL_FAULT", "patient")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let call = json!({"session_id": format!("s{number}"), "tool_name": "Bash",
                      "tool_input": {"command": "ls"}});
    let _ = child.stdin.take().unwrap().write_all(call.to_string().as_bytes());
    child
}

fn verify(env: &HookEnv) -> (bool, Value) {
    let output = env.ringwall(&["audit", "verify", "--json"]);
    (output.status.success(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn two_hundred_hooks_at_once_leave_two_hundred_records() {
    let env = HookEnv::new();
    let children: Vec<_> = (0..200).map(|number| start(&env, number)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let (sound, report) = verify(&env);
    assert!(sound, "{report}");
    assert_eq!(report["records"], 200);
    let lines = env.said(&["audit", "query", "--json"]);
    let sessions: std::collections::BTreeSet<_> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["session"].to_string())
        .collect();
    assert_eq!(sessions.len(), 200);
}

#[test]
fn hooks_killed_in_the_middle_leave_a_log_that_verifies() {
    let env = HookEnv::new();
    let mut finished = 0;
    for round in 0..20_u64 {
        let mut children: Vec<_> = (0..10).map(|number| start(&env, number)).collect();
        std::thread::sleep(std::time::Duration::from_micros(round * 400));
        for child in children.iter_mut().step_by(2) {
            // May have ended by itself already.
            let _ = child.kill();
        }
        for mut child in children {
            if child.wait().unwrap().success() {
                finished += 1;
            }
        }
    }
    start(&env, 999).wait().unwrap();
    let (sound, report) = verify(&env);
    assert!(sound, "{report}");
    assert!(report["records"].as_u64().unwrap() > finished, "{report}");
}

#[test]
fn every_forgery_is_reported_with_its_line() {
    let env = HookEnv::new();
    for number in 0..6 {
        start(&env, number).wait().unwrap();
    }
    let good = std::fs::read_to_string(env.audit_log()).unwrap();
    let lines: Vec<_> = good.lines().collect();
    let forge = |text: &str| {
        std::fs::write(env.audit_log(), text).unwrap();
        let output = env.ringwall(&["audit", "verify"]);
        assert_eq!(output.status.code(), Some(1), "{}", text_of(&output.stdout));
        text_of(&output.stdout)
    };
    let text_of_lines =
        |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();

    let flipped = forge(&good.replacen("\"s2\"", "\"sX\"", 1));
    assert!(flipped.contains("log.jsonl:3") || flipped.contains("line 3"), "{flipped}");

    let mut without = lines.clone();
    without.remove(3);
    let removed = forge(&text_of_lines(&without));
    assert!(removed.contains("log.jsonl:4") || removed.contains("line 4"), "{removed}");

    let cut = forge(&text_of_lines(&lines[..4]));
    assert!(cut.contains("log.jsonl:4"), "{cut}");

    std::fs::write(env.audit_log(), &good).unwrap();
    assert!(verify(&env).0);
}

fn text_of(bytes: &[u8]) -> String {
    text(bytes)
}

#[test]
fn a_log_that_cannot_be_written_is_noticed_on_every_decision() {
    let env = HookEnv::new();
    env.write("home/.local/state/ringwall/audit", "a file in the way");
    let call = json!({"command": "ls"});
    for _ in 0..2 {
        let answer = env.hook("Bash", &call);
        assert_eq!(answer.verdict(), "allow");
        let shown: Value = serde_json::from_str(&answer.stdout).unwrap();
        let message = shown["systemMessage"].as_str().unwrap();
        assert!(message.contains("cannot write to the audit log"), "{message}");
        assert!(answer.stderr.contains("cannot write to the audit log"), "{}", answer.stderr);
    }
    env.write("home/.config/ringwall/ringwall.toml", "[audit]\non_failure = \"deny\"\n");
    let answer = env.hook("Bash", &call);
    assert_eq!(answer.verdict(), "deny");
    assert!(answer.reason().contains("rule audit.on_failure"), "{}", answer.reason());
}

#[test]
fn records_hold_the_decision_and_neither_content_nor_secrets() {
    let env = HookEnv::new();
    let write = json!({"file_path": env.project().join("a"), "content": "SECRET-CONTENT"});
    env.hook("Write", &write);
    env.hook("Bash", &json!({"command": "API_TOKEN=hunter2hunter2 ./deploy"}));
    env.hook("Read", &json!({"file_path": "/etc/passwd"}));
    let log = std::fs::read_to_string(env.audit_log()).unwrap();
    assert!(!log.contains("SECRET-CONTENT") && !log.contains("hunter2"), "{log}");
    let line: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    for field in
        ["time", "agent", "session", "tool", "actions", "verdict", "rules", "config", "micros"]
    {
        assert!(!line[field].is_null(), "{field} in {line}");
    }
    assert_eq!(line["verdict"], "deny");
    let denied = env.said(&["audit", "query", "--verdict", "deny"]);
    assert!(denied.contains("read /etc/passwd") && denied.lines().count() == 1, "{denied}");
    assert_eq!(env.said(&["audit", "tail", "-n", "2"]).lines().count(), 2);
}

#[test]
fn the_listing_names_what_a_command_was_denied() {
    let env = HookEnv::new();
    env.hook("Bash", &json!({"command": "cat ~/.ssh/id_rsa"}));
    let denied = env.said(&["audit", "query", "--verdict", "deny"]);
    let path = env.root.join("home/.ssh/id_rsa");
    assert!(denied.contains(path.to_str().unwrap()), "{denied}");
}
