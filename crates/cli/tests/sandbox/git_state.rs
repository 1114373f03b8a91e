//! What git on the host acts on after a run: programs that its configuration names, operations that
//! are not finished, repositories in places where nobody looks.

use fixtures::{RunOutput, TestEnv, User, users};

/// A checkout with one commit.
const CHECKOUT: &str = "git init -q -b main . && git add -A && git commit -qm first";

/// A script whose mark, `PWNED`, lies beside the project, where only git without a sandbox makes it.
fn marking(env: &TestEnv, script: &str) -> String {
    script.replace("PWNED", &env.path("PWNED").display().to_string())
}

fn denying(env: &TestEnv) {
    env.configure("[violation]\naction = \"deny\"\n");
}

/// Whether git on the host did what was planted.
fn is_marked(env: &TestEnv) -> bool {
    let mark = env.path("PWNED");
    let made = mark.exists();
    let _ = std::fs::remove_file(mark);
    made
}

/// Prepares a project, runs a script, and then git without a sandbox, which must not run what the
/// script left. Without a sandbox it does, or the test would try nothing.
fn assert_disarmed(who: User, prepare: &str, script: &str, git: &str) -> (TestEnv, RunOutput) {
    let bare = TestEnv::new(who);
    bare.prepare(&marking(&bare, prepare));
    bare.bare(&marking(&bare, script));
    let after = bare.bare(&marking(&bare, git));
    assert!(is_marked(&bare), "{prepare}; {script}; {git}: {after:?}");
    let env = TestEnv::new(who);
    denying(&env);
    env.prepare(&marking(&env, prepare));
    let ran = env.run(&[], &marking(&env, script));
    let after = env.bare(&marking(&env, git));
    assert!(!is_marked(&env), "{prepare}; {script}; {git}: {ran:?}, {after:?}");
    (env, ran)
}

const PLANT_HOOK: &str = "mkdir -p .githooks; printf '#!/bin/sh\\ntouch PWNED\\n' \
    > .githooks/pre-commit; chmod 755 .githooks/pre-commit";
const COMMIT: &str = "git commit -q --allow-empty -m second";

#[test]
fn a_directory_of_hooks_is_found_however_it_is_named() {
    for who in users() {
        for configuration in [
            "printf '[core] # a comment\\n\\thooksPath = .githooks\\n' >> .git/config",
            "printf '[core]\\n\\thooksPath = .githooks # a comment\\n' >> .git/config",
            "printf '[core] hooksPath = .githooks\\n' >> .git/config",
            "printf '# \\377\\n[core]\\n\\thooksPath = .githooks\\n' >> .git/config",
            "printf '[x \"a\\\\\"b\"]\\n\\ty = \"a\\\\\"b\"\\n[core]\\n\\thooksPath = .githooks\\n' >> .git/config",
            "printf '[core]\\n\\thooksPath = .git\\\\\\nhooks\\n' >> .git/config",
            "printf '[core]\\n\\thooksPath = %s/.githooks\\n' \"$PWD\" >> .git/config",
            "printf '[include]\\n\\tpath = more\\n' >> .git/config
             printf '[core]\\n\\thooksPath = .githooks\\n' > .git/more",
            "printf '[includeIf \"gitdir:/**\"]\\n\\tpath = ~/more\\n' >> .git/config
             printf '[core]\\n\\thooksPath = .githooks\\n' > ~/more",
            "git config --global core.hooksPath .githooks",
            "git config extensions.worktreeConfig true; git config --worktree core.hooksPath .githooks",
        ] {
            for there in ["", "mkdir .githooks"] {
                let prepare = format!("{CHECKOUT}\n{configuration}\n{there}");
                assert_disarmed(who, &prepare, PLANT_HOOK, COMMIT);
            }
        }
        // The whole checkout as such a directory.
        let prepare = format!("{CHECKOUT}\ngit config core.hooksPath \"$PWD\"");
        let script = "printf '#!/bin/sh\\ntouch PWNED\\n' > pre-commit; chmod 755 pre-commit";
        assert_disarmed(who, &prepare, script, COMMIT);
    }
}

#[test]
fn a_directory_of_hooks_is_protected_in_a_linked_worktree() {
    for who in users() {
        for configuration in [
            "git config core.hooksPath .githooks",
            "git config --global core.hooksPath .githooks",
            "git config extensions.worktreeConfig true
             git -C ../project config --worktree core.hooksPath .githooks",
        ] {
            let prepare = format!(
                "cd .. && rm -rf project && mkdir repo && cd repo && git init -q -b main . \
                 && git commit -q --allow-empty -m first && git worktree add -q ../project -b one
                 {configuration}"
            );
            assert_disarmed(who, &prepare, PLANT_HOOK, COMMIT);
        }
    }
}

#[test]
fn a_program_in_the_checkout_that_git_runs_stays_as_it_is() {
    let plant = "mkdir -p tools; printf '#!/bin/sh\\ntouch PWNED\\n' > tools/x; chmod 755 tools/x";
    let there = "mkdir tools; printf '#!/bin/sh\\ncat\\n' > tools/x; chmod 755 tools/x";
    for who in users() {
        for (configuration, git) in [
            ("git config core.fsmonitor tools/x", "git status"),
            ("git config --global alias.x '!tools/x'", "git x"),
            ("git config alias.x '!sh tools/x'", "git x"),
            ("git config alias.x '!\"$(git rev-parse --show-toplevel)/tools/x\"'", "git x"),
            (
                "git config filter.x.clean 'tools/x %f'; echo '*.x filter=x' > .gitattributes",
                "echo x > a.x; git add a.x",
            ),
            ("git config diff.external ./tools/x", "echo x >> hello.txt; git diff"),
            ("git config core.editor tools/x", "git commit --allow-empty"),
        ] {
            let prepare = format!("{CHECKOUT}; {there}; {configuration}");
            assert_disarmed(who, &prepare, plant, git);
            // A name that is only a word in a command can be written.
            let env = TestEnv::new(who);
            env.prepare(&format!(
                "{prepare}; git config alias.y '!cat sub/notes'; mkdir sub; touch sub/notes"
            ));
            let ran = env.run(&[], "echo x >> sub/notes && echo x > tools/other");
            assert_eq!(ran.code, Some(0), "{configuration}: {ran:?}");
        }
    }
}
