//! Configuration as its users meet it.

use serde_json::Value;

use crate::world::{World, text};

#[test]
fn policy_show_prints_every_value_of_three_layers_with_its_origin() {
    let world = World::new();
    let user = world.write(
        "home/.config/ringwall/ringwall.toml",
        "level = \"network\"\n\n[filesystem]\nallow_read = [\"~/lib\"]\n",
    );
    let project = world.write(
        "project/ringwall.toml",
        "# ours\nlevel = \"readonly\"\n[filesystem]\ndeny_read = [\"**/.env\"]\n",
    );
    let explicit = world.write("extra.toml", "[limits]\nmemory = \"8GiB\"\n");
    let explicit_arg = explicit.to_str().unwrap();
    let shown = world.said(&["policy", "show", "--config", explicit_arg]);
    for (key, value, origin) in [
        ("level", "\"readonly\"", format!("{}:2", project.display())),
        ("filesystem.allow_read", "\"~/lib\"", format!("{}:4", user.display())),
        ("filesystem.deny_read", "\"**/.env\"", format!("{}:4", project.display())),
        ("limits.memory", "\"8GiB\"", format!("{}:2", explicit.display())),
        ("violation.action", "\"stop\"", "built in".to_owned()),
    ] {
        let line = shown.lines().find(|line| line.split_whitespace().next() == Some(key)).unwrap();
        assert!(line.contains(value) && line.ends_with(&origin), "{line}");
    }
    let json: Value =
        serde_json::from_str(&world.said(&["policy", "show", "--json", "--config", explicit_arg]))
            .unwrap();
    let keys = json["values"].as_array().unwrap().len();
    assert!(keys >= 27, "every key of the schema has a row, {keys} found");
    assert!(json["values"].as_array().unwrap().iter().all(|row| row["origin"].is_string()));
}

#[test]
fn every_key_of_the_schema_is_shown() {
    let world = World::new();
    let schema: Value = serde_json::from_str(&world.said(&["policy", "schema"])).unwrap();
    let shown = world.said(&["policy", "show"]);
    for (table, value) in schema["properties"].as_object().unwrap() {
        let Some(reference) = value["$ref"].as_str() else { continue };
        let definition = schema.pointer(reference.trim_start_matches('#')).unwrap();
        for key in definition["properties"].as_object().unwrap().keys() {
            let row = format!("{table}.{key} ");
            assert!(shown.contains(&row), "{row} is missing");
        }
    }
}

#[test]
fn grant_keeps_a_hand_written_file_and_trusts_what_it_wrote() {
    let world = World::new();
    let before = "# my rules\nversion = 1 # first\n\n[filesystem]   # paths\n\
                  deny_read = [ \"**/.env\" ] # secrets\n\n# the end\n";
    world.write("project/ringwall.toml", before);
    let shared = world.root.join("outside/granted");
    let said = world.said(&["grant", "read", shared.to_str().unwrap()]);
    assert!(said.contains("added filesystem.allow_read"), "{said}");
    let after = world.read("project/ringwall.toml");
    let added = format!("allow_read = [\"{}\"]\n", shared.display());
    assert_eq!(after.replacen(&added, "", 1), before);
    assert!(!world.said(&["policy", "show"]).contains("ignored until trusted"));
    assert!(world.said(&["grant", "read", shared.to_str().unwrap()]).contains("already"));
    world.said(&["grant", "domain", "registry.example.org", "--user"]);
    assert!(world.read("home/.config/ringwall/ringwall.toml").contains("registry.example.org"));
}

#[test]
fn grant_does_not_trust_lines_the_user_never_saw() {
    let world = World::new();
    let text_before = "[filesystem]\nallow_write = [\"/\"]\n";
    world.write("project/ringwall.toml", text_before);
    let output = world.ringwall(&["grant", "read", "/opt"]);
    assert_eq!(output.status.code(), Some(78));
    let said = text(&output.stderr);
    assert!(said.contains("filesystem.allow_write = \"/\""), "{said}");
    assert!(said.contains("ringwall trust"), "{said}");
    assert_eq!(world.read("project/ringwall.toml"), text_before);
}

