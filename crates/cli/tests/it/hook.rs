//! The hook's promises to the client: exit 0 or 2, fast, for any bytes.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fixtures::feed;
use serde_json::json;

use crate::hook_env::{Answer as _, HookEnv};

fn bash(command: &str) -> serde_json::Value {
    json!({"command": command, "description": "d"})
}

#[test]
fn an_ordinary_call_is_answered_with_silence() {
    let env = HookEnv::new();
    let answer = env.hook("Bash", &bash("ls"));
    assert_eq!((answer.code, answer.stdout.as_str(), answer.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn a_refusal_names_the_path_the_rule_and_the_exact_way_out() {
    let env = HookEnv::new();
    let secret = env.root.join("outside/secret.txt");
    let answer = env.hook("Read", &json!({"file_path": secret}));
    assert_eq!(answer.verdict(), "deny");
    let reason = answer.reason();
    for part in [
        secret.to_str().unwrap(),
        "outside the workspace",
        "rule workspace, built in",
        &format!("ringwall grant read {}", secret.display()),
        &env.project().join("ringwall.toml").display().to_string(),
    ] {
        assert!(reason.contains(part), "{part} in {reason}");
    }
}

#[test]
fn the_way_out_in_a_refusal_works_when_pasted() {
    let env = HookEnv::new();
    let odd = env.write("outside/it's [1] * odd.txt", "x");
    let answer = env.hook("Read", &json!({"file_path": odd}));
    let reason = answer.reason();
    let command = reason.split('`').nth(1).unwrap().to_owned();
    let command = command.replacen("ringwall", &format!("'{}'", crate::hook_env::BINARY), 1);
    let status = env.command("/bin/sh").arg("-c").arg(&command).output().unwrap().status;
    assert!(status.success(), "{command}");
    assert_eq!(env.hook("Read", &json!({"file_path": odd})).verdict(), "allow");
    let neighbour = env.write("outside/it's 1 xx odd.txt", "x");
    assert_eq!(env.hook("Read", &json!({"file_path": neighbour})).verdict(), "deny");
}

#[test]
fn no_library_can_be_put_into_the_hook_by_its_environment() {
    let env = HookEnv::new();
    if is_loaded_by_another(std::path::Path::new(crate::hook_env::BINARY)) {
        eprintln!("skipped: the program is not linked in one piece; there is no libc.a of 2.34");
        return;
    }
    let source = env.write(
        "project/evil.c",
        "#include <unistd.h>\n__attribute__((constructor)) static void begin(void) { _exit(0); }",
    );
    let library = env.project().join("evil.so");
    let mut compiler = std::process::Command::new("cc");
    let made = compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(made.unwrap().success());
    let ended = |mut command: std::process::Command| {
        command.env("LD_PRELOAD", &library).output().unwrap().status.code()
    };
    // So it works on others.
    assert_eq!(ended(env.command("/bin/false")), Some(0));
    let mut hook = env.hook_command();
    hook.env("LD_PRELOAD", &library).env("LD_LIBRARY_PATH", env.project());
    let secret = env.root.join("outside/secret.txt");
    let event = json!({
        "hook_event_name": "PreToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": secret},
        "cwd": env.project(),
    });
    assert_eq!(feed(hook, event.to_string().as_bytes()).verdict(), "deny");
}

/// Whether the kernel starts another program to put this one together.
fn is_loaded_by_another(program: &std::path::Path) -> bool {
    let bytes = std::fs::read(program).unwrap();
    let number = |at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0, |sum, byte| (sum << 8) | usize::from(*byte))
    };
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    (0..count).any(|entry| number(table + entry * size, 4) == 3)
}

#[test]
fn bytes_that_are_no_call_are_blocked_with_a_line_on_stderr() {
    let env = HookEnv::new();
    let deep = "[".repeat(100_000);
    let inputs: [&[u8]; 8] = [
        b"",
        b"\0\xff\xfe",
        b"{",
        b"[]",
        b"null",
        br#"{"tool_name":"Bash"}"#,
        br#"{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"\ud800"}}"#,
        deep.as_bytes(),
    ];
    for input in inputs {
        let answer = feed(env.hook_command(), input);
        assert_eq!(
            answer.code,
            Some(2),
            "{:?}",
            String::from_utf8_lossy(&input[..input.len().min(80)])
        );
        assert!(answer.stdout.is_empty());
        assert!(answer.stderr.starts_with("ringwall: the call is blocked: "), "{}", answer.stderr);
    }
}

