//! Many runs in one workspace at once: none disturbs another, and nothing of them shows outside.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fixtures::{TestEnv, users};

use crate::traces::Traces;

const RUNS: usize = 20;
const ROUNDS: usize = 3;

/// Protected names: some exist, some do not.
const PRESENT: &[(&str, &str)] = &[
    (".envrc", "export A=1\n"),
    (".mcp.json", "{}\n"),
    (".claude/settings.json", "{}\n"),
    (".vscode/tasks.json", "{}\n"),
    ("sub/.envrc", "export B=1\n"),
];

const SETUP: &str = "git init -q . && git add -A && git -c user.name=x -c user.email=x@example.org \
    commit -q -m first && printf '#!/bin/sh\\n' > .git/hooks/pre-commit";

#[test]
fn twenty_runs_share_a_workspace() {
    for who in users() {
        let env = TestEnv::new(who);
        for (name, text) in PRESENT {
            env.write(&format!("project/{name}"), text);
        }
        env.write("project/.gitignore", "work-*\n");
        let config = "[violation]\naction = \"deny\"\n";
        env.write("home/.config/ringwall/ringwall.toml", config);
        let made = env.bare(SETUP);
        assert!(made.status.success(), "{made:?}");
        let git = [".git/config", ".git/hooks/pre-commit"];
        let kept: Vec<_> = PRESENT.iter().map(|(name, _)| *name).chain(git).collect();
        let texts = || kept.iter().map(|name| env.read(&format!("project/{name}"))).collect();
        let before: Vec<String> = texts();
        let names = listing(&env);
        let traces = Traces::before(&env);
        for round in 0..ROUNDS {
            let runs: Vec<_> = (0..RUNS).map(|number| start(&env, number)).collect();
            let supervisors: Vec<_> = runs.iter().map(Child::id).collect();
            ghosts(&env, &names, runs);
            traces.nothing(&format!("{who:?}, round {round}"), &supervisors, &[]);
            let status = env.bare("git status --porcelain");
            assert!(status.status.success() && status.stdout.is_empty(), "{status:?}");
            assert_eq!(texts(), before);
        }
    }
}

/// Works a little, and tries what must not be done.
fn start(env: &TestEnv, number: usize) -> Child {
    let script = format!(
        "mkdir work-{number} && echo x > work-{number}/x && git status --porcelain > work-{number}/s; \
         echo x > .envrc; echo x > .git/config; mv .git work-{number}/git; rm -rf .claude; \
         echo x > .bashrc; echo x > .zshrc; mv work-{number} .codex; ln -s /etc/passwd .profile; \
         test \"$(cat work-{number}/x)\" = x && test ! -s work-{number}/s && \
         rm -r work-{number} && exit {number}"
    );
    let mut command = env.command(env.binary());
    command.args(["run", "--", "/bin/bash", "-c", &script]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits for the runs, and looks meanwhile whether anything else appears in the workspace.
fn ghosts(env: &TestEnv, names: &BTreeSet<String>, mut runs: Vec<Child>) {
    let since = Instant::now();
    loop {
        let now = listing(env);
        let ghosts: Vec<_> =
            now.difference(names).filter(|name| !name.starts_with("work-")).collect();
        assert!(ghosts.is_empty(), "{ghosts:?}");
        let missing: Vec<_> = names.difference(&now).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let done: Vec<_> = runs.iter_mut().map(|run| run.try_wait().unwrap()).collect();
        if done.iter().all(Option::is_some) {
            let codes: Vec<_> = done.iter().flatten().map(|status| status.code()).collect();
            let expected: Vec<_> = (0..RUNS).map(|number| i32::try_from(number).ok()).collect();
            assert_eq!(codes, expected);
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(300), "{done:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The names in the workspace, and in the directories that hold protected ones.
fn listing(env: &TestEnv) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for dir in ["", ".claude/", ".vscode/", "sub/", ".git/hooks/"] {
        for entry in std::fs::read_dir(env.project().join(dir)).into_iter().flatten().flatten() {
            names.insert(format!("{dir}{}", entry.file_name().display()));
        }
    }
    names
}
