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
    let world = HookEnv::new();
    let before = "{\n\t\"model\":   \"x\",\n\t\"hooks\": {\"Stop\": [ ]},\n\t\"permissions\": {\"deny\": [\"Bash(rm:*)\"]}\n}";
    world.write(SETTINGS, before);
    world.said(&["install", "claude"]);
    let installed: Value = serde_json::from_str(&world.read(SETTINGS)).unwrap();
    assert_eq!(installed["permissions"]["deny"][0], "Bash(rm:*)");
    assert!(installed["hooks"]["PreToolUse"][0]["hooks"][0]["command"].is_string());
    assert_eq!(installed["hooks"]["PreToolUse"][0]["matcher"], "*");
    assert_eq!(installed["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"], "block");
    assert!(installed["hooks"]["ConfigChange"].is_array());
    world.said(&["install", "claude"]);
    world.said(&["uninstall", "claude"]);
    assert_eq!(world.read(SETTINGS), before);
}

#[test]
fn a_file_that_did_not_exist_is_gone_again() {
    let world = HookEnv::new();
    for scope in ["user", "project", "local"] {
        world.said(&["install", "claude", "--scope", scope]);
        world.said(&["uninstall", "claude", "--scope", scope]);
    }
    assert!(!world.root.join(SETTINGS).exists());
    assert!(!world.project().join(".claude/settings.json").exists());
    assert!(!world.project().join(".claude/settings.local.json").exists());
}

#[test]
fn edits_made_since_are_kept_when_uninstalling() {
    let world = HookEnv::new();
    world.write(SETTINGS, "{\n  \"model\": \"x\"\n}\n");
    world.said(&["install", "claude"]);
    let edited = world.read(SETTINGS).replace("\"x\"", "\"y\"");
    world.write(SETTINGS, &edited);
    world.said(&["uninstall", "claude"]);
    let after: Value = serde_json::from_str(&world.read(SETTINGS)).unwrap();
    assert_eq!(after, serde_json::json!({"model": "y"}));
}

#[test]
fn edits_made_between_two_installs_are_kept_when_uninstalling() {
    let world = HookEnv::new();
    for before in [Some("{\"a\": 1}"), None] {
        let _ = std::fs::remove_file(world.root.join(SETTINGS));
        if let Some(before) = before {
            world.write(SETTINGS, before);
        }
        world.said(&["install", "claude"]);
        let edited = world.read(SETTINGS).replacen('{', "{\"mine\": true,", 1);
        world.write(SETTINGS, &edited);
        world.said(&["install", "claude"]);
        world.said(&["uninstall", "claude"]);
        let after: Value = serde_json::from_str(&world.read(SETTINGS)).unwrap();
        assert_eq!(after["mine"], true, "{after}");
        assert_eq!(after["a"].is_number(), before.is_some(), "{after}");
        assert_eq!(after["hooks"], Value::Null, "{after}");
    }
}

#[test]
fn settings_that_the_client_would_not_use_are_left_alone() {
    let world = HookEnv::new();
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
        world.write(SETTINGS, broken);
        let output = world.ringwall(&["install", "claude"]);
        assert_eq!(output.status.code(), Some(78), "{broken}");
        assert!(text(&output.stderr).contains("settings.json: "), "{}", text(&output.stderr));
        assert_eq!(world.read(SETTINGS), broken);
    }
}

#[test]
fn a_byte_order_mark_is_no_obstacle() {
    let world = HookEnv::new();
    let before = "\u{feff}{\"model\": \"x\"}";
    world.write(SETTINGS, before);
    world.said(&["install", "claude"]);
    assert!(world.read(SETTINGS).starts_with("\u{feff}{"));
    assert!(world.said(&["doctor"]).contains("denies what it must"));
    world.said(&["uninstall", "claude"]);
    assert_eq!(world.read(SETTINGS), before);
}

