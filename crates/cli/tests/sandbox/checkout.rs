//! Names that act at once, such as agents' settings: git checks out what the user has committed, and
//! whatever else unpacks such files gets them put aside.

use std::process::Stdio;

use fixtures::{RunOutput, TestEnv, eventually, has_python, users};

/// Two branches that differ in names that act at once: changed, added, removed and executable ones.
const REPOSITORY: &str = "git init -q -b main . && mkdir -p .claude/hooks .cursor/rules && \
    echo 1 > .claude/settings.json && echo 1 > .envrc && echo a > a.txt && \
    printf '#!/bin/sh\\n' > .claude/hooks/pre.sh && chmod +x .claude/hooks/pre.sh && \
    echo r > .cursor/rules/r.mdc && git add -A && git commit -qm one && \
    git switch -qc other && echo 2 > .claude/settings.json && echo 2 > .envrc && echo m > .mcp.json && \
    echo s > .cursor/rules/s.mdc && mkdir -p .claude/skills/x/y && echo k > .claude/skills/x/y/SKILL.md && \
    git rm -q .claude/hooks/pre.sh && echo b > b.txt && git add -A && git commit -qm two && \
    git switch -qc without main && git rm -qr .claude .cursor && git commit -qm three && \
    git switch -q main";

fn assert_clean(env: &TestEnv, ran: &RunOutput) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.violations().is_empty() && ran.events("tampering").is_empty(), "{ran:?}");
    assert!(ran.events("kept_aside").is_empty(), "{ran:?}");
    let status = env.bare("git status --porcelain; git fsck --no-dangling 2>&1");
    assert_eq!(String::from_utf8_lossy(&status.stdout), "", "{ran:?}");
}

fn text(env: &TestEnv, name: &str) -> Option<String> {
    std::fs::read_to_string(env.path(&format!("project/{name}"))).ok()
}

#[test]
fn what_the_user_committed_is_checked_out() {
    for who in users() {
        for options in [&[][..], &["--attribution", "notify"]] {
            let env = TestEnv::new(who);
            env.prepare(REPOSITORY);
            let ran = env.run(
                options,
                "set -e; git switch -q other; test -z \"$(git status --porcelain)\"
                cat .claude/settings.json .claude/skills/x/y/SKILL.md .cursor/rules/s.mdc .mcp.json",
            );
            assert_clean(&env, &ran);
            assert_eq!(ran.stdout, "2\nk\ns\nm\n", "{ran:?}");
            assert!(text(&env, ".claude/hooks/pre.sh").is_none(), "{ran:?}");
            assert!(ran.stderr.contains("as you had committed it"), "{}", ran.stderr);
            let ran = env.run(
                options,
                "set -e; git switch -q main; git switch -q without; git switch -q other
                git merge -q --no-edit without -X ours || git merge --abort; git reset -q --hard other
                git switch -q main; git checkout -q other -- .envrc; git stash -q; git stash pop -q
                git reset -q --hard; git rebase -q other; git reset -q --hard without; git switch -q -C m2
                git switch -q without",
            );
            assert_clean(&env, &ran);
            assert!(!env.path("project/.cursor").exists(), "{ran:?}");
            let ran = env.run(options, "git switch -q --detach other~1");
            assert_clean(&env, &ran);
            let mode = env.bare("stat -c %a .claude/hooks/pre.sh");
            assert_eq!(String::from_utf8_lossy(&mode.stdout).trim(), "755", "{ran:?}");
        }
    }
}

