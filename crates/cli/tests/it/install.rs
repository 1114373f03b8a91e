//! Installing, proving and undoing the hook.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fixtures::text;
use serde_json::{Value, json};

use crate::hook_env::{Answer as _, BINARY, HookEnv};

const SETTINGS: &str = "home/.claude/settings.json";
const LIST: &str = "home/.local/state/ringwall/installs.json";

#[test]
fn installing_and_uninstalling_leaves_the_very_same_bytes() {
    let env = HookEnv::new();
    let before = "{\n\t\"model\":   \"x\",\n\t\"hooks\": {\"Stop\": [ ]},\n\t\"permissions\": {\"deny\": [\"Bash(rm:*)\"]}\n}";
    env.write(SETTINGS, before);
    env.said(&["install", "claude"]);
    let installed: Value = serde_json::from_str(&env.read(SETTINGS)).unwrap();
    assert_eq!(installed["permissions"]["deny"][0], "Bash(rm:*)");
    assert!(installed["hooks"]["PreToolUse"][0]["hooks"][0]["command"].is_string());
    assert_eq!(installed["hooks"]["PreToolUse"][0]["matcher"], "*");
    assert_eq!(installed["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"], "block");
    assert!(installed["hooks"]["ConfigChange"].is_array());
    env.said(&["install", "claude"]);
    env.said(&["uninstall", "claude"]);
    assert_eq!(env.read(SETTINGS), before);
}

#[test]
fn a_file_that_did_not_exist_is_gone_again() {
    let env = HookEnv::new();
    for scope in ["user", "project", "local"] {
        env.said(&["install", "claude", "--scope", scope]);
        env.said(&["uninstall", "claude", "--scope", scope]);
    }
    assert!(!env.root.join(SETTINGS).exists());
    assert!(!env.project().join(".claude/settings.json").exists());
    assert!(!env.project().join(".claude/settings.local.json").exists());
}

#[test]
fn edits_made_since_are_kept_when_uninstalling() {
    let env = HookEnv::new();
    env.write(SETTINGS, "{\n  \"model\": \"x\"\n}\n");
    env.said(&["install", "claude"]);
    let edited = env.read(SETTINGS).replace("\"x\"", "\"y\"");
    env.write(SETTINGS, &edited);
    env.said(&["uninstall", "claude"]);
    let after: Value = serde_json::from_str(&env.read(SETTINGS)).unwrap();
    assert_eq!(after, serde_json::json!({"model": "y"}));
}

#[test]
fn edits_made_between_two_installs_are_kept_when_uninstalling() {
    let env = HookEnv::new();
    for before in [Some("{\"a\": 1}"), None] {
        let _ = std::fs::remove_file(env.root.join(SETTINGS));
        if let Some(before) = before {
            env.write(SETTINGS, before);
        }
        env.said(&["install", "claude"]);
        let edited = env.read(SETTINGS).replacen('{', "{\"mine\": true,", 1);
        env.write(SETTINGS, &edited);
        env.said(&["install", "claude"]);
        env.said(&["uninstall", "claude"]);
        let after: Value = serde_json::from_str(&env.read(SETTINGS)).unwrap();
        assert_eq!(after["mine"], true, "{after}");
        assert_eq!(after["a"].is_number(), before.is_some(), "{after}");
        assert_eq!(after["hooks"], Value::Null, "{after}");
    }
}

#[test]
fn settings_that_the_client_would_not_use_are_left_alone() {
    let env = HookEnv::new();
    for broken in [
        "{",
        "[]",
        "{\"hooks\": 1}",
        "{\n  // mine\n  \"model\": \"x\"\n}",
        "{\"model\": \"x\",}",
        "{\"model\": 5}",
        "{\"permissions\": {\"allow\": \"Bash\"}}",
        "{\"disableAllHooks\": true}",
        "{\"env\": {\"CLAUDE_CODE_SIMPLE\": \"1\"}}",
    ] {
        env.write(SETTINGS, broken);
        let output = env.ringwall(&["install", "claude"]);
        assert_eq!(output.status.code(), Some(78), "{broken}");
        assert!(text(&output.stderr).contains("settings.json: "), "{}", text(&output.stderr));
        assert_eq!(env.read(SETTINGS), broken);
    }
}

