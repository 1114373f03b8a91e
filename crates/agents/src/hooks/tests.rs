use super::*;
use crate::ALL;

fn hook(form: Form) -> HookCommand {
    let args = vec!["hook".into(), "claude".into()];
    HookCommand { program: "/opt/my tools/ringwall".into(), args, form }
}

fn put_in(text: &str, hook: &HookCommand) -> String {
    install(ALL[0], text, hook, &[]).unwrap()
}

fn found(text: &str) -> Installed {
    installed(ALL[0], text, &[]).unwrap()
}

const EVENTS: usize = ALL[0].hook_events.len();

const TEXTS: [&str; 7] = [
    "",
    "{}\n",
    "{\n  \"model\": \"x\"\n}\n",
    "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"/bin/true\"}]}\n    ]\n  },\n  \"z\": [1,2,  3]\n}\n",
    "{\"hooks\":{\"Stop\":[]},\"a\":{\"b\":null}}",
    "{\n\t\"hooks\": {}\n}",
    // Nothing is called here, and it is still the user's.
    "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"X\",\"hooks\":[]}],\"ConfigChange\":[{\"hooks\":[]}]}}",
];

#[test]
fn installing_keeps_everything_else() {
    for text in TEXTS {
        for form in [Form::Exec, Form::Shell] {
            let edited = put_in(text, &hook(form));
            let found = found(&edited);
            assert_eq!(found.hooks.len(), EVENTS, "{edited}");
            assert!(found.hooks.iter().all(|(_, found)| *found == hook(form)), "{edited}");
            assert_eq!(found.changes, Vec::<String>::new(), "{edited}");
            for line in text.lines().filter(|line| line.contains("/bin/true")) {
                assert!(edited.contains(line.trim_end_matches(',')), "{line} in {edited}");
            }
        }
    }
}

#[test]
fn installing_twice_is_installing_once() {
    for text in TEXTS {
        let once = put_in(text, &hook(Form::Exec));
        assert_eq!(found(&put_in(&once, &hook(Form::Exec))).hooks.len(), EVENTS);
    }
}

#[test]
fn uninstalling_takes_out_only_ours() {
    for text in TEXTS {
        let edited = put_in(text, &hook(Form::Shell));
        let back = uninstall(ALL[0], &edited, &[]).unwrap().unwrap();
        assert_eq!(found(&back), Installed::default());
        let meaning = |text: &str| {
            let text = if text.is_empty() { "{}" } else { text };
            let mut value = parse_strictly(text).unwrap();
            // An empty table of hooks means the same as none.
            if value["hooks"] == json!({}) {
                value.as_object_mut().unwrap().remove("hooks");
            }
            value
        };
        assert_eq!(meaning(&back), meaning(text), "{back}");
        assert_eq!(uninstall(ALL[0], text, &[]).unwrap(), None);
    }
}

#[test]
fn what_the_agent_could_not_read_is_refused() {
    for text in [
        "[]",
        "{\"hooks\": 3}",
        "{\"hooks\": {\"PreToolUse\": {}}}",
        "{",
        "nonsense",
        "{\n  // mine\n  \"model\": \"x\"\n}",
        "{\"model\": \"x\",}",
        "{\"hooks\": {}, \"hooks\": {}}",
        "\u{feff}\u{feff}{}",
    ] {
        assert!(install(ALL[0], text, &hook(Form::Exec), &[]).is_err(), "{text}");
    }
    // It can be taken out of such a file all the same.
    let commented = put_in("{}", &hook(Form::Exec)).replacen('{', "{ // mine\n", 1);
    assert!(installed(ALL[0], &commented, &[]).is_err());
    let back = uninstall(ALL[0], &commented, &[]).unwrap().unwrap();
    assert!(back.contains("// mine") && !back.contains("ringwall"), "{back}");
}

#[test]
fn a_byte_order_mark_stays_and_does_not_matter() {
    let edited = put_in("\u{feff}{\"model\": \"x\"}", &hook(Form::Exec));
    assert!(edited.starts_with("\u{feff}{"), "{edited}");
    assert_eq!(found(&edited).hooks.len(), EVENTS);
    assert_eq!(found(&edited).changes, Vec::<String>::new());
    let back = uninstall(ALL[0], &edited, &[]).unwrap().unwrap();
    assert!(back.starts_with("\u{feff}{") && !back.contains("ringwall"), "{back}");
}