#[test]
fn an_untrusted_file_is_named_with_the_way_to_trust_it() {
    let world = World::new();
    world.write(
        "project/ringwall.toml",
        "level = \"full\"\n[network]\nallowed_domains = [\"example.org\"]\n",
    );
    let shown = world.said(&["policy", "show"]);
    assert!(shown.contains("ignored until trusted with `ringwall trust`"), "{shown}");
    assert!(shown.contains("ringwall.toml:1: level = \"full\""), "{shown}");
    let trusted = world.said(&["trust"]);
    assert!(trusted.contains("now counts") && trusted.contains("example.org"), "{trusted}");
    assert!(!world.said(&["policy", "show"]).contains("ignored until trusted"));
}

#[test]
fn a_bad_file_is_reported_once_with_every_problem_and_exit_78() {
    let world = World::new();
    world.write("project/ringwall.toml", "levle = \"full\"\n[guard]\non_eror = \"allow\"\n");
    for args in
        [&["policy", "show"][..], &["policy", "check"], &["doctor"], &["explain", "--", "ls"]]
    {
        let output = world.ringwall(args);
        assert_eq!(output.status.code(), Some(78), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.contains("nearest key is `level`"), "{said}");
        assert!(said.contains("nearest key is `on_error`"), "{said}");
    }
}

#[test]
fn check_warns_about_rules_that_match_nothing_and_removed_keys() {
    let world = World::new();
    world.write(
        "project/ringwall.toml",
        "agentForbiddenTools = [\"x\"]\n[filesystem]\ndeny_read = [\"no/such/place/x\"]\n",
    );
    let said = world.said(&["policy", "check"]);
    assert!(said.contains("ringwall.toml:1: `agentForbiddenTools` was removed"), "{said}");
    assert!(said.contains("`no/such/place/x` in deny_read matches nothing"), "{said}");
}

#[test]
fn what_widens_an_agents_ground_is_not_for_the_agent_to_type() {
    let world = World::new();
    for args in [
        &["grant", "read", "/etc"][..],
        &["trust"],
        &["install", "claude"],
        &["uninstall", "claude"],
        &["init"],
    ] {
        let output = world.command(crate::world::BINARY).args(args).env("CLAUDECODE", "1").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(77), "{args:?}");
        assert!(text(&output.stderr).contains("only the user can run it"));
    }
    assert!(!world.project().join("ringwall.toml").exists());
}

#[test]
fn usage_errors_exit_with_64_and_help_teaches() {
    let world = World::new();
    for args in [&[][..], &["frobnicate"], &["explain"], &["grant", "domain", "https://x/"]] {
        let output = world.ringwall(args);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {}", text(&output.stderr));
    }
    assert!(world.said(&["--help"]).contains("ringwall init"));
    let version = world.said(&["--version"]);
    assert!(version.starts_with("ringwall 0.") && version.contains('('), "{version}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(world.said(&["completions", shell]).contains("ringwall"));
    }
}

#[test]
fn explain_gives_the_documented_json() {
    let world = World::new();
    world.write("project/ringwall.toml", "\n[filesystem]\ndeny_read = [\"**/.env\"]\n");
    let mut command = world.command(crate::world::BINARY);
    command.args(["explain", "--json"]);
    let call = serde_json::json!({"tool_name": "Read", "tool_input": {"file_path": ".env"}});
    let answer = crate::world::feed(command, call.to_string().as_bytes());
    let json: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(json["verdict"], "deny");
    assert_eq!(json["redirect"], Value::Null);
    assert_eq!(json["opaque"], serde_json::json!([]));
    let because = &json["because"][0];
    assert_eq!(because["rule"], "filesystem.deny_read");
    assert_eq!(because["file"], world.project().join("ringwall.toml").to_str().unwrap());
    assert_eq!(because["line"], 3);
    assert!(because["text"].is_string() && because["instead"].is_string());
    let shell = world.said(&["explain", "--", "git", "status"]);
    assert!(shell.contains("run git status") && shell.contains("allow"), "{shell}");
}