#[test]
fn a_fifty_megabyte_event_is_blocked_within_a_second() {
    let env = HookEnv::new();
    let event = json!({
        "hook_event_name": "PreToolUse", "tool_name": "Write", "cwd": env.project(),
        "tool_input": {"file_path": env.project().join("big"), "content": "a".repeat(50 << 20)},
    });
    let bytes = event.to_string().into_bytes();
    let started = Instant::now();
    let answer = feed(env.hook_command(), &bytes);
    assert_eq!(answer.code, Some(2));
    assert!(answer.stderr.contains("larger than 16 MiB"), "{}", answer.stderr);
    // Generous: this machine may be busy. The promise is that the deadline exists.
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_input_that_never_ends_is_blocked_by_the_deadline() {
    let env = HookEnv::new();
    let mut command = env.hook_command();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"tool_name\"").unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(2));
    assert!(fixtures::text(&output.stderr).contains("no decision within the time limit"));
}

#[test]
fn a_closed_stdout_is_a_block() {
    let env = HookEnv::new();
    let mut command = env.hook_command();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let event = json!({"tool_name": "Read", "tool_input": {"file_path": "/etc/passwd"}});
    child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(fixtures::text(&output.stderr).contains("cannot write the answer"));
}

#[cfg(feature = "test-hooks")]
#[test]
fn a_panic_and_a_stall_end_as_a_block() {
    let env = HookEnv::new();
    for (fault, said) in
        [("panic", "internal error at "), ("stall", "no decision within the time limit")]
    {
        let mut command = env.hook_command();
        command.env("RINGWALL_FAULT", fault);
        let event = json!({"tool_name": "Bash", "tool_input": bash("ls")});
        let answer = feed(command, event.to_string().as_bytes());
        assert_eq!(answer.code, Some(2), "{fault}");
        assert!(answer.stderr.contains(said), "{fault}: {}", answer.stderr);
    }
}

