//! Installing, proving and undoing the hook.

use serde_json::Value;

use crate::world::{BINARY, World, text};

const SETTINGS: &str = "home/.claude/settings.json";

#[test]
fn installing_and_uninstalling_leaves_the_very_same_bytes() {
    let world = World::new();
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
    let world = World::new();
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
    let world = World::new();
    world.write(SETTINGS, "{\n  \"model\": \"x\"\n}\n");
    world.said(&["install", "claude"]);
    let edited = world.read(SETTINGS).replace("\"x\"", "\"y\"");
    world.write(SETTINGS, &edited);
    world.said(&["uninstall", "claude"]);
    let after: Value = serde_json::from_str(&world.read(SETTINGS)).unwrap();
    assert_eq!(after, serde_json::json!({"model": "y"}));
}

#[test]
fn settings_that_cannot_be_edited_are_left_alone() {
    let world = World::new();
    for broken in ["{", "[]", "{\"hooks\": 1}"] {
        world.write(SETTINGS, broken);
        let output = world.ringwall(&["install", "claude"]);
        assert_eq!(output.status.code(), Some(78), "{broken}");
        assert_eq!(world.read(SETTINGS), broken);
    }
}

#[test]
fn doctor_calls_the_installed_hook_and_notices_one_that_is_broken() {
    let world = World::new();
    world.said(&["install", "claude"]);
    let said = world.said(&["doctor"]);
    assert!(said.contains("refuses what it must, passes what it may"), "{said}");
    // The audit has seen both calls.
    assert!(world.said(&["audit", "query", "--session", "doctor"]).contains("sandbox-switch"));

    let good = world.read(SETTINGS);
    for (from, to, expected) in [
        (BINARY, "/nonexistent/ringwall", "answered nothing usable"),
        (BINARY, "/bin/true ringwall", "let a call pass that must be refused"),
    ] {
        world.write(SETTINGS, &good.replace(from, to));
        let output = world.ringwall(&["doctor"]);
        assert_eq!(output.status.code(), Some(1), "{to}");
        assert!(text(&output.stdout).contains(expected), "{}", text(&output.stdout));
    }
    world.write(SETTINGS, &good.replacen('{', "{\"disableAllHooks\": true,", 1));
    let output = world.ringwall(&["doctor", "--json"]);
    let json: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(json["good"], false);
    assert!(json.to_string().contains("switches hooks off"), "{json}");
}

#[test]
fn a_binary_in_a_path_with_a_space_works() {
    let world = World::new();
    let dir = world.root.join("my tools");
    std::fs::create_dir(&dir).unwrap();
    let binary = dir.join("ringwall");
    std::fs::copy(BINARY, &binary).unwrap();
    let run = |args: &[&str]| world.command(&binary).args(args).output().unwrap();
    assert!(run(&["install", "claude"]).status.success());
    let doctor = run(&["doctor"]);
    assert!(doctor.status.success(), "{}", text(&doctor.stdout));
    assert!(text(&doctor.stdout).contains("refuses what it must"));
}

#[test]
fn init_sets_up_a_project_and_keeps_what_is_there() {
    let world = World::new();
    std::fs::create_dir(world.home().join(".claude")).unwrap();
    let said = world.said(&["init"]);
    assert!(said.contains("wrote") && said.contains("refuses what it must"), "{said}");
    let file = world.read("project/ringwall.toml");
    assert!(world.said(&["policy", "check"]).contains("is valid"));
    assert!(!world.said(&["policy", "show"]).contains("ignored until trusted"));
    world.write("project/ringwall.toml", &format!("{file}# mine\n"));
    assert!(world.said(&["init"]).contains("kept as it is"));
    assert!(world.read("project/ringwall.toml").ends_with("# mine\n"));
}
