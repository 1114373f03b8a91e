//! Configuration as its users meet it.

use std::os::unix::fs::symlink;

use fixtures::{Finished, feed, text};
use serde_json::{Value, json};

use crate::hook_env::{Answer as _, HookEnv};

#[test]
fn policy_show_prints_every_value_of_three_layers_with_its_origin() {
    let env = HookEnv::new();
    let user = env.write(
        "home/.config/ringwall/ringwall.toml",
        "level = \"network\"\n\n[filesystem]\nallow_read = [\"~/lib\"]\n",
    );
    let project = env.write(
        "project/ringwall.toml",
        "# ours\nlevel = \"readonly\"\n[filesystem]\ndeny_read = [\"**/.env\"]\n",
    );
    let explicit = env.write("extra.toml", "[limits]\nmemory = \"8GiB\"\n");
    let explicit_arg = explicit.to_str().unwrap();
    let shown = env.said(&["policy", "show", "--config", explicit_arg]);
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
        serde_json::from_str(&env.said(&["policy", "show", "--json", "--config", explicit_arg]))
            .unwrap();
    let keys = json["values"].as_array().unwrap().len();
    assert!(keys >= 27, "every key of the schema has a row, {keys} found");
    assert!(json["values"].as_array().unwrap().iter().all(|row| row["origin"].is_string()));
}

#[test]
fn every_key_of_the_schema_is_shown() {
    let env = HookEnv::new();
    let schema: Value = serde_json::from_str(&env.said(&["policy", "schema"])).unwrap();
    let shown = env.said(&["policy", "show"]);
    for (table, value) in schema["properties"].as_object().unwrap() {
        let Some(reference) = value["$ref"].as_str() else { continue };
        let definition = schema.pointer(reference.trim_start_matches('#')).unwrap();
        let Some(properties) = definition["properties"].as_object() else { continue };
        for key in properties.keys() {
            let row = format!("{table}.{key} ");
            assert!(shown.contains(&row), "{row} is missing");
        }
    }
}

#[test]
fn grant_keeps_a_hand_written_file_and_trusts_what_it_wrote() {
    let env = HookEnv::new();
    let before = "# my rules\nversion = 1 # first\n\n[filesystem]   # paths\n\
                  deny_read = [ \"**/.env\" ] # secrets\n\n# the end\n";
    env.write("project/ringwall.toml", before);
    let shared = env.root.join("outside/granted");
    let said = env.said(&["grant", "read", shared.to_str().unwrap()]);
    assert!(said.contains("added filesystem.allow_read"), "{said}");
    let after = env.read("project/ringwall.toml");
    let added = format!("allow_read = [\"{}\"]\n", shared.display());
    assert_eq!(after.replacen(&added, "", 1), before);
    assert!(!env.said(&["policy", "show"]).contains("ignored until trusted"));
    assert!(env.said(&["grant", "read", shared.to_str().unwrap()]).contains("already"));
    env.said(&["grant", "domain", "registry.example.org", "--user"]);
    assert!(env.read("home/.config/ringwall/ringwall.toml").contains("registry.example.org"));
}

#[test]
fn grant_does_not_trust_lines_the_user_never_saw() {
    let env = HookEnv::new();
    let text_before = "[filesystem]\nallow_write = [\"/\"]\n";
    env.write("project/ringwall.toml", text_before);
    let output = env.ringwall(&["grant", "read", "/opt"]);
    assert_eq!(output.status.code(), Some(78));
    let said = text(&output.stderr);
    assert!(said.contains("filesystem.allow_write = \"/\""), "{said}");
    assert!(said.contains("ringwall trust"), "{said}");
    assert_eq!(env.read("project/ringwall.toml"), text_before);
}

#[test]
fn an_untrusted_file_is_named_with_the_way_to_trust_it() {
    let env = HookEnv::new();
    env.write(
        "project/ringwall.toml",
        "level = \"full\"\n[network]\nallowed_domains = [\"example.org\"]\n",
    );
    let shown = env.said(&["policy", "show"]);
    assert!(shown.contains("ignored until trusted with `ringwall trust`"), "{shown}");
    assert!(shown.contains("ringwall.toml:1: level = \"full\""), "{shown}");
    let trusted = env.said(&["trust", "--yes"]);
    assert!(trusted.contains("now applies") && trusted.contains("example.org"), "{trusted}");
    assert!(!env.said(&["policy", "show"]).contains("ignored until trusted"));
}