#[test]
fn a_wrong_command_line_is_a_block_too() {
    let env = HookEnv::new();
    for args in [&["hook"][..], &["hook", "nobody"], &["hook", "claude", "--level", "root"]] {
        let output = env.ringwall(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn on_error_allow_lets_pass_what_cannot_be_judged_and_says_so() {
    let env = HookEnv::new();
    env.write("home/.config/ringwall/ringwall.toml", "[guard]\non_error = \"allow\"\n");
    let answer = feed(env.hook_command(), b"not json");
    assert_eq!(answer.code, Some(0));
    assert!(answer.stderr.contains("allowed (guard.on_error)"), "{}", answer.stderr);
    // A refusal is a result, not an error.
    assert_eq!(env.hook("Read", &json!({"file_path": "/etc/passwd"})).verdict(), "deny");
    assert!(env.said(&["audit", "tail", "--json"]).contains("guard.on_error is"));
}

#[test]
fn a_broken_configuration_refuses_everything_and_says_where() {
    let env = HookEnv::new();
    env.write("project/ringwall.toml", "[filesystem]\nallow_raed = [\"/\"]\n");
    let answer = env.hook("Bash", &bash("ls"));
    assert_eq!(answer.verdict(), "deny");
    let reason = answer.reason();
    assert!(reason.contains("ringwall.toml:2: unknown key `filesystem.allow_raed`"), "{reason}");
    assert!(reason.contains("nearest key is `allow_read`"), "{reason}");
}

#[test]
fn an_untrusted_project_file_is_ignored_where_it_widens_and_the_refusal_says_so() {
    let env = HookEnv::new();
    env.write("project/ringwall.toml", "[filesystem]\nallow_read = [\"/etc\"]\n");
    let answer = env.hook("Read", &json!({"file_path": "/etc/passwd"}));
    assert_eq!(answer.verdict(), "deny");
    assert!(
        answer.stdout.contains("are not trusted; `ringwall policy check` shows them"),
        "{}",
        answer.stdout
    );
    env.said(&["trust", "--yes"]);
    assert_eq!(env.hook("Read", &json!({"file_path": "/etc/passwd"})).verdict(), "allow");
}

#[test]
fn the_workspace_is_where_the_agent_was_started_not_where_the_call_says() {
    let env = HookEnv::new();
    let secret = env.root.join("outside/secret.txt");
    let event = json!({
        "hook_event_name": "PreToolUse", "tool_name": "Read", "cwd": env.root.join("outside"),
        "tool_input": {"file_path": "secret.txt"},
    });
    assert_eq!(env.hook_event(&event).verdict(), "deny", "{}", secret.display());
    // Without the client's variable it is the git root of where the hook was started.
    let mut command = env.command(crate::hook_env::BINARY);
    command.args(["hook", "claude"]).current_dir(env.project().join("src"));
    let inside = json!({"tool_name": "Read", "tool_input": {"file_path": env.project().join("x")}});
    assert_eq!(feed(command, inside.to_string().as_bytes()).verdict(), "allow");
}

#[test]
fn a_home_directory_is_no_workspace() {
    let env = HookEnv::new();
    for dir in [env.home(), env.root.clone(), "/".into()] {
        let mut command = env.hook_command();
        command.env("CLAUDE_PROJECT_DIR", &dir);
        let event = json!({"tool_name": "Read", "tool_input": {"file_path": dir.join("x")}});
        let answer = feed(command, event.to_string().as_bytes());
        assert_eq!(answer.verdict(), "deny", "{}", dir.display());
        assert!(answer.stdout.contains("whole home directory"), "{}", answer.stdout);
    }
}

#[test]
fn a_workspace_reached_through_a_link_is_the_same_workspace() {
    let env = HookEnv::new();
    for file in ["project-link/src/main.rs", "project/src/main.rs"] {
        let mut command = env.hook_command();
        command.env("CLAUDE_PROJECT_DIR", env.root.join("project-link"));
        let event = json!({"tool_name": "Read", "tool_input": {"file_path": env.root.join(file)}});
        assert_eq!(feed(command, event.to_string().as_bytes()).verdict(), "allow", "{file}");
    }
}

#[test]
fn levels_and_phases_can_be_chosen_on_the_command_line() {
    let env = HookEnv::new();
    let write = |name: &str| json!({"tool_name": "Write", "tool_input": {"file_path": env.project().join(name)}});
    let judged = |args: &[&str], name: &str| {
        let mut command = env.hook_command();
        command.args(args);
        feed(command, write(name).to_string().as_bytes()).verdict()
    };
    assert_eq!(judged(&["--phase", "plan"], "src/main.rs"), "deny");
    assert_eq!(judged(&["--phase", "plan"], "TODO.md"), "allow");
    assert_eq!(judged(&["--phase", "learn"], "AGENTS.md"), "allow");
    assert_eq!(judged(&["--level", "readonly"], "src/main.rs"), "deny");
    assert_eq!(judged(&["--level", "readwrite"], "src/main.rs"), "allow");
}

#[test]
fn a_settings_change_that_switches_hooks_off_is_refused_whichever_file_it_is() {
    let env = HookEnv::new();
    let change = |source: &str, path: &str| {
        env.hook_event(&json!({
            "session_id": "s", "cwd": env.project(), "hook_event_name": "ConfigChange",
            "source": source, "file_path": env.root.join(path),
        }))
        .verdict()
    };
    env.said(&["install", "claude"]);
    assert_eq!(change("user_settings", "home/.claude/settings.json"), "allow");
    let local = "project/.claude/settings.local.json";
    env.write(local, "{\"model\": \"x\"}");
    assert_eq!(change("local_settings", local), "allow");
    env.write(local, "{\"disableAllHooks\": true}");
    assert_eq!(change("local_settings", local), "deny");
    // The client reads every file again when any change passes, so all are judged each time.
    env.write("project/.claude/settings.json", "{}");
    assert_eq!(change("project_settings", "project/.claude/settings.json"), "deny");
    std::fs::remove_file(env.root.join(local)).unwrap();
    assert_eq!(change("local_settings", local), "allow");
    // Our own entry may not go.
    env.write("home/.claude/settings.json", "{}");
    assert_eq!(change("user_settings", "home/.claude/settings.json"), "deny");
}

#[test]
fn random_bytes_and_mangled_calls_always_end_with_zero_or_two() {
    let env = HookEnv::new();
    let call = json!({
        "session_id": "s", "cwd": env.project(), "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": "Edit",
        "tool_input": {"file_path": env.project().join("a"), "old_string": "x"},
    })
    .to_string()
    .into_bytes();
    // A small generator with a fixed seed: a failure can be run again.
    let mut state = 0x9e37_79b9_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for round in 0..400 {
        let mut bytes = call.clone();
        for _ in 0..=random(6) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = u8::try_from(random(256)).unwrap(),
                1 => bytes.truncate(at + 1),
                _ => bytes.insert(at, b"{}[]\",:\\\0/."[random(11)]),
            }
        }
        let answer = feed(env.hook_command(), &bytes);
        assert!(matches!(answer.code, Some(0 | 2)), "round {round}: {:?}", answer.code);
        answer.verdict();
    }
}