#[test]
fn archives_and_clones_with_such_names_are_unpacked_and_the_names_put_aside() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(
            "mkdir ../t && cd ../t && mkdir -p p/.claude/commands p/.vscode p/src && \
            echo evil > p/.claude/settings.json && echo c > p/.claude/commands/c.md && \
            echo e > p/.envrc && echo v > p/.vscode/tasks.json && echo s > p/src/s && \
            tar czf ../project/p.tgz p && cd p && git init -q -b main . && git add -A && \
            git commit -qm p && git clone -q --bare . ../../project/p.git",
        );
        for script in ["tar xzf p.tgz", "git clone -q p.git p && cat p/src/s", "cp -r /tmp/x p"] {
            let script =
                format!("mkdir /tmp/x; tar xzf p.tgz -C /tmp/x --strip-components=1; {script}");
            let ran = env.run(&[], &script);
            assert_eq!(ran.code, Some(0), "{script}: {ran:?}");
            assert!(ran.violations().is_empty(), "{script}: {ran:?}");
            assert_eq!(text(&env, "p/src/s").as_deref(), Some("s\n"), "{script}: {ran:?}");
            for name in
                [".claude/settings.json", ".claude/commands/c.md", ".envrc", ".vscode/tasks.json"]
            {
                assert!(text(&env, &format!("p/{name}")).is_none(), "{script}: {name}: {ran:?}");
            }
            let kept = ran.events("kept_aside");
            assert_eq!(kept[0]["files"].as_array().unwrap().len(), 4, "{script}: {ran:?}");
            let take = kept[0]["take"].as_str().unwrap().split(' ').skip(1).collect::<Vec<_>>();
            env.said(&take);
            assert_eq!(text(&env, "p/.claude/settings.json").as_deref(), Some("evil\n"));
            env.prepare("rm -rf p");
        }
    }
}

#[test]
fn a_direct_attempt_to_plant_one_stops_the_run() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(REPOSITORY);
        for script in [
            "echo evil > .envrc",
            "echo evil >> .claude/settings.json",
            "echo evil > .mcp.json",
            "mkdir -p sub/.claude; echo evil > sub/.claude/settings.json",
            "rm .envrc",
            "rm -rf .claude",
            "echo evil > x; mv x .mcp.json",
            "echo evil > x; ln x .mcp.json",
            "ln -s a.txt .mcp.json",
            "mv .envrc old",
            "chmod +x .envrc",
            "echo evil > .cursor/mcp.json",
        ] {
            let ran = env.run(&[], &format!("{script}; echo next"));
            assert_eq!((ran.code, &*ran.stdout), (Some(77), ""), "{script}: {ran:?}");
            let status = env.bare("rm -f x; git status --porcelain");
            assert_eq!(String::from_utf8_lossy(&status.stdout), "", "{script}: {ran:?}");
        }
    }
}

/// Ways to use the way of a checkout for something that is none. Each leaves the host as it was.
const ABUSES: &[&str] = &[
    // As if git was at work.
    "touch .git/index.lock; rm .envrc; set -C; echo evil > .envrc; mv .git/index.lock .git/index || true",
    "touch .git/index.lock; rm .envrc .claude/settings.json; mv a.txt .git/x; rm .git/index.lock",
    "set -C; echo evil > .mcp.json; touch .git/index.lock; git status > /dev/null; rm -f .git/index.lock",
    // A branch of the run.
    "git switch -qc evil; git update-index --add --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),.mcp.json
     git commit -qm evil; git switch -q main; git switch -q evil; git switch -q main",
    // The content of another path, and of another mode.
    "set -C; mkdir -p .claude/commands; cat .claude/settings.json > .claude/commands/x.md; git update-index --refresh",
];

#[test]
fn nothing_else_comes_that_way() {
    for who in users() {
        for script in ABUSES {
            let env = TestEnv::new(who);
            env.prepare(REPOSITORY);
            env.prepare("cp -a .git ../git");
            let ran = env.run(&[], script);
            // What the run did to its own repository is not what is looked at.
            let files =
                env.bare("rm -rf .git; mv ../git .git; git status --porcelain | grep -v a.txt");
            assert_eq!(String::from_utf8_lossy(&files.stdout), "", "{script}: {ran:?}");
            assert!(!env.path("project/.mcp.json").exists(), "{script}: {ran:?}");
        }
    }
}