#[test]
fn a_byte_order_mark_is_no_obstacle() {
    let env = HookEnv::new();
    let before = "\u{feff}{\"model\": \"x\"}";
    env.write(SETTINGS, before);
    env.said(&["install", "claude"]);
    assert!(env.read(SETTINGS).starts_with("\u{feff}{"));
    assert!(env.said(&["doctor"]).contains("denies what it must"));
    env.said(&["uninstall", "claude"]);
    assert_eq!(env.read(SETTINGS), before);
}

/// Doctor must fail, and say all this.
fn doctor_finds(env: &HookEnv, expected: &[&str]) {
    let output = env.ringwall(&["doctor"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{expected:?}: {said}");
    assert!(expected.iter().all(|expected| said.contains(expected)), "{expected:?}: {said}");
}

/// A program that stands in for ours, or for a client.
fn script(env: &HookEnv, path: &str, lines: &str) -> String {
    let path = env.program(path, &format!("#!/bin/sh\n{lines}\n"));
    path.display().to_string()
}

#[test]
fn doctor_calls_the_installed_hook_and_notices_one_that_is_broken() {
    let env = HookEnv::new();
    env.said(&["install", "claude"]);
    let said = env.said(&["doctor"]);
    assert!(said.contains("denies what it must deny, allows a harmless call"), "{said}");
    // The log has the calls as doctor's own, and does not list them among the denials.
    let seen = env.said(&["audit", "query"]);
    assert!(seen.contains("sandbox-switch") && seen.contains("ringwall-doctor-"), "{seen}");
    assert!(seen.lines().all(|line| line.split_whitespace().nth(3) == Some("doctor")), "{seen}");
    assert_eq!(env.said(&["audit", "query", "--verdict", "deny"]), "");
    let announced = env.said(&["audit", "query", "--agent", "doctor", "--json"]);
    let announced: Value = serde_json::from_str(announced.lines().next().unwrap()).unwrap();
    let session = announced["session"].as_str().unwrap();
    let denied = env.said(&["audit", "query", "--verdict", "deny", "--session", session]);
    assert_eq!(denied.lines().count(), 2, "{denied}");
    // A session that only looks like one of doctor's is an agent's.
    let call = json!({"session_id": format!("{session}0"), "cwd": env.project(),
                      "hook_event_name": "PreToolUse", "tool_name": "Read",
                      "tool_input": {"file_path": "/etc/passwd"}});
    env.hook_event(&call);
    let denied = env.said(&["audit", "query", "--verdict", "deny"]);
    assert!(denied.contains("claude") && denied.contains("/etc/passwd"), "{denied}");

    let good = env.read(SETTINGS);
    let nothing = script(&env, "nothing/ringwall", "cat > /dev/null");
    let only_the_flag = script(
        &env,
        "flag/ringwall",
        "if grep -q dangerouslyDisableSandbox; then echo no >&2; exit 2; fi",
    );
    let sleeper = script(&env, "sleeper/ringwall", "sleep 600");
    for (program, expected) in [
        ("/nonexistent/ringwall", "gave no valid answer"),
        (&nothing, "allowed a call that must be denied"),
        (&only_the_flag, "a read outside the workspace"),
        (&sleeper, "no answer within"),
    ] {
        env.write(SETTINGS, &good.replace(BINARY, program));
        doctor_finds(&env, &[expected, "it is not the one that was installed"]);
    }
}

#[test]
fn doctor_notices_every_change_to_the_settings() {
    let env = HookEnv::new();
    env.said(&["install", "claude"]);
    let good = env.read(SETTINGS);
    for (from, to, expected) in [
        ("{", "{\n// mine\n", "not valid JSON"),
        ("{", "{// mine\n\"disableAllHooks\": true,", "not valid JSON"),
        ("{", "{\"disableAllHooks\": true,", "`disableAllHooks` switches hooks off"),
        ("{", "{\"env\": {\"CLAUDE_CODE_SAFE_MODE\": \"1\"},", "switches hooks off"),
        ("{", "{\"model\": 5,", "does not accept the value of `model`"),
        (
            "{",
            "{\"permissions\": {\"allow\": \"Bash\"},",
            "does not accept the value of `permissions`",
        ),
        ("\"matcher\": \"*\"", "\"matcher\": \"WebSearch\"", "its matcher is different"),
        ("\"timeout\": 10", "\"timeout\": 10, \"async\": true", "`async`"),
        ("\"timeout\": 10", "\"timeout\": 10, \"if\": \"Bash(git *)\"", "`if`"),
        ("\"type\": \"command\"", "\"type\": \"prompt\"", "`type`"),
        ("\"onFailure\": \"block\"", "\"onFailure\": \"deny\"", "`onFailure`"),
        ("\"PreToolUse\"", "\"PostToolUse\"", "not called at `PreToolUse`"),
        ("\"ConfigChange\"", "\"Stop\"", "not called at `ConfigChange`"),
        ("hook claude", "hook claude --level full", "started with `--level full`"),
        ("hook claude", "--version", "was changed"),
    ] {
        assert!(good.contains(from), "{from} in {good}");
        env.write(SETTINGS, &good.replacen(from, to, 1));
        doctor_finds(&env, &[expected]);
    }
    env.write(SETTINGS, "{}");
    doctor_finds(&env, &["the hook that was installed here was removed"]);
    std::fs::remove_file(env.root.join(SETTINGS)).unwrap();
    doctor_finds(&env, &["the file was removed, and the hook with it"]);
    env.write(SETTINGS, &good);
    let output = env.ringwall(&["doctor", "--json"]);
    let json: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(json["good"], true, "{json}");
}

#[test]
fn doctor_asks_the_client_and_believes_only_one_that_minds_broken_settings() {
    let env = HookEnv::new();
    let client = "case $1 in --version) echo 9.9.9;; doctor)";
    let broken = "echo \"- $PWD/.claude/settings.local.json: broken\";";
    let ours = "echo \"- $HOME/.claude/settings.json › model: Expected string\";";
    let doctor = |said: &str| {
        script(&env, "bin/claude", &format!("{client} {said} ;; esac"));
        let search_path = format!("{}:/usr/bin:/bin", env.root.join("bin").display());
        let mut command = env.command(BINARY);
        text(&command.env("PATH", search_path).arg("doctor").output().unwrap().stdout)
    };
    env.said(&["install", "claude"]);
    let said = doctor(broken);
    assert!(said.contains("Claude Code accepts it"), "{said}");
    let said = doctor(&format!("{broken} {ours}"));
    assert!(said.contains("may ignore all of it: model: Expected string"), "{said}");
    for said in [doctor(ours), doctor("true")] {
        assert!(said.contains("cannot check whether Claude Code accepts it"), "{said}");
    }
}

#[test]
fn doctor_says_when_nothing_outside_is_refused() {
    let env = HookEnv::new();
    env.write("home/.config/ringwall/ringwall.toml", "version = 1\nlevel = \"full\"\n");
    env.said(&["install", "claude"]);
    let said = env.said(&["doctor"]);
    assert!(said.contains("was not tried") && said.contains("denies what it must"), "{said}");
}

#[test]
fn a_binary_of_another_name_is_installed_once_and_found() {
    let env = HookEnv::new();
    let binary = env.root.join("rw");
    fixtures::copy_program(BINARY, &binary);
    let run = |args: &[&str]| env.command(&binary).args(args).output().unwrap();
    assert!(run(&["install", "claude"]).status.success());
    assert!(run(&["install", "claude"]).status.success());
    let settings: Value = serde_json::from_str(&env.read(SETTINGS)).unwrap();
    assert_eq!(settings["hooks"]["PreToolUse"].as_array().unwrap().len(), 1);
    let doctor = run(&["doctor"]);
    assert!(doctor.status.success(), "{}", text(&doctor.stdout));
    // The list knows it, whoever asks.
    assert!(env.said(&["doctor"]).contains("denies what it must"));
    env.said(&["install", "claude"]);
    let settings: Value = serde_json::from_str(&env.read(SETTINGS)).unwrap();
    assert_eq!(settings["hooks"]["PreToolUse"].as_array().unwrap().len(), 1);
}

#[test]
fn a_hook_of_the_users_that_starts_ours_is_kept() {
    let env = HookEnv::new();
    let line = format!("/home/u/wrap.sh '{BINARY}' hook claude");
    let own = serde_json::json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [
        {"type": "command", "command": line},
    ]}]}});
    env.write(SETTINGS, &own.to_string());
    env.said(&["install", "claude"]);
    env.write(SETTINGS, &env.read(SETTINGS).replacen('{', "{\"model\": \"x\",", 1));
    env.said(&["uninstall", "claude"]);
    let after: Value = serde_json::from_str(&env.read(SETTINGS)).unwrap();
    assert_eq!(after["hooks"], own["hooks"]);
}

