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
fn a_directory_of_hooks_of_a_bare_repository_is_protected() {
    let prepare = format!(
        "{CHECKOUT}; git init -q --bare bare; git -C bare config core.hooksPath shared/x/..
         mkdir -p bare/shared/x"
    );
    let plant = "printf '#!/bin/sh\\ntouch PWNED\\n' > bare/shared/post-update
        chmod 755 bare/shared/post-update";
    for who in users() {
        assert_disarmed(who, &prepare, plant, "git push -q ./bare HEAD:refs/heads/x");
    }
}

#[test]
fn a_worktree_that_the_host_adds_meanwhile_stays() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(CHECKOUT);
        let wait = "until [ -e done ]; do sleep 0.01; done";
        let ran = meanwhile(&env, &[], wait, "git worktree add -q ../two -b two; touch done");
        assert!(ran.events("tampering").is_empty() && ran.events("changed").is_empty(), "{ran:?}");
        env.prepare("git -C ../two status");
        // One that leads to another repository does not.
        let env = TestEnv::new(who);
        env.prepare(CHECKOUT);
        let script = "mkdir -p .git/worktrees/x; echo ../../../evil > .git/worktrees/x/commondir";
        let ran = env.run(UNWATCHED, script);
        assert_eq!(ran.events("tampering").len(), 1, "{ran:?}");
        assert!(!env.path("project/.git/worktrees").exists());
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
            ("git config alias.x '!cd tools && ./x'", "git x"),
            ("git config alias.x '!cd tools; sh x'", "git x"),
            ("git config alias.x '!sh -c \"cd tools; ./x\"'", "git x"),
            ("git config alias.x \"!$PWD/too*/x\"", "git x"),
            ("git config alias.x '!T=tools; $T/x'", "git x"),
            ("git config alias.x '!tools\\/x'", "git x"),
            ("git config alias.x '!PATH=tools:$PATH x'", "git x"),
            (
                "git config filter.x.clean 'sh -c \"exec tools/x %f\"'; \
                 echo '*.x filter=x' > .gitattributes",
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

/// A history with a conflict between `main` and `topic`, which is checked out.
const CONFLICT: &str = "git init -q -b main . && git add -A && git commit -qm first \
    && git switch -qc topic && echo t > hello.txt && git commit -qam topic \
    && echo u > other && git add other && git commit -qm other \
    && git switch -q main && echo m > hello.txt && git commit -qam main && git switch -q topic";

#[test]
fn a_rebase_that_a_run_left_runs_no_program_when_it_is_continued() {
    let resolve = "echo r > hello.txt; git add hello.txt; GIT_EDITOR=true git rebase --continue";
    for who in users() {
        for script in [
            "git rebase -q main; echo 'exec touch PWNED' >> .git/rebase-merge/git-rebase-todo",
            "git rebase -q main; sed -i '1i x touch PWNED' .git/rebase-merge/git-rebase-todo",
            "git rebase -q -x 'touch PWNED' main",
        ] {
            let (env, ran) = assert_disarmed(who, CONFLICT, script, resolve);
            assert_eq!(ran.events("tampering").len(), 1, "{script}: {ran:?}");
            drop(env);
        }
        // What it says about commits stays, and it can still be continued or aborted.
        for end in ["--continue", "--abort"] {
            let env = TestEnv::new(who);
            denying(&env);
            env.prepare(CONFLICT);
            let ran = env.run(&[], &marking(&env, "git rebase -q -x 'touch PWNED' main"));
            assert_eq!(ran.events("tampering").len(), 1, "{ran:?}");
            env.prepare(&format!(
                "echo r > hello.txt; git add hello.txt; GIT_EDITOR=true git rebase {end}"
            ));
            assert!(!is_marked(&env));
            let log = env.bare("git log --format=%s && git status");
            let log = String::from_utf8_lossy(&log.stdout).into_owned();
            assert!(log.starts_with("other\ntopic\n"), "{end}: {log}");
            assert_eq!(log.contains("\nmain\n"), end == "--continue", "{end}: {log}");
            assert!(!log.contains("rebase in progress"), "{end}: {log}");
        }
    }
}

#[test]
fn a_rebase_of_the_users_own_keeps_its_commands() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(CONFLICT);
        env.bare(&marking(&env, "git rebase -q -x 'touch PWNED' main"));
        let ran = env.run(&[], "echo r > hello.txt; git add hello.txt");
        assert!(ran.code == Some(0) && ran.events("tampering").is_empty(), "{ran:?}");
        env.prepare("GIT_EDITOR=true git rebase --continue");
        assert!(is_marked(&env));
        // An unfinished one without commands is left as it is.
        let env = TestEnv::new(who);
        env.prepare(CONFLICT);
        let ran = env.run(&[], "git rebase -q main; true");
        assert!(ran.code == Some(0) && ran.events("tampering").is_empty(), "{ran:?}");
        env.prepare("echo r > hello.txt; git add hello.txt; GIT_EDITOR=true git rebase --continue");
    }
}