#[test]
fn every_change_to_our_entries_is_seen() {
    let good = put_in("{}", &hook(Form::Exec));
    for (from, to) in [
        ("\"type\": \"command\"", "\"type\": \"prompt\""),
        ("\"timeout\": 10", "\"timeout\": 10, \"async\": true"),
        ("\"timeout\": 10", "\"timeout\": 10, \"if\": \"Bash(git *)\""),
        ("\"timeout\": 10", "\"timeout\": 1"),
        ("\"onFailure\": \"block\"", "\"onFailure\": \"deny\""),
        ("\"onFailure\": \"block\"", "\"onFailure\": \"continue\""),
        ("\"matcher\": \"*\"", "\"matcher\": \"WebSearch\""),
        ("\"matcher\": \"*\",", ""),
        ("\"matcher\": \"*\"", "\"matcher\": \"*\", \"extra\": 1"),
        ("\"PreToolUse\"", "\"PostToolUse\""),
        ("\"ConfigChange\"", "\"Stop\""),
        ("\"claude\"", "\"claude\", \"--level\", \"full\""),
    ] {
        assert!(good.contains(from), "{from} in {good}");
        let found = found(&good.replacen(from, to, 1));
        assert!(!found.changes.is_empty(), "{to}");
    }
    // Another binary in one place only.
    let other = good.replacen("/opt/my tools", "/opt/other", 1);
    assert!(!found(&other).changes.is_empty());
    // Hooks of others beside ours change nothing.
    let entry = r#"{"type": "command", "command": "/bin/true"}"#;
    let mut value = parse_strictly(&good).unwrap();
    let entries = value["hooks"]["PreToolUse"][0]["hooks"].as_array_mut().unwrap();
    entries.push(parse_strictly(entry).unwrap());
    assert_eq!(found(&value.to_string()).changes, Vec::<String>::new());
}

#[test]
fn hooks_of_the_user_that_only_look_like_ours_are_the_users() {
    for entry in [
        json!({"type": "command", "command": "/home/u/wrap.sh '/opt/ringwall' hook claude"}),
        json!({"type": "command", "command": "'/opt/ringwall' hook claude || true"}),
        json!({"type": "command", "command": "sh -c \"'/opt/ringwall' hook claude\""}),
        json!({"type": "command", "command": "echo ringwall hook claude"}),
        json!({"type": "command", "command": "/opt/not-ringwall", "args": ["hook", "claude"]}),
        json!({"type": "command", "command": "/opt/ringwall", "args": ["audit", "tail"]}),
    ] {
        let text = json!({"hooks": {"PreToolUse": [{"hooks": [entry]}]}}).to_string();
        assert_eq!(found(&text), Installed::default(), "{text}");
        assert_eq!(uninstall(ALL[0], &text, &[]).unwrap(), None, "{text}");
        let edited = put_in(&text, &hook(Form::Exec));
        let value = parse_strictly(&edited).unwrap();
        assert_eq!(value["hooks"]["PreToolUse"][0]["hooks"][0], entry);
    }
}

#[test]
fn a_binary_of_another_name_is_known_by_its_path() {
    for form in [Form::Exec, Form::Shell] {
        let hook = HookCommand { program: "/opt/my tools/rw".into(), ..hook(form) };
        let programs = [hook.program.clone()];
        let text = put_in("{}", &hook);
        assert_eq!(found(&text), Installed::default());
        let found = installed(ALL[0], &text, &programs).unwrap();
        assert_eq!((found.hooks.len(), found.changes.len()), (EVENTS, 0));
        let again = install(ALL[0], &text, &hook, &programs).unwrap();
        assert_eq!(installed(ALL[0], &again, &programs).unwrap().hooks.len(), EVENTS);
        assert!(uninstall(ALL[0], &text, &programs).unwrap().is_some());
    }
}

#[test]
fn a_phase_is_the_users_choice_and_nothing_else_is() {
    let with = |args: &[&str]| {
        let mut hook = hook(Form::Shell);
        hook.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        hook
    };
    for kept in [&["--phase", "plan"][..], &["--phase=plan"], &[]] {
        assert_eq!(with(kept).phase_args(), kept);
        assert_eq!(with(kept).foreign_args(), Vec::<String>::new());
        assert_eq!(found(&put_in("{}", &with(kept))).changes, Vec::<String>::new());
    }
    for foreign in [&["--level", "full"][..], &["--phase", "plan", "--level=full"], &["--phases"]] {
        assert_eq!(with(foreign).foreign_args(), foreign);
        assert_eq!(with(foreign).phase_args(), Vec::<String>::new());
        assert!(!found(&put_in("{}", &with(foreign))).changes.is_empty());
    }
}

#[test]
fn a_path_is_quoted_for_a_shell_and_read_back() {
    assert_eq!(hook(Form::Shell).line(), "'/opt/my tools/ringwall' hook claude");
    let hook = HookCommand { program: "/it's/ringwall".into(), ..hook(Form::Shell) };
    assert_eq!(found(&put_in("{}", &hook)).hooks[0].1, hook);
}
