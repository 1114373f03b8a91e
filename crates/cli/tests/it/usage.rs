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
             hint: run this instead: ringwall run -- npm test\n",
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
fn explain_of_a_command_says_that_the_sandbox_is_stricter() {
    let env = HookEnv::new();
    let note = "`ringwall run` is stricter about reads outside the workspace";
    assert!(env.said(&["explain", "--", "cat", "/etc/hosts"]).contains(note));
    let mut explain = env.command(crate::hook_env::BINARY);
    explain.arg("explain");
    let call = br#"{"tool_name":"Read","tool_input":{"file_path":"/etc/hosts"}}"#;
    let said = fixtures::feed(explain, call).stdout;
    assert!(said.contains("verdict") && !said.contains(note), "{said}");
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