/// Doctor must fail, and say all this.
fn doctor_finds(world: &HookEnv, expected: &[&str]) {
    let output = world.ringwall(&["doctor"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{expected:?}: {said}");
    assert!(expected.iter().all(|expected| said.contains(expected)), "{expected:?}: {said}");
}

/// A program that stands in for ours, or for a client.
fn script(world: &HookEnv, path: &str, lines: &str) -> String {
    let path = world.program(path, &format!("#!/bin/sh\n{lines}\n"));
    path.display().to_string()
}

#[test]
fn doctor_calls_the_installed_hook_and_notices_one_that_is_broken() {
    let world = HookEnv::new();
    world.said(&["install", "claude"]);
    let said = world.said(&["doctor"]);
    assert!(said.contains("denies what it must deny, allows a harmless call"), "{said}");
    // The log has the calls as doctor's own, and does not list them among the denials.
    let seen = world.said(&["audit", "query"]);
    assert!(seen.contains("sandbox-switch") && seen.contains("ringwall-doctor-"), "{seen}");
    assert!(seen.lines().all(|line| line.split_whitespace().nth(3) == Some("doctor")), "{seen}");
    assert_eq!(world.said(&["audit", "query", "--verdict", "deny"]), "");
    let announced = world.said(&["audit", "query", "--agent", "doctor", "--json"]);
    let announced: Value = serde_json::from_str(announced.lines().next().unwrap()).unwrap();
    let session = announced["session"].as_str().unwrap();
    let denied = world.said(&["audit", "query", "--verdict", "deny", "--session", session]);
    assert_eq!(denied.lines().count(), 2, "{denied}");
    // A session that only looks like one of doctor's is an agent's.
    let call = json!({"session_id": format!("{session}0"), "cwd": world.project(),
                      "hook_event_name": "PreToolUse", "tool_name": "Read",
                      "tool_input": {"file_path": "/etc/passwd"}});
    world.hook_event(&call);
    let denied = world.said(&["audit", "query", "--verdict", "deny"]);
    assert!(denied.contains("claude") && denied.contains("/etc/passwd"), "{denied}");

    let good = world.read(SETTINGS);
    let nothing = script(&world, "nothing/ringwall", "cat > /dev/null");
    let only_the_flag = script(
        &world,
        "flag/ringwall",
        "if grep -q dangerouslyDisableSandbox; then echo no >&2; exit 2; fi",
    );
    let sleeper = script(&world, "sleeper/ringwall", "sleep 600");
    for (program, expected) in [
        ("/nonexistent/ringwall", "gave no valid answer"),
        (&nothing, "allowed a call that must be denied"),
        (&only_the_flag, "a read outside the workspace"),
        (&sleeper, "no answer within"),
    ] {
        world.write(SETTINGS, &good.replace(BINARY, program));
        doctor_finds(&world, &[expected, "it is not the one that was installed"]);
    }
}

#[test]
fn doctor_notices_every_change_to_the_settings() {
    let world = HookEnv::new();
    world.said(&["install", "claude"]);
    let good = world.read(SETTINGS);
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
        world.write(SETTINGS, &good.replacen(from, to, 1));
        doctor_finds(&world, &[expected]);
    }
    world.write(SETTINGS, "{}");
    doctor_finds(&world, &["the hook that was installed here was removed"]);
    std::fs::remove_file(world.root.join(SETTINGS)).unwrap();
    doctor_finds(&world, &["the file was removed, and the hook with it"]);
    world.write(SETTINGS, &good);
    let output = world.ringwall(&["doctor", "--json"]);
    let json: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(json["good"], true, "{json}");
}

#[test]
fn doctor_asks_the_client_and_believes_only_one_that_minds_broken_settings() {
    let world = HookEnv::new();
    let client = "case $1 in --version) echo 9.9.9;; doctor)";
    let broken = "echo \"- $PWD/.claude/settings.local.json: broken\";";
    let ours = "echo \"- $HOME/.claude/settings.json › model: Expected string\";";
    let doctor = |said: &str| {
        script(&world, "bin/claude", &format!("{client} {said} ;; esac"));
        let search_path = format!("{}:/usr/bin:/bin", world.root.join("bin").display());
        let mut command = world.command(BINARY);
        text(&command.env("PATH", search_path).arg("doctor").output().unwrap().stdout)
    };
    world.said(&["install", "claude"]);
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
    let world = HookEnv::new();
    world.write("home/.config/ringwall/ringwall.toml", "version = 1\nlevel = \"full\"\n");
    world.said(&["install", "claude"]);
    let said = world.said(&["doctor"]);
    assert!(said.contains("was not tried") && said.contains("denies what it must"), "{said}");
}

#[test]
fn a_binary_of_another_name_is_installed_once_and_found() {
    let world = HookEnv::new();
    let binary = world.root.join("rw");
    fixtures::copy_program(BINARY, &binary);
    let run = |args: &[&str]| world.command(&binary).args(args).output().unwrap();
    assert!(run(&["install", "claude"]).status.success());
    assert!(run(&["install", "claude"]).status.success());
    let settings: Value = serde_json::from_str(&world.read(SETTINGS)).unwrap();
    assert_eq!(settings["hooks"]["PreToolUse"].as_array().unwrap().len(), 1);
    let doctor = run(&["doctor"]);
    assert!(doctor.status.success(), "{}", text(&doctor.stdout));
    // The list knows it, whoever asks.
    assert!(world.said(&["doctor"]).contains("denies what it must"));
    world.said(&["install", "claude"]);
    let settings: Value = serde_json::from_str(&world.read(SETTINGS)).unwrap();
    assert_eq!(settings["hooks"]["PreToolUse"].as_array().unwrap().len(), 1);
}

#[test]
fn a_hook_of_the_users_that_starts_ours_is_kept() {
    let world = HookEnv::new();
    let line = format!("/home/u/wrap.sh '{BINARY}' hook claude");
    let own = serde_json::json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [
        {"type": "command", "command": line},
    ]}]}});
    world.write(SETTINGS, &own.to_string());
    world.said(&["install", "claude"]);
    world.write(SETTINGS, &world.read(SETTINGS).replacen('{', "{\"model\": \"x\",", 1));
    world.said(&["uninstall", "claude"]);
    let after: Value = serde_json::from_str(&world.read(SETTINGS)).unwrap();
    assert_eq!(after["hooks"], own["hooks"]);
}