#[test]
fn what_is_written_after_the_judgement_has_no_effect() {
    const PROGRAM: &str = r#"
import os
open(".git/index.lock", "wb").write(open(".git/index", "rb").read())
os.unlink(".envrc")
fd = os.open(".envrc", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
os.write(fd, b"2\n")
os.rename(".git/index.lock", ".git/index")
print(open(".envrc").read().strip())
os.lseek(fd, 0, 0); os.write(fd, b"evil\n")
open("late", "w").write("x")
print(open(".envrc").read().strip())
"#;
    if !has_python() {
        return;
    }
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(REPOSITORY);
        env.write("project/program.py", PROGRAM);
        let ran = env.run(&[], "python3 program.py");
        assert_eq!((ran.code, &*ran.stdout), (Some(0), "2\n2\n"), "{ran:?}");
        assert_eq!(text(&env, ".envrc").as_deref(), Some("2\n"), "{ran:?}");
    }
}

#[test]
fn ringwalls_own_file_is_not_checked_out() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare("git init -q -b main . && git commit -q --allow-empty -m none && \
            printf 'version = 1\\n[filesystem]\\ndeny_read = [\"x\"]\\n' > ringwall.toml && \
            git add -A && git commit -qm strict && \
            echo 'version = 1' > ringwall.toml && git commit -qam loose && git revert --no-edit HEAD");
        let before = text(&env, "ringwall.toml");
        // Git goes on, and what it would have changed is reported.
        for (script, said) in [
            ("git switch -q --detach main~3", "ringwall.toml stays"),
            ("git switch -q --detach main~1", "kept aside"),
        ] {
            let ran = env.run(&[], script);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert_eq!(text(&env, "ringwall.toml"), before, "{ran:?}");
            assert!(ran.stderr.contains(said), "{}", ran.stderr);
            env.prepare("git switch -qf main");
        }
    }
}

/// Commits a file by plumbing, which no hook and no checkout sees, and names the commit.
const COMMIT_BY_PLUMBING: &str = "commit() { b=$(echo EVIL | git hash-object -w --stdin)
    export GIT_INDEX_FILE=.git/ix; git read-tree HEAD; git update-index --add --cacheinfo 100644,$b,.envrc
    c=$(git commit-tree -p HEAD -m x $(git write-tree)); unset GIT_INDEX_FILE
    mkdir -p .git/refs/remotes/origin; echo $c > .git/refs/remotes/origin/evil; }\n";

const CHECK_OUT: &str = "git checkout -q origin/evil -- .envrc; true";

#[test]
fn what_is_in_a_repository_that_a_run_made_is_not_the_users() {
    for who in users() {
        let env = TestEnv::new(who);
        let make = "git init -q; echo q > q; git add q; git commit -qm q";
        env.run(&[], &format!("mkdir sub; cd sub; {make}; {COMMIT_BY_PLUMBING}commit"));
        // Where it is does not matter either.
        for dir in ["sub", "moved"] {
            let ran = env.run(&[], &format!("cd {dir}; {CHECK_OUT}"));
            assert!(text(&env, &format!("{dir}/.envrc")).is_none(), "{ran:?}");
            assert_eq!(ran.events("kept_aside").len(), 1, "{ran:?}");
            env.prepare("[ ! -e sub ] || mv sub moved");
        }
    }
}

#[test]
fn what_a_run_commits_that_goes_on_or_was_killed_is_not_the_users() {
    for who in users() {
        for ending in ["goes on", "was killed"] {
            let env = TestEnv::new(who);
            env.prepare("git init -q -b main .; echo a > a.txt; git add -A; git commit -qm one");
            let script = format!("{COMMIT_BY_PLUMBING}commit; touch ready; sleep 1000");
            let mut command = env.command(env.binary());
            command.args(["run", "--", "/bin/bash", "-c", &script]);
            let mut other = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            eventually(|| env.path("project/ready").exists().then_some(()));
            if ending == "was killed" {
                other.kill().unwrap();
                other.wait().unwrap();
            }
            let ran = env.run(&[], CHECK_OUT);
            other.kill().unwrap();
            other.wait().unwrap();
            assert!(text(&env, ".envrc").is_none(), "{ending}: {ran:?}");
            assert_eq!(ran.events("kept_aside").len(), 1, "{ending}: {ran:?}");
        }
    }
}