#[test]
fn trust_shows_what_it_is_for_and_takes_no_silence_for_a_yes() {
    let env = HookEnv::new();
    env.write("project/ringwall.toml", "level = \"full\"\n");
    let output = env.ringwall(&["trust"]);
    assert_eq!(output.status.code(), Some(78));
    assert!(text(&output.stdout).contains("ringwall.toml:1: level = \"full\""));
    assert!(text(&output.stderr).contains("ringwall trust --yes"), "{}", text(&output.stderr));
    let untrusted = || env.said(&["policy", "check"]).contains("ignored until trusted");
    assert!(untrusted());
    assert!(env.said(&["trust", "--yes", "ringwall.toml"]).contains("now applies"));
    assert!(!untrusted());
    assert!(env.said(&["trust"]).contains("is trusted already"));
    // Another content that needs no trust takes the place of the one before.
    env.write("project/ringwall.toml", "level = \"readonly\"\n");
    assert!(env.said(&["trust"]).contains("needs no trust"));
    env.write("project/ringwall.toml", "level = \"full\"\n");
    assert!(untrusted());
    env.said(&["trust", "--yes"]);
    assert!(env.said(&["trust", "--forget"]).contains("no longer trusted"));
    assert!(untrusted());
    assert!(env.said(&["trust", "--forget"]).contains("no file here was trusted"));
}

/// Asks the hook as if the agent had been started in `dir`, below the world's root.
fn hook_in(env: &HookEnv, dir: &str, change: impl FnOnce(&mut Call)) -> Finished {
    let mut command = env.hook_command();
    let dir = env.root.join(dir);
    command.env("CLAUDE_PROJECT_DIR", &dir).current_dir(&dir);
    let mut call = Call { command, tool: "Read", path: "/etc/passwd".into() };
    change(&mut call);
    let event = json!({
        "session_id": "s", "permission_mode": "default", "hook_event_name": "PreToolUse",
        "tool_name": call.tool, "tool_input": {"file_path": call.path, "content": "x"},
    });
    feed(call.command, event.to_string().as_bytes())
}

struct Call {
    command: std::process::Command,
    tool: &'static str,
    path: std::path::PathBuf,
}

#[test]
fn a_project_started_in_a_subdirectory_keeps_its_rules() {
    let env = HookEnv::new();
    let top = env.write("project/ringwall.toml", "[filesystem]\ndeny_read = [\"**/*.rs\"]\n");
    let read = |dir: &str| hook_in(&env, dir, |call| call.path = env.project().join("src/main.rs"));
    for dir in ["project", "project/src"] {
        assert_eq!(read(dir).verdict(), "deny", "{dir}");
    }
    // The file that a refusal names is the one that the command in it edits.
    let granted = |path: &std::path::Path| {
        let reason = hook_in(&env, "project/src", |_| {}).reason();
        assert!(reason.contains(&format!("in {}", path.display())), "{reason}");
        let mut grant = env.command(crate::hook_env::BINARY);
        grant.args(["grant", "read", "/usr"]).current_dir(env.project().join("src"));
        let said = text(&grant.output().unwrap().stdout);
        assert!(said.contains(&path.display().to_string()), "{said}");
    };
    granted(&top);
    granted(&env.write("project/src/ringwall.toml", ""));
    // What a person is shown there is what the agent gets there.
    let mut show = env.command(crate::hook_env::BINARY);
    show.args(["policy", "check"]).current_dir(env.project().join("src"));
    let shown = text(&show.output().unwrap().stdout);
    assert!(shown.contains("project/ringwall.toml is valid"), "{shown}");
    assert!(shown.contains("src/ringwall.toml is valid"), "{shown}");
}

#[test]
fn a_project_cannot_widen_its_ground_through_variables() {
    let env = HookEnv::new();
    let evil = env.write("project/evil.toml", "level = \"full\"\n");
    env.write("project/cfg/ringwall/ringwall.toml", "level = \"full\"\n");
    env.write("project/home/.config/ringwall/ringwall.toml", "level = \"full\"\n");
    let alias = env.root.join("project-link/evil.toml");
    let climbing = env.root.join("outside/../project/evil.toml");
    for (name, value) in [
        ("RINGWALL_CONFIG", "/proc/self/cwd/evil.toml"),
        ("RINGWALL_CONFIG", alias.to_str().unwrap()),
        ("RINGWALL_CONFIG", climbing.to_str().unwrap()),
        ("RINGWALL_CONFIG", "evil.toml"),
        ("XDG_CONFIG_HOME", "/proc/self/cwd/cfg"),
        ("HOME", "/proc/self/cwd/home"),
        ("CONTENT_FILTER_SANDBOX_DIR", "/"),
        ("CONTENT_FILTER_SANDBOX_DIR", "/etc"),
    ] {
        let answer = hook_in(&env, "project", |call| {
            call.command.env(name, value);
        });
        assert_eq!(answer.verdict(), "deny", "{name}={value}");
        // A setting that does not count is named, and so is the file it stands in.
        let named = match name {
            "RINGWALL_CONFIG" => "evil.toml would allow more",
            "XDG_CONFIG_HOME" | "HOME" => "ringwall.toml would allow more",
            _ => "is ignored: it",
        };
        assert!(answer.stdout.contains(named), "{name}={value}: {}", answer.stdout);
    }
    let answer = hook_in(&env, "project/src", |call| {
        call.command.env("RINGWALL_CONFIG", "../evil.toml");
    });
    assert_eq!(answer.verdict(), "deny");
    assert!(answer.stdout.contains(evil.to_str().unwrap()), "{}", answer.stdout);
    let outside = env.write("outside/good.toml", "level = \"full\"\n");
    let answer = hook_in(&env, "project", |call| {
        call.command.env("RINGWALL_CONFIG", &outside);
    });
    assert_eq!(answer.verdict(), "allow");
}