#[test]
fn a_rebase_in_a_linked_worktree_runs_no_program_either() {
    for who in users() {
        let prepare = format!(
            "{CONFLICT} && git switch -q main && cd .. && mv project repo && cd repo \
             && git worktree add -q ../project topic"
        );
        let script = "git rebase -q main
            echo 'exec touch PWNED' >> $(git rev-parse --git-dir)/rebase-merge/git-rebase-todo";
        let resolve =
            "echo r > hello.txt; git add hello.txt; GIT_EDITOR=true git rebase --continue";
        assert_disarmed(who, &prepare, script, resolve);
    }
}

#[test]
fn a_repository_in_disguise_inside_a_git_directory_is_disarmed() {
    for who in users() {
        for dir in
            [".git/x", ".git/objects/ab", ".git/objects/ab/cd", ".git/refs/heads/x", ".git/logs/x"]
        {
            let script = format!(
                "mkdir -p {dir}/objects {dir}/refs; echo 'ref: refs/heads/main' > {dir}/HEAD
                 printf '%s\\n' '[core]' 'repositoryformatversion = 0' 'bare = false' 'worktree = .' \
                 'fsmonitor = \"touch PWNED; false\"' > {dir}/config"
            );
            let git = format!("git -C {dir} status");
            assert_disarmed(who, CHECKOUT, &script, &git);
            // Also in parts, by one run after another.
            let env = TestEnv::new(who);
            denying(&env);
            env.prepare(CHECKOUT);
            let (first, second) = script.split_once('\n').unwrap();
            for script in [&format!("mkdir -p {dir}; {second}"), first] {
                env.run(&[], &marking(&env, script));
            }
            env.bare(&git);
            assert!(!is_marked(&env), "{dir}");
        }
        // Ordinary work inside it is left alone.
        let env = TestEnv::new(who);
        env.prepare(&format!(
            "{CHECKOUT}; git init -q --bare .git/mine; \
            git -C .git/mine config core.pager less; git init -q .git/other; \
            git -C .git/other config core.pager less"
        ));
        let ran = env.run(&[], "git commit -q --allow-empty -m x; git gc -q");
        assert!(ran.code == Some(0) && ran.events("tampering").is_empty(), "{ran:?}");
    }
}