#[test]
fn a_phase_survives_another_install_and_other_arguments_are_reported() {
    let world = HookEnv::new();
    world.said(&["install", "claude"]);
    let good = world.read(SETTINGS);
    // Where the user put it into one entry only, it counts for all.
    let at = good.rfind("hook claude").unwrap() + "hook claude".len();
    world.write(SETTINGS, &format!("{} --phase plan{}", &good[..at], &good[at..]));
    assert!(world.said(&["install", "claude"]).contains("kept `--phase plan`"));
    assert!(!world.read(SETTINGS).contains("hook claude\""));
    assert!(world.said(&["doctor"]).contains("denies what it must"));
    world.write(SETTINGS, &good.replace("hook claude", "hook claude --level full"));
    assert!(world.said(&["install", "claude"]).contains("removed `--level full`"));
    assert!(!world.read(SETTINGS).contains("--level"));
}

#[test]
fn a_link_to_settings_that_do_not_exist_yet_stays_a_link() {
    let world = HookEnv::new();
    std::fs::create_dir(world.home().join(".claude")).unwrap();
    let link = world.root.join(SETTINGS);
    symlink("../dotfiles/claude.json", &link).unwrap();
    world.said(&["install", "claude"]);
    assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("../dotfiles/claude.json"));
    assert!(world.read("home/dotfiles/claude.json").contains("hook claude"));
    world.said(&["uninstall", "claude"]);
    assert!(link.is_symlink() && !link.exists());
    std::fs::remove_file(&link).unwrap();
    symlink("settings.json", &link).unwrap();
    assert!(!world.ringwall(&["install", "claude"]).status.success());
}

fn list(world: &HookEnv) -> Vec<Value> {
    let list: Value = serde_json::from_str(&world.read(LIST)).unwrap();
    list["installs"].as_array().unwrap().clone()
}

