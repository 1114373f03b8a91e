//! Mistakes on the command line: exit status 64, and a hint that can be pasted.

use fixtures::text;

use crate::hook_env::HookEnv;

#[test]
fn a_mistake_exits_with_64_and_names_the_corrected_command() {
    let env = HookEnv::new();
    for (args, expected) in [
        (
            &["run", "npm", "test"][..],
            "error: `ringwall run` expects its command after `--`\n\
             hint: run `ringwall run -- npm test` instead\n",
        ),
        (&["rnu"], "error: unknown command `rnu`\nhint: did you mean `run`?\n"),
        (
            &["run", "--level", "rw", "--", "x"],
            "error: unknown level `rw`; expected `readonly`, `readwrite`, `network` or `full`\n",
        ),
    ] {
        let output = env.ringwall(args);
        assert_eq!(output.status.code(), Some(64), "{args:?}");
        assert_eq!(text(&output.stderr), expected, "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn what_only_the_parser_understands_is_reported_by_it() {
    let env = HookEnv::new();
    let output = env.ringwall(&["run", "--foo", "--", "x"]);
    assert_eq!(output.status.code(), Some(64));
    let said = text(&output.stderr);
    assert!(said.starts_with("error: unexpected argument '--foo' found\n"), "{said}");
}

#[test]
fn explain_says_what_the_hook_decides_and_what_the_sandbox_does() {
    let env = HookEnv::new();
    let other = env.write("other/notes.txt", "notes\n");
    let other = other.to_str().unwrap();
    let said = |words: &[&str]| -> serde_json::Value {
        let words = [&["explain", "--json", "--"], words].concat();
        serde_json::from_str(&env.said(&words)).unwrap()
    };
    // A read outside by a command: the hook cannot see all of them, and leaves them to the sandbox.
    let read = said(&["cat", other]);
    assert_eq!((&read["verdict"], &read["sandbox"]["verdict"]), (&"allow".into(), &"stop".into()));
    let because = &read["sandbox"]["because"][0];
    assert_eq!((&because["path"], &because["rule"]), (&other.into(), &"workspace".into()));
    assert!(because["instead"].as_str().unwrap().contains("ringwall grant read"), "{read}");
    let inside = said(&["cat", "README.md"]);
    assert_eq!(inside["sandbox"]["verdict"], "allow", "{inside}");
    let text = env.said(&["explain", "--", "cat", other]);
    let row = |label: &str| text.lines().find(|line| line.starts_with(label)).unwrap_or("");
    assert!(row("verdict").contains("allow") && row("sandbox").contains("stop"), "{text}");
    // With a grant, both agree.
    env.said(&["grant", "read", other]);
    assert_eq!(said(&["cat", other])["sandbox"]["verdict"], "allow");
}

#[test]
fn numbers_that_are_none_are_reported_in_plain_words() {
    let env = HookEnv::new();
    for (words, expected) in [
        (&["grant", "port", "abc"][..], "`abc` is not a port; expected a number from 1 to 65535"),
        (&["grant", "port", "0"], "`0` is not a port"),
        (&["revoke", "port", "70000"], "`70000` is not a port"),
        (&["audit", "tail", "-n", "x"], "`x` is not a whole number"),
        (&["grant", "env", "A=b"], "`A=b` is not the name of a variable"),
        (&["run", "-e", "=x", "--", "true"], "`` is not a valid variable name"),
    ] {
        let output = env.ringwall(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{words:?}: {said}");
        assert!(said.contains(expected) && !said.contains("invalid digit"), "{words:?}: {said}");
    }
}

#[test]
fn every_command_has_an_example_in_its_help() {
    fn check(command: &clap::Command) {
        let name = command.get_name();
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let help = inner.clone().render_long_help().to_string();
            assert!(help.contains("\nExample"), "{name} {}: {help}", inner.get_name());
            check(inner);
        }
    }
    check(&ringwall::command());
}

#[test]
fn a_name_cannot_forge_a_line_of_a_message() {
    let env = HookEnv::new();
    for (dir, code) in [("gone\nerror: forged", 64), ("gone\u{1b}[2Kerror: forged", 64)] {
        let output = env.ringwall(&["run", "--workspace", dir, "--", "true"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.lines().all(|line| !line.starts_with("error: forged")), "{said}");
        assert!(said.contains("forged") && !said.contains('\u{1b}'), "{said}");
    }
}