#[test]
fn a_phase_survives_another_install_and_other_arguments_are_reported() {
    let env = HookEnv::new();
    env.said(&["install", "claude"]);
    let good = env.read(SETTINGS);
    // Where the user put it into one entry only, it counts for all.
    let at = good.rfind("hook claude").unwrap() + "hook claude".len();
    env.write(SETTINGS, &format!("{} --phase plan{}", &good[..at], &good[at..]));
    assert!(env.said(&["install", "claude"]).contains("kept `--phase plan`"));
    assert!(!env.read(SETTINGS).contains("hook claude\""));
    assert!(env.said(&["doctor"]).contains("denies what it must"));
    env.write(SETTINGS, &good.replace("hook claude", "hook claude --level full"));
    assert!(env.said(&["install", "claude"]).contains("removed `--level full`"));
    assert!(!env.read(SETTINGS).contains("--level"));
}

#[test]
fn a_link_to_settings_that_do_not_exist_yet_stays_a_link() {
    let env = HookEnv::new();
    std::fs::create_dir(env.home().join(".claude")).unwrap();
    let link = env.root.join(SETTINGS);
    symlink("../dotfiles/claude.json", &link).unwrap();
    env.said(&["install", "claude"]);
    assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("../dotfiles/claude.json"));
    assert!(env.read("home/dotfiles/claude.json").contains("hook claude"));
    env.said(&["uninstall", "claude"]);
    assert!(link.is_symlink() && !link.exists());
    std::fs::remove_file(&link).unwrap();
    symlink("settings.json", &link).unwrap();
    assert!(!env.ringwall(&["install", "claude"]).status.success());
}