#[test]
fn a_relative_path_on_the_hooks_command_line_stays_where_the_agent_was_started() {
    let env = HookEnv::new();
    env.write("project/policy.toml", "level = \"readonly\"\n");
    env.write("project/src/policy.toml", "level = \"full\"\n");
    let answer = hook_in(&env, "project", |call| {
        call.command.args(["--config", "policy.toml"]).current_dir(env.project().join("src"));
    });
    assert_eq!(answer.verdict(), "deny");
}

#[test]
fn what_decides_cannot_be_written_under_another_name() {
    let env = HookEnv::new();
    let user = env.write("project/cfg/user.toml", "");
    let settings = env.write("project/claude/settings.json", "{}");
    let flag = env.write("project/policy.toml", "");
    std::fs::create_dir_all(env.home().join(".config/ringwall")).unwrap();
    std::fs::create_dir_all(env.home().join(".claude")).unwrap();
    let user_name = env.home().join(".config/ringwall/ringwall.toml");
    symlink(&user, &user_name).unwrap();
    symlink(&settings, env.home().join(".claude/settings.json")).unwrap();
    let write = |path: &std::path::Path| {
        hook_in(&env, "project", |call| {
            call.command.args(["--config", "policy.toml"]);
            (call.tool, call.path) = ("Write", path.into());
        })
        .verdict()
    };
    for path in [&user, &settings, &flag] {
        assert_eq!(write(path), "deny", "{}", path.display());
    }
    assert_eq!(write(&env.project().join("cfg/other.toml")), "allow");
    // A link to nowhere becomes the configuration once something is written there.
    std::fs::remove_file(&user).unwrap();
    assert_eq!(write(&user), "deny");
}

#[test]
fn a_project_file_that_is_a_link_is_used_by_nothing() {
    let env = HookEnv::new();
    let user = "home/.config/ringwall/ringwall.toml";
    let users = env.write(user, "level = \"readonly\"\n");
    symlink(users, env.project().join("ringwall.toml")).unwrap();
    for args in [&["trust", "--yes"][..], &["grant", "read", "/usr"], &["policy", "check"]] {
        let output = env.ringwall(args);
        assert_eq!(output.status.code(), Some(78), "{args:?}");
        assert!(
            text(&output.stderr)
                .contains("is a symbolic link; a project file must be a regular file")
        );
    }
    assert_eq!(env.read(user), "level = \"readonly\"\n");
    assert_eq!(env.hook("Bash", &json!({"command": "ls"})).verdict(), "deny");
}

#[test]
fn grants_at_the_same_time_are_all_kept() {
    let env = HookEnv::new();
    let start = |number: usize| {
        let mut grant = env.command(crate::hook_env::BINARY);
        grant.args(["grant", "domain", &format!("host{number}.example.org")]);
        grant.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = (0..20).map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let file = env.read("project/ringwall.toml");
    assert_eq!(file.matches(".example.org").count(), 20, "{file}");
    assert!(!env.said(&["policy", "show"]).contains("ignored until trusted"));
}

#[test]
fn no_file_can_drive_the_terminal_of_who_looks_at_it() {
    let env = HookEnv::new();
    let odd = r#""x\u001b[2K\u009b1A\u202e\nhint: fine""#;
    let file = format!(
        "[phases.{odd}]\nlevel = \"full\"\nallow_write = [{odd}]\n\
         [filesystem]\nallow_read = [{odd}]\ndeny_read = [{odd}, \"no/such/\u{202e}/x\"]\n"
    );
    let broken = format!("{odd} = 1\n");
    for (text_of_file, runs) in [
        (
            &file,
            &[
                &["policy", "show"][..],
                &["policy", "check"],
                &["trust"],
                &["grant", "read", "/usr"],
                &["doctor"],
                &["trust", "--yes"],
                &["policy", "show"],
            ][..],
        ),
        (&broken, &[&["policy", "check"], &["trust"], &["grant", "read", "/usr"]]),
    ] {
        env.write("project/ringwall.toml", text_of_file);
        for args in runs {
            let output = env.ringwall(args);
            let said = text(&output.stdout) + &text(&output.stderr);
            let drives = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!said.contains(drives), "{args:?}: {said:?}");
            assert!(!said.contains("\nhint: fine"), "{args:?}: {said}");
        }
    }
}

