use std::path::{Path, PathBuf};

use model::{
    AbsPath, Access, Effect, FileText, HookGroup, Level, OffSwitch, PathRef, Presence, Query,
    SettingsRules, Shape, Sourced, Tool, ToolCall, Unresolvable, Verdict,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{HookedSettings, PathRule, SettingsContext, needs};

fn abs(path: &str) -> AbsPath {
    AbsPath::lexical(Path::new(path)).unwrap()
}

fn context() -> Context {
    Context {
        workspace: abs("/p"),
        home: abs("/home/u"),
        closed: vec![],
        unfit: None,
        agent_files: vec![rule("/home/u/.claude/tool-results")],
        own_files: vec![abs("/home/u/.config/ringwall")],
        grant_file: "/p/ringwall.toml".into(),
        settings: SettingsContext::default(),
    }
}

fn rule(text: &str) -> Sourced<PathRule> {
    let value = PathRule::parse(text, Path::new("/p"), &abs("/home/u")).unwrap();
    Sourced { value, origin: Origin::File { path: "/p/ringwall.toml".into(), line: 3 } }
}

fn scene() -> Scene {
    Scene { cwd: "/p".into(), home: abs("/home/u"), top: None, quarantine: None }
}

fn on(access: Access, path: &str) -> Action {
    Action::Path { access, path: PathRef { given: path.into(), at: path.into() }, by: None }
}

/// Answers as a file system would that has only these links.
fn answer(queries: &[Query], links: &[(&str, &str)]) -> Facts {
    let mut facts = Facts::default();
    for query in queries {
        if let Query::Resolve(path) = query {
            let link = links.iter().find(|(from, _)| path.starts_with(from));
            let resolved = match link {
                Some((_, "loop")) => Err(Unresolvable::Loop),
                Some((from, to)) => Ok(abs(&Path::new(to)
                    .join(path.strip_prefix(from).unwrap())
                    .display()
                    .to_string())),
                None => Ok(AbsPath::lexical(path).unwrap()),
            };
            facts.set_resolved(path.clone(), resolved);
        }
    }
    facts
}

fn decide(policy: &Policy, access: Access, path: &str, links: &[(&str, &str)]) -> Decision {
    let actions = [on(access, path)];
    let facts = answer(&needs(policy, &context(), &actions), links);
    evaluate(policy, &context(), &scene(), &actions, &facts)
}

fn verdict(policy: &Policy, access: Access, path: &str) -> Verdict {
    decide(policy, access, path, &[]).verdict()
}

#[test]
fn the_workspace_is_ground_and_nothing_else_is() {
    let policy = Policy::built_in();
    for (access, path, expected) in [
        (Access::Read, "/p", Verdict::Allow),
        (Access::Read, "/p/src/a", Verdict::Allow),
        (Access::Write, "/p/new", Verdict::Allow),
        (Access::Read, "/p-evil/a", Verdict::Deny),
        (Access::Write, "/p2", Verdict::Deny),
        (Access::Read, "/etc/passwd", Verdict::Deny),
        (Access::Read, "/", Verdict::Deny),
        (Access::Read, "/p/../etc", Verdict::Deny),
        (Access::Read, "/q/../p/a", Verdict::Allow),
        (Access::Read, "/home/u/.claude/tool-results/x", Verdict::Allow),
        (Access::Write, "/home/u/.claude/tool-results/x", Verdict::Deny),
    ] {
        assert_eq!(verdict(&policy, access, path), expected, "{access} {path}");
    }
}

#[test]
fn where_a_link_leads_is_what_counts() {
    let policy = Policy::built_in();
    let links = [("/p/out", "/etc"), ("/p/loop", "loop"), ("/elsewhere", "/p")];
    assert_eq!(decide(&policy, Access::Read, "/p/out/passwd", &links).verdict(), Verdict::Deny);
    assert_eq!(decide(&policy, Access::Read, "/p/loop/x", &links).verdict(), Verdict::Deny);
    assert_eq!(decide(&policy, Access::Read, "/elsewhere/x", &links).verdict(), Verdict::Allow);
}

#[test]
fn both_readings_of_a_climbing_path_must_be_inside() {
    let policy = Policy::built_in();
    // The kernel goes through the link; a path library strikes the two names out.
    let kernel_leaves = decide(&policy, Access::Read, "/p/out/../x", &[("/p/out/../x", "/etc/x")]);
    assert_eq!(kernel_leaves.verdict(), Verdict::Deny);
    let text_leaves = decide(&policy, Access::Read, "/p/in/../../x", &[("/p/in/../../x", "/p/x")]);
    assert_eq!(text_leaves.verdict(), Verdict::Deny);
}

#[test]
fn deny_rules_hold_on_the_text_and_on_the_target() {
    let mut policy = Policy::built_in();
    policy.filesystem.deny_read = vec![rule("**/.env"), rule("/p/private")];
    policy.filesystem.deny_write = vec![rule("Cargo.lock")];
    for (access, path, expected) in [
        (Access::Read, "/p/.env", Verdict::Deny),
        (Access::Read, "/p/a/.ENV", Verdict::Deny),
        (Access::Write, "/p/.env", Verdict::Deny),
        (Access::Read, "/p/private/x", Verdict::Deny),
        (Access::Read, "/p/Cargo.lock", Verdict::Allow),
        (Access::Write, "/p/Cargo.lock", Verdict::Deny),
        (Access::Write, "/p/cargo.LOCK", Verdict::Deny),
    ] {
        assert_eq!(verdict(&policy, access, path), expected, "{access} {path}");
    }
    let links = [("/p/harmless", "/p/.env"), ("/p/.env", "/p/harmless")];
    assert_eq!(decide(&policy, Access::Read, "/p/harmless", &links).verdict(), Verdict::Deny);
    assert_eq!(decide(&policy, Access::Read, "/p/.env", &links).verdict(), Verdict::Deny);
}

#[test]
fn a_read_grant_is_no_write_grant_and_a_write_grant_is_both() {
    let mut policy = Policy::built_in();
    policy.filesystem.allow_read = vec![rule("/lib-r")];
    policy.filesystem.allow_write = vec![rule("/lib-w")];
    assert_eq!(verdict(&policy, Access::Read, "/lib-r/a"), Verdict::Allow);
    assert_eq!(verdict(&policy, Access::Write, "/lib-r/a"), Verdict::Deny);
    assert_eq!(verdict(&policy, Access::Read, "/lib-w/a"), Verdict::Allow);
    assert_eq!(verdict(&policy, Access::Write, "/lib-w/a"), Verdict::Allow);
    // A grant that is itself a link counts for where it leads.
    let moved = decide(&policy, Access::Read, "/real/a", &[("/lib-r", "/real")]);
    assert_eq!(moved.verdict(), Verdict::Allow);
}

#[test]
fn a_grant_inside_the_workspace_does_not_follow_a_link_out_of_it() {
    let mut policy = Policy::built_in();
    policy.level.value = Level::Readonly;
    policy.filesystem.allow_write =
        vec![Sourced::built_in(PathRule::in_workspace("TODO.md")), rule("out")];
    assert_eq!(verdict(&policy, Access::Write, "/p/TODO.md"), Verdict::Allow);
    for (link, target) in [("/p/TODO.md", "/"), ("/p/out", "/etc")] {
        let links = [(link, target)];
        assert_eq!(
            decide(&policy, Access::Write, "/etc/cron.d/x", &links).verdict(),
            Verdict::Deny
        );
        assert_eq!(decide(&policy, Access::Write, link, &links).verdict(), Verdict::Deny);
    }
}

#[test]
fn the_agents_own_places_do_not_follow_a_planted_link() {
    let policy = Policy::built_in();
    let links = [("/home/u/.claude/tool-results", "/home/u")];
    let planted = decide(&policy, Access::Read, "/home/u/.claude/tool-results/secret", &links);
    assert_eq!(planted.verdict(), Verdict::Deny);
    assert_eq!(decide(&policy, Access::Read, "/home/u/secret", &links).verdict(), Verdict::Deny);
}

#[test]
fn a_denied_host_is_denied_in_every_spelling() {
    let mut policy = Policy::built_in();
    let value = model::DomainRule::parse("tracker.example.org").unwrap();
    policy.network.denied_domains = vec![Sourced::built_in(value)];
    let judged = |target: &str| {
        let action = Action::Connect { target: target.into() };
        evaluate(&policy, &context(), &scene(), &[action], &Facts::default()).verdict()
    };
    for target in [
        "https://tracker.example.org/x",
        "http:tracker.example.org",
        "http:///tracker.example.org",
        "http:/\\/tracker.example.org/x",
        "https://tracker%2eexample.org",
        "https://tracker。example.org",
        "https://TRACKER.example.org.:443/",
        "https://a@tracker.example.org",
        "htt\tp://tracker.example.org",
        "https://ｔracker.example.org",
        "",
    ] {
        assert_eq!(judged(target), Verdict::Deny, "{target:?}");
    }
    assert_eq!(judged("https://docs.example.org/tracker.example.org"), Verdict::Allow);
}

#[test]
fn protected_names_hold_over_every_grant_and_level() {
    let mut policy = Policy::built_in();
    policy.level.value = Level::Full;
    policy.filesystem.allow_write = vec![rule("/")];
    for path in [
        "/p/ringwall.toml",
        "/p/.claude/settings.local.json",
        "/p/.git/hooks/pre-commit",
        "/home/u/.claude/settings.json",
        "/home/u/.config/ringwall/x",
    ] {
        assert_eq!(verdict(&policy, Access::Write, path), Verdict::Deny, "{path}");
        assert_eq!(verdict(&policy, Access::Read, path), Verdict::Allow, "{path}");
    }
    let through_link = [("/p/innocent", "/p/.claude/settings.json")];
    assert_eq!(
        decide(&policy, Access::Write, "/p/innocent", &through_link).verdict(),
        Verdict::Deny
    );
}

#[test]
fn a_refusal_names_the_path_the_rule_and_the_way_out() {
    let decision = decide(&Policy::built_in(), Access::Read, "/etc/my file", &[]);
    let reason = &decision.reasons()[0];
    assert_eq!(reason.rule, Rule::Workspace);
    assert!(reason.text.contains("/etc/my file"), "{}", reason.text);
    let instead = reason.instead.as_ref().unwrap();
    assert_eq!(instead.command().as_deref(), Some("ringwall grant read '/etc/my file'"));
    assert!(instead.to_string().contains("/p/ringwall.toml"), "{instead}");
}

/// Judges a call of the tool `exec`, whose shell text is in `cmd`, or of an unknown tool.
fn fetching(tool: &str, input: &serde_json::Value) -> Decision {
    let effects = &[Effect::Command { field: "cmd", presence: Presence::Required }];
    let table = [Tool { name: "exec", effects }];
    let mut policy = Policy::built_in();
    policy.quarantine.dir = Some(rule("/home/u/quarantine"));
    let scene = Scene { quarantine: Some(abs("/home/u/quarantine")), ..scene() };
    let call = ToolCall { tool: tool.into(), input: input.as_object().unwrap().clone() };
    let actions = crate::lower(&table, &call, &scene);
    let facts = answer(&needs(&policy, &context(), &actions), &[]);
    evaluate(&policy, &context(), &scene, &actions, &facts)
}

#[test]
fn a_correction_goes_to_the_field_that_holds_the_command() {
    let clone = "git clone https://git.example/x";
    for (tool, field) in [("exec", "cmd"), ("mcp__box__run", "shell_command")] {
        let decision = fetching(tool, &json!({field: clone, "timeout": 5}));
        assert_eq!(decision.verdict(), Verdict::Allow, "{decision:?}");
        let redirect = decision.redirect().unwrap();
        assert_eq!(redirect.field, field);
        assert!(redirect.value.contains("/home/u/quarantine/x"), "{redirect:?}");
        let [moved] = redirect.moves.as_slice() else { panic!("{redirect:?}") };
        assert_eq!(
            moved.to_string(),
            "redirected git clone to quarantine: /p/x -> /home/u/quarantine/x"
        );
    }
}

#[test]
fn a_command_that_no_correction_reaches_is_denied() {
    let clone = "git clone https://git.example/x";
    for input in [
        json!({"options": {"command": clone}}),
        json!({"commands": [clone]}),
        json!({"command": "ls", "cmd": clone}),
    ] {
        let decision = fetching("mcp__box__run", &input);
        assert_eq!(decision.verdict(), Verdict::Deny, "{input}");
        assert_eq!(decision.redirect(), None, "{input}");
    }
}

#[test]
fn an_unasked_fact_is_a_refusal() {
    let decision = evaluate(
        &Policy::built_in(),
        &context(),
        &scene(),
        &[on(Access::Read, "/p/a")],
        &Facts::default(),
    );
    assert_eq!(decision.verdict(), Verdict::Deny);
}

#[test]
fn the_sandbox_switch_and_interactive_tools_are_refused_at_every_level() {
    let mut policy = Policy::built_in();
    for level in Level::ALL {
        policy.level.value = level;
        for action in [
            Action::LeaveSandbox { field: "f".into() },
            Action::AskPerson { tool: "t".into() },
            Action::Invalid { field: "f".into(), problem: "p".into() },
        ] {
            let actions = [Action::Run { command: "ls".into(), field: None }, action];
            let decision = evaluate(&policy, &context(), &scene(), &actions, &Facts::default());
            assert_eq!(decision.verdict(), Verdict::Deny, "{level}");
        }
    }
}

#[test]
fn settings_may_change_but_not_switch_our_hook_off() {
    let user = PathBuf::from("/home/u/.claude/settings.json");
    let local = PathBuf::from("/p/.claude/settings.local.json");
    let entry = json!({"type": "command", "command": "/bin/rw", "args": ["hook", "claude"]});
    let groups = vec![
        HookGroup { event: "PreToolUse".into(), group: json!({"matcher": "*", "hooks": [entry]}) },
        HookGroup { event: "ConfigChange".into(), group: json!({"hooks": [entry]}) },
    ];
    let settings = json!({
        "hooks": {"PreToolUse": [groups[0].group], "ConfigChange": [groups[1].group]},
        "sandbox": {"network": {}}, "env": {"PATH": "/mine"},
    });
    let installed = settings.to_string();
    let accepted = settings;
    let hooked = HookedSettings { path: user.clone(), groups: groups.clone(), accepted };
    let rules = SettingsRules {
        off_switches: &[OffSwitch { pointer: "/disableAllHooks", on: false }],
        off_variables: &["BARE"],
        location_variables: &[],
        shapes: &[("model", Shape::Text), ("env", Shape::Variables), ("hooks", Shape::Hooks)],
    };
    let files = vec![user.clone(), local.clone()];
    let mut context = context();
    context.settings = SettingsContext { rules, files, hooked: vec![hooked], calls: vec![groups] };
    let judged = |context: &Context, user_text: FileText, local_text: FileText| {
        let mut facts = Facts::default();
        facts.set_text(user.clone(), user_text);
        facts.set_text(local.clone(), local_text);
        let actions = [&user, &local].map(|path| Action::ChangeSettings { path: path.clone() });
        evaluate(&Policy::built_in(), context, &scene(), &actions, &facts).verdict()
    };
    let text = |text: &str| FileText::Text(text.into());
    let changed = |from: &str, to: &str| {
        assert!(installed.contains(from), "{from} in {installed}");
        judged(&context, text(&installed.replacen(from, to, 1)), FileText::Missing)
    };

    // The user's file, in which we are installed.
    assert_eq!(judged(&context, text(&installed), FileText::Missing), Verdict::Allow);
    assert_eq!(
        judged(&context, text(&format!("\u{feff}{installed}")), FileText::Missing),
        Verdict::Allow
    );
    assert_eq!(changed("{\"hooks\"", "{\"model\":\"x\",\"hooks\""), Verdict::Allow);
    for (from, to) in [
        ("{\"hooks\"", "{\"model\":5,\"hooks\""),
        ("{\"hooks\"", "{\"unheard\":5,\"hooks\""),
        ("{\"hooks\"", "{\"disableAllHooks\":true,\"hooks\""),
        ("\"network\":{}", "\"network\":5"),
        ("\"matcher\":\"*\"", "\"matcher\":\"Nope\""),
        ("\"hook\",\"claude\"", "\"--version\""),
        ("\"PreToolUse\"", "\"PostToolUse\""),
        ("\"ConfigChange\"", "\"Stop\""),
        ("\"/bin/rw\"", "\"/bin/rw\",\"async\":true"),
        ("\"/mine\"", "\"/other\""),
        ("\"PATH\"", "\"HOME\""),
        ("{\"hooks\"", "// {\"hooks\""),
    ] {
        assert_eq!(changed(from, to), Verdict::Deny, "{to}");
    }
    for gone in
        [text("{}"), text("{"), text("[]"), FileText::Missing, FileText::Unreadable("x".into())]
    {
        assert_eq!(judged(&context, gone.clone(), FileText::Missing), Verdict::Deny, "{gone:?}");
    }

    // Another file, which never held our hook.
    for (other, expected) in [
        ("{}", Verdict::Allow),
        (r#"{"unheard": 5}"#, Verdict::Allow),
        (r#"{"disableAllHooks": false}"#, Verdict::Allow),
        (r#"{"disableAllHooks": true}"#, Verdict::Deny),
        (r#"{"disableAllHooks": "yes"}"#, Verdict::Deny),
        (r#"{"env": {"BARE": "1"}}"#, Verdict::Deny),
        (r#"{"env": {"CONTENT_FILTER_SANDBOX_DIR": "/"}}"#, Verdict::Deny),
        (r#"{"env": {"PATH": "/mine"}}"#, Verdict::Deny),
        ("{", Verdict::Deny),
    ] {
        assert_eq!(judged(&context, text(&installed), text(other)), expected, "{other}");
    }

    // Nothing is known about installs: the file that calls us must go on calling us.
    let mut forgotten = context.clone();
    forgotten.settings.hooked.clear();
    let known = installed
        .replace("\"sandbox\":{\"network\":{}},\"env\":{\"PATH\":\"/mine\"}", "\"model\":\"x\"");
    assert_eq!(judged(&forgotten, text(&known), FileText::Missing), Verdict::Allow);
    assert_eq!(judged(&forgotten, text("{}"), text(&known)), Verdict::Allow);
    for gone in [
        text("{}"),
        FileText::Missing,
        text(&known.replace("\"x\"", "5")),
        text(&known.replace("\"*\"", "\"Nope\"")),
        text(&known.replace("/bin/rw", "/bin/true")),
    ] {
        assert_eq!(judged(&forgotten, gone.clone(), FileText::Missing), Verdict::Deny, "{gone:?}");
    }
    // A list that names another file does not help either.
    let mut misled = context.clone();
    misled.settings.hooked[0].path = local.clone();
    misled.settings.hooked[0].groups.clear();
    assert_eq!(judged(&misled, text("{}"), text("{}")), Verdict::Deny);
}

proptest! {
    /// Each level allows everything that the one below allows.
    #[test]
    fn levels_are_monotone(
        path in "(/p|/home/u|/etc|/lib-r)?(/[a-c.]{1,4}){0,3}(/\\.env|/\\.git/config)?",
        write in any::<bool>(),
    ) {
        let path = if path.is_empty() { "/".to_owned() } else { path };
        let access = if write { Access::Write } else { Access::Read };
        let mut policy = Policy::built_in();
        policy.filesystem.allow_read = vec![rule("/lib-r")];
        policy.filesystem.deny_read = vec![rule("**/.env")];
        let verdicts = Level::ALL.map(|level| {
            policy.level.value = level;
            verdict(&policy, access, &path)
        });
        prop_assert!(verdicts.is_sorted_by(|lower, higher| lower >= higher), "{verdicts:?}");
    }
}