fn list(env: &HookEnv) -> Vec<Value> {
    let list: Value = serde_json::from_str(&env.read(LIST)).unwrap();
    list["installs"].as_array().unwrap().clone()
}

#[test]
fn installs_at_the_same_time_are_all_noted() {
    let env = HookEnv::new();
    let projects: Vec<_> = (0..20).map(|n| env.root.join(format!("p{n}"))).collect();
    let start = |project: &PathBuf| {
        std::fs::create_dir(project).unwrap();
        let mut command = env.command(BINARY);
        command.args(["install", "claude", "--scope", "project"]).current_dir(project);
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = projects.iter().map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let noted: Vec<_> = list(&env).iter().map(|install| install["path"].clone()).collect();
    for project in &projects {
        let settings = project.join(".claude/settings.json");
        assert!(settings.exists());
        assert!(noted.contains(&serde_json::json!(settings)), "{}", settings.display());
    }
}

#[test]
fn large_settings_do_not_fill_the_list() {
    let env = HookEnv::new();
    let before = format!("{{\"x\": \"{}\"}}", "a".repeat(900 << 10));
    let local = "project/.claude/settings.local.json";
    env.write(SETTINGS, &before);
    env.write(local, &before);
    for scope in ["user", "local"] {
        env.said(&["install", "claude", "--scope", scope]);
    }
    assert!(env.read(LIST).len() < 16 << 10);
    for scope in ["user", "local"] {
        env.said(&["install", "claude", "--scope", scope]);
        env.said(&["uninstall", "claude", "--scope", scope]);
    }
    assert!(env.read(SETTINGS) == before && env.read(local) == before);
    // Nothing is left of them.
    let backups = env.home().join(".local/state/ringwall/backups");
    assert_eq!(std::fs::read_dir(backups).unwrap().count(), 0);
}

#[test]
fn without_a_list_of_installs_the_settings_must_still_call_us() {
    let env = HookEnv::new();
    let changed = || {
        env.hook_event(&serde_json::json!({
            "session_id": "s", "cwd": env.project(), "hook_event_name": "ConfigChange",
            "source": "user_settings", "file_path": env.root.join(SETTINGS),
        }))
        .verdict()
    };
    env.said(&["install", "claude"]);
    let good = env.read(SETTINGS);
    assert_eq!(changed(), "allow");
    let forged = serde_json::json!({"installs": [{
        "agent": "claude", "path": env.root.join("other.json"),
        "program": "x", "groups": [], "before": null, "after": "",
    }]});
    for list in
        [None, Some("{\"installs\": []}".to_owned()), Some("{".into()), Some(forged.to_string())]
    {
        match &list {
            Some(text) => drop(env.write(LIST, text)),
            None => std::fs::remove_file(env.root.join(LIST)).unwrap(),
        }
        env.write(SETTINGS, &good);
        assert_eq!(changed(), "allow", "{list:?}");
        for bad in [
            "{}".to_owned(),
            good.replace("\"*\"", "\"Nope\""),
            good.replace("hook claude", "--version"),
        ] {
            env.write(SETTINGS, &bad);
            assert_eq!(changed(), "deny", "{list:?} {bad}");
        }
    }
}

#[test]
fn a_binary_in_a_path_with_a_space_works() {
    let env = HookEnv::new();
    let dir = env.root.join("my tools");
    std::fs::create_dir(&dir).unwrap();
    let binary = dir.join("ringwall");
    fixtures::copy_program(BINARY, &binary);
    let run = |args: &[&str]| env.command(&binary).args(args).output().unwrap();
    assert!(run(&["install", "claude"]).status.success());
    let doctor = run(&["doctor"]);
    assert!(doctor.status.success(), "{}", text(&doctor.stdout));
    assert!(text(&doctor.stdout).contains("denies what it must"));
}

#[test]
fn init_sets_up_a_project_and_keeps_what_is_there() {
    let env = HookEnv::new();
    std::fs::create_dir(env.home().join(".claude")).unwrap();
    let said = env.said(&["init"]);
    assert!(said.contains("wrote") && said.contains("denies what it must"), "{said}");
    let file = env.read("project/ringwall.toml");
    assert!(env.said(&["policy", "check"]).contains("is valid"));
    assert!(!env.said(&["policy", "show"]).contains("ignored until trusted"));
    env.write("project/ringwall.toml", &format!("{file}# mine\n"));
    assert!(env.said(&["init"]).contains("unchanged"));
    assert!(env.read("project/ringwall.toml").ends_with("# mine\n"));
}