#[test]
fn a_bad_file_is_reported_once_with_every_problem_and_exit_78() {
    let env = HookEnv::new();
    env.write("project/ringwall.toml", "levle = \"full\"\n[guard]\non_eror = \"allow\"\n");
    for args in
        [&["policy", "show"][..], &["policy", "check"], &["doctor"], &["explain", "--", "ls"]]
    {
        let output = env.ringwall(args);
        assert_eq!(output.status.code(), Some(78), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.contains("nearest key is `level`"), "{said}");
        assert!(said.contains("nearest key is `on_error`"), "{said}");
    }
}

#[test]
fn check_warns_about_rules_that_match_nothing_and_removed_keys() {
    let env = HookEnv::new();
    env.write(
        "project/ringwall.toml",
        "agentForbiddenTools = [\"x\"]\n[filesystem]\ndeny_read = [\"no/such/place/x\"]\n",
    );
    let said = env.said(&["policy", "check"]);
    assert!(said.contains("ringwall.toml:1: `agentForbiddenTools` was removed"), "{said}");
    assert!(said.contains("`no/such/place/x` in filesystem.deny_read matches nothing"), "{said}");
}

#[test]
fn what_widens_an_agents_ground_is_not_for_the_agent_to_type() {
    let env = HookEnv::new();
    for args in [
        &["grant", "read", "/etc"][..],
        &["trust"],
        &["install", "claude"],
        &["uninstall", "claude"],
        &["init"],
    ] {
        let output =
            env.command(crate::hook_env::BINARY).args(args).env("CLAUDECODE", "1").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(77), "{args:?}");
        assert!(text(&output.stderr).contains("only the user can run it"));
    }
    assert!(!env.project().join("ringwall.toml").exists());
}

#[test]
fn usage_errors_exit_with_64_and_help_teaches() {
    let env = HookEnv::new();
    for args in [
        &[][..],
        &["frobnicate"],
        &["explain"],
        &["grant", "domain", "https://x/"],
        &["trust", "--yes", "--forget"],
        &["audit", "query", "--since", "nonsense"],
        &["audit", "query", "--since", "2026-13-01"],
        &["audit", "query", "--since", "2026-1"],
        &["audit", "query", "--since", "2026-11-15T10:00:00+02:00"],
    ] {
        let output = env.ringwall(args);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {}", text(&output.stderr));
    }
    for since in ["2026", "2026-11", "2026-11-15", "2026-11-15T10:00Z", "2026-11-15T10:00:00.5Z"] {
        env.said(&["audit", "query", "--since", since]);
    }
    assert!(env.said(&["--help"]).contains("ringwall init"));
    let version = env.said(&["--version"]);
    assert!(version.starts_with("ringwall 0.") && version.contains('('), "{version}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(env.said(&["completions", shell]).contains("ringwall"));
    }
}

#[test]
fn explain_gives_the_documented_json() {
    let env = HookEnv::new();
    env.write("project/ringwall.toml", "\n[filesystem]\ndeny_read = [\"**/.env\"]\n");
    let mut command = env.command(crate::hook_env::BINARY);
    command.args(["explain", "--json"]);
    let call = serde_json::json!({"tool_name": "Read", "tool_input": {"file_path": ".env"}});
    let answer = feed(command, call.to_string().as_bytes());
    let json: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(json["verdict"], "deny");
    assert_eq!(json["redirect"], Value::Null);
    assert_eq!(json["opaque"], serde_json::json!([]));
    let because = &json["because"][0];
    assert_eq!(because["rule"], "filesystem.deny_read");
    assert_eq!(because["file"], env.project().join("ringwall.toml").to_str().unwrap());
    assert_eq!(because["line"], 3);
    assert!(because["text"].is_string() && because["instead"].is_string());
    let shell = env.said(&["explain", "--", "git", "status"]);
    assert!(shell.contains("run git status") && shell.contains("allow"), "{shell}");
}