#[test]
fn installs_at_the_same_time_are_all_noted() {
    let world = HookEnv::new();
    let projects: Vec<_> = (0..20).map(|n| world.root.join(format!("p{n}"))).collect();
    let start = |project: &PathBuf| {
        std::fs::create_dir(project).unwrap();
        let mut command = world.command(BINARY);
        command.args(["install", "claude", "--scope", "project"]).current_dir(project);
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = projects.iter().map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let noted: Vec<_> = list(&world).iter().map(|install| install["path"].clone()).collect();
    for project in &projects {
        let settings = project.join(".claude/settings.json");
        assert!(settings.exists());
        assert!(noted.contains(&serde_json::json!(settings)), "{}", settings.display());
    }
}

#[test]
fn large_settings_do_not_fill_the_list() {
    let world = HookEnv::new();
    let before = format!("{{\"x\": \"{}\"}}", "a".repeat(900 << 10));
    let local = "project/.claude/settings.local.json";
    world.write(SETTINGS, &before);
    world.write(local, &before);
    for scope in ["user", "local"] {
        world.said(&["install", "claude", "--scope", scope]);
    }
    assert!(world.read(LIST).len() < 16 << 10);
    for scope in ["user", "local"] {
        world.said(&["install", "claude", "--scope", scope]);
        world.said(&["uninstall", "claude", "--scope", scope]);
    }
    assert!(world.read(SETTINGS) == before && world.read(local) == before);
    // Nothing is left of them.
    let backups = world.home().join(".local/state/ringwall/backups");
    assert_eq!(std::fs::read_dir(backups).unwrap().count(), 0);
}

#[test]
fn without_a_list_of_installs_the_settings_must_still_call_us() {
    let world = HookEnv::new();
    let changed = || {
        world
            .hook_event(&serde_json::json!({
                "session_id": "s", "cwd": world.project(), "hook_event_name": "ConfigChange",
                "source": "user_settings", "file_path": world.root.join(SETTINGS),
            }))
            .verdict()
    };
    world.said(&["install", "claude"]);
    let good = world.read(SETTINGS);
    assert_eq!(changed(), "allow");
    let forged = serde_json::json!({"installs": [{
        "agent": "claude", "path": world.root.join("other.json"),
        "program": "x", "groups": [], "before": null, "after": "",
    }]});
    for list in
        [None, Some("{\"installs\": []}".to_owned()), Some("{".into()), Some(forged.to_string())]
    {
        match &list {
            Some(text) => drop(world.write(LIST, text)),
            None => std::fs::remove_file(world.root.join(LIST)).unwrap(),
        }
        world.write(SETTINGS, &good);
        assert_eq!(changed(), "allow", "{list:?}");
        for bad in [
            "{}".to_owned(),
            good.replace("\"*\"", "\"Nope\""),
            good.replace("hook claude", "--version"),
        ] {
            world.write(SETTINGS, &bad);
            assert_eq!(changed(), "deny", "{list:?} {bad}");
        }
    }
}

#[test]
fn a_binary_in_a_path_with_a_space_works() {
    let world = HookEnv::new();
    let dir = world.root.join("my tools");
    std::fs::create_dir(&dir).unwrap();
    let binary = dir.join("ringwall");
    fixtures::copy_program(BINARY, &binary);
    let run = |args: &[&str]| world.command(&binary).args(args).output().unwrap();
    assert!(run(&["install", "claude"]).status.success());
    let doctor = run(&["doctor"]);
    assert!(doctor.status.success(), "{}", text(&doctor.stdout));
    assert!(text(&doctor.stdout).contains("denies what it must"));
}

#[test]
fn init_sets_up_a_project_and_keeps_what_is_there() {
    let world = HookEnv::new();
    std::fs::create_dir(world.home().join(".claude")).unwrap();
    let said = world.said(&["init"]);
    assert!(said.contains("wrote") && said.contains("denies what it must"), "{said}");
    let file = world.read("project/ringwall.toml");
    assert!(world.said(&["policy", "check"]).contains("is valid"));
    assert!(!world.said(&["policy", "show"]).contains("ignored until trusted"));
    world.write("project/ringwall.toml", &format!("{file}# mine\n"));
    assert!(world.said(&["init"]).contains("unchanged"));
    assert!(world.read("project/ringwall.toml").ends_with("# mine\n"));
}