#[test]
fn a_protected_name_deeper_than_a_path_can_be_is_moved_aside() {
    if !fixtures::has_python() {
        return;
    }
    // The names are made in a tree of short paths, which is moved below long ones.
    let script = "exec /usr/bin/python3 -c '
import os
os.makedirs(\"a/b\")
open(\"a/b/plain\", \"w\").write(\"x\")
os.rename(\"a/b/plain\", \"a/b/.en\" + \"vrc\")
for _ in range(30):
    os.mkdir(\"d\" * 200)
    os.rename(\"a\", \"d\" * 200 + \"/a\")
    os.chdir(\"d\" * 200)
'";
    let find = "find . -name .envrc";
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(script);
        assert!(!env.bare(find).stdout.is_empty());
        env.prepare("rm -rf d*");
        // Where calls are not intercepted, only the end of the run can find it.
        let ran = env.run(&["--attribution", "inferred"], script);
        assert_eq!(ran.events("tampering").len(), 1, "{ran:?}");
        assert!(ran.events("tampering")[0]["moved_to"].is_string(), "{ran:?}");
        assert!(env.bare(find).stdout.is_empty(), "{ran:?}");
    }
}

/// A run, and a script on the host that begins when the run has created `ready`.
fn meanwhile(env: &TestEnv, options: &[&str], script: &str, host: &str) -> RunOutput {
    let host = format!("until [ -e ready ]; do sleep 0.01; done; {host}");
    std::thread::scope(|scope| {
        let acts = scope.spawn(|| env.bare(&host));
        // What is replaced stays without protection only if its mount is not put back.
        let omitted = if options == UNWATCHED { "kept-mounts" } else { "" };
        let script = marking(env, &format!("touch ready; {script}"));
        let ran = env.run_with(&[("RINGWALL_OMIT", omitted)], options, &script);
        let acted = acts.join().unwrap();
        assert!(acted.status.success(), "{host}: {acted:?}");
        ran
    })
}

/// Without intercepted calls, a mount is all that protects a name.
const UNWATCHED: &[&str] = &["--attribution", "inferred"];

#[test]
fn a_configuration_that_the_host_replaced_names_no_program_of_the_run() {
    let wait = "until grep -q byhost .git/config; do sleep 0.01; done";
    for who in users() {
        for plant in [
            "git config core.fsmonitor 'touch PWNED; false'",
            "printf '[core] fsmonitor = \"touch PWNED; false\"\\n' >> .git/config",
            "printf '[core]\\nfsmonitor = \"touch PWNED; false\"\\n' > x; mv x .git/config",
            "printf '[core]\\nfsmonitor = \"touch PWNED; false\"\\n' > x; ln -sf ../x .git/config",
        ] {
            let env = TestEnv::new(who);
            env.prepare(CHECKOUT);
            let script = format!("{wait}; {plant}; exit 0");
            let ran = meanwhile(&env, UNWATCHED, &script, "git config user.byhost x");
            let after = env.bare("git status");
            assert!(!is_marked(&env), "{plant}: {ran:?}, {after:?}");
            assert!(after.status.success(), "{plant}: {after:?}");
            assert_eq!(ran.events("tampering").len(), 1, "{plant}: {ran:?}");
        }
    }
}

#[test]
fn hooks_in_a_directory_that_the_host_replaced_do_not_stay() {
    let host = "cp -a .git/hooks h; mv .git/hooks old; mv h .git/hooks; touch done";
    let script = "until [ -e done ]; do sleep 0.01; done
        printf '#!/bin/sh\\ntouch PWNED\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit";
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(CHECKOUT);
        env.program("project/.git/hooks/post-commit", "#!/bin/sh\n");
        let ran = meanwhile(&env, UNWATCHED, script, host);
        env.bare(COMMIT);
        assert!(!is_marked(&env), "{ran:?}");
        assert!(ran.stderr.contains("a git hook appeared"), "{ran:?}");
    }
}

#[test]
fn what_the_host_notes_in_a_configuration_meanwhile_stays() {
    let wait = "until grep -q byhost .git/config; do sleep 0.01; done";
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(&format!("{CHECKOUT}; git config core.editor vim"));
        let host = "git remote add origin https://example.org/x; git config branch.main.merge x
            git config user.byhost x";
        let ran = meanwhile(&env, &[], wait, host);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.events("tampering").is_empty() && ran.events("changed").is_empty(), "{ran:?}");
        let now = env.read("project/.git/config");
        assert!(now.contains("byhost") && now.contains("example.org"), "{now}");
        // What is written in place was out of reach of the run, whatever it says.
        let host = "printf '[core]\\n\\tpager = less\\n[user]\\n\\tbyhost = 2\\n' >> .git/config";
        let ran = meanwhile(&env, &[], wait, &format!("rm ready; {host}"));
        assert!(ran.events("tampering").is_empty() && ran.events("changed").is_empty(), "{ran:?}");
    }
}

#[test]
fn a_protected_file_that_was_replaced_is_reported_and_kept() {
    let wait = "until grep -q new .envrc; do sleep 0.01; done";
    for who in users() {
        for (script, content) in [("true", "new\n"), ("echo run > .envrc", "run\n")] {
            let env = TestEnv::new(who);
            env.write("project/.envrc", "old\n");
            let ran = meanwhile(
                &env,
                UNWATCHED,
                &format!("{wait}; {script}"),
                "echo new > x; mv x .envrc",
            );
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert_eq!(env.read("project/.envrc"), content, "{ran:?}");
            let changed = ran.events("changed");
            assert_eq!(changed.len(), 1, "{ran:?}");
            // What it was can still be seen.
            let shown = env.bare(changed[0]["look"].as_str().unwrap());
            assert!(String::from_utf8_lossy(&shown.stdout).contains("< old"), "{shown:?}");
            assert!(ran.events("tampering").is_empty(), "{ran:?}");
        }
        // Saved without a change.
        let env = TestEnv::new(who);
        env.write("project/.envrc", "new\n");
        let ran = meanwhile(
            &env,
            UNWATCHED,
            "until [ -e done ]; do sleep 0.01; done",
            "echo new > x; mv x .envrc; touch done",
        );
        assert!(ran.events("changed").is_empty(), "{ran:?}");
    }
}

#[test]
fn references_that_the_host_moved_are_told_from_those_that_the_run_may_have_moved() {
    let prepare = "cd .. && rm -rf project && mkdir repo && cd repo && git init -q -b main . \
        && git commit -q --allow-empty -m first && git branch other && git branch loose \
        && git worktree add -q ../project -b one";
    let host = "cd ../repo && git commit -q --allow-empty -m host && git tag v1 \
        && git branch -f loose HEAD && git worktree add -q ../two -b two && touch ../project/done";
    let wait = "until [ -e done ]; do sleep 0.01; done; git commit -q --allow-empty -m mine";
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(prepare);
        let ran = meanwhile(&env, &[], wait, host);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let stopped = &ran.events("stopped")[0];
        assert_eq!(stopped["other_references_unchanged"], true, "{ran:?}");
        let moved = stopped["moved_by_host"].to_string();
        for name in ["refs/heads/main", "refs/heads/loose", "refs/heads/two", "refs/tags/v1"] {
            assert!(moved.contains(name), "{name}: {moved}");
        }
        assert!(ran.events("tampering").is_empty() && ran.events("changed").is_empty(), "{ran:?}");
        env.prepare("git -C ../two status && git -C ../repo rev-parse two");
        // Where calls are not intercepted, the mount over a reference is lost with its first move.
        let env = TestEnv::new(who);
        env.prepare(prepare);
        let main = env.path("repo/.git/refs/heads/main");
        let script = format!("{wait}; git rev-parse HEAD > {}", main.display());
        let ran = meanwhile(&env, UNWATCHED, &script, host);
        let stopped = &ran.events("stopped")[0];
        assert_eq!(stopped["other_references_unchanged"], false, "{ran:?}");
        assert_eq!(stopped["moved_references"].to_string(), "[\"refs/heads/main\"]", "{ran:?}");
        assert!(ran.stderr.contains("git update-ref refs/heads/main"), "{ran:?}");
    }
}

/// `git am` passes its options to `git apply`, one of which writes any file of the user.
#[test]
fn an_unfinished_am_writes_nothing_elsewhere_when_it_is_continued() {
    let leave = "
        git checkout -q -b f; echo a > a; git add a; git commit -qm base
        echo b > a; git commit -qam one; echo c > a; git commit -qam two
        git format-patch -q --full-index -o p -2; git checkout -q --detach f~1
        mkdir .git/rebase-apply; mv p/0001* .git/rebase-apply/0001; mv p/0002* .git/rebase-apply/0002
        cd .git/rebase-apply; echo 1 > next; echo 2 > last; : > applying; echo t > threeway
        for name in quiet keep scissors no-verify; do echo f > $name; done
        echo t > sign; echo t > utf8; : > messageid; git rev-parse HEAD > abort-safety
        printf \" '--build-fake-ancestor=PWNED'\" > apply-opt
    ";
    for who in users() {
        let (_, ran) = assert_disarmed(who, CHECKOUT, leave, "git am --skip");
        assert_eq!(ran.events("tampering").len(), 1, "{ran:?}");
    }
}
