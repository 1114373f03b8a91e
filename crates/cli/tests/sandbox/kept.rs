//! Names that act only when the user does something: a run writes them, and at its end only what was
//! in a commit before stays. Everything else is kept aside.

use fixtures::{RunOutput, TestEnv, users};

/// A repository with two branches that differ in protected names, and an older version of them.
const REPOSITORY: &str = "git init -q -b main . && mkdir -p .vscode .husky && \
    echo 1 > .vscode/settings.json && echo hook1 > .husky/pre-commit && chmod +x .husky/pre-commit && \
    echo a > a.txt && git add -A && git commit -qm one && \
    git switch -qc other && echo 2 > .vscode/settings.json && echo hook2 > .husky/pre-commit && \
    mkdir .idea .cargo && echo x > .idea/x.xml && echo c > .cargo/config.toml && \
    git add -A && git commit -qm two && \
    git switch -qc without main && git rm -qr .husky .vscode && git commit -qm three && \
    git switch -q main";

fn kept(ran: &RunOutput) -> Vec<String> {
    let events = ran.events("kept_aside");
    let files = events.iter().flat_map(|event| event["files"].as_array().unwrap());
    let name = |file: &serde_json::Value| {
        file["path"].as_str().unwrap().split_once("/project/").unwrap().1.to_owned()
    };
    files.map(name).collect()
}

#[test]
fn a_directory_does_not_take_the_place_of_a_file() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("project/.exrc", "user\n");
        for inside in ["", "; echo x > .exrc/x"] {
            let ran = env.run(&[], &format!("rm .exrc; mkdir .exrc{inside}"));
            assert_eq!(env.read("project/.exrc"), "user\n", "{ran:?}");
            assert!(!ran.events("tampering").is_empty(), "{ran:?}");
        }
    }
}

fn assert_clean(env: &TestEnv, ran: &RunOutput) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.violations().is_empty() && ran.events("tampering").is_empty(), "{ran:?}");
    assert!(kept(ran).is_empty(), "{ran:?}");
    let status = env.bare("git status --porcelain; git fsck --no-dangling 2>&1");
    assert_eq!(String::from_utf8_lossy(&status.stdout), "", "{ran:?}");
}

#[test]
fn what_the_user_committed_can_be_checked_out() {
    for who in users() {
        for options in [&[][..], &["--attribution", "notify"], &["--attribution", "inferred"]] {
            let env = TestEnv::new(who);
            env.prepare(REPOSITORY);
            let ran = env.run(
                options,
                "set -e; git switch -q other; git status --porcelain; git switch -q without
                git switch -q main; git merge -q --no-edit other; git reset -q --hard HEAD~1
                git checkout -q other -- .vscode; git stash -q; git stash pop -q; git stash -q
                git rebase -q main without; git switch -q other",
            );
            assert_clean(&env, &ran);
            assert_eq!(env.read("project/.vscode/settings.json"), "2\n");
            assert_eq!(env.read("project/.husky/pre-commit"), "hook2\n");
            assert_eq!(env.read("project/.idea/x.xml"), "x\n");
            let ran = env.run(options, "git switch -q without");
            assert_clean(&env, &ran);
            assert!(!env.path("project/.vscode").exists(), "{ran:?}");
            // The same with objects in a pack.
            env.prepare("git gc -q");
            let ran = env.run(options, "git switch -q main");
            assert_clean(&env, &ran);
        }
    }
}

#[test]
fn what_was_in_no_commit_is_kept_aside_and_can_be_taken_over() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(REPOSITORY);
        let ran = env.run(
            &[],
            "set -e; echo mine > .vscode/settings.json; rm -r .husky; mkdir -p .idea/sub .devcontainer
            echo y > .idea/sub/y.xml; echo z > lefthook.yml; echo '{}' > .devcontainer/a.json
            mkdir -p sub/.vscode; echo t > sub/.vscode/tasks.json; cat .idea/sub/y.xml",
        );
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.violations().is_empty(), "{ran:?}");
        let mut names = kept(&ran);
        names.sort();
        let expected = [
            ".devcontainer/a.json",
            ".idea/sub/y.xml",
            ".vscode/settings.json",
            "lefthook.yml",
            "sub/.vscode/tasks.json",
        ];
        assert_eq!(names, expected, "{ran:?}");
        let status = env.bare("git status --porcelain");
        // The user's hook was in a commit, and one commit has none.
        assert_eq!(String::from_utf8_lossy(&status.stdout), " D .husky/pre-commit\n", "{ran:?}");
        assert!(!env.path("project/.idea").exists() && !env.path("project/sub").exists());
        for line in ["ringwall kept show 1", "ringwall kept take 1"] {
            assert!(ran.stderr.contains(line), "{}", ran.stderr);
        }
        assert!(
            env.said(&["kept"]).contains("lefthook.yml") || env.said(&["kept"]).contains("more")
        );
        assert!(env.said(&["kept", "show", "1"]).contains("    mine\n"));
        let shown: serde_json::Value =
            serde_json::from_str(&env.said(&["kept", "show", "1", "--json"])).unwrap();
        assert_eq!(shown["contents"].as_array().unwrap().len(), 5);
        // An agent in a run cannot take it over, and neither finds it.
        let inside = format!("{} kept take 1", env.binary().display());
        let ran = env.run(&["--allow-read", env.binary().to_str().unwrap()], &inside);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert!(!env.path("project/lefthook.yml").exists());
        env.said(&["kept", "take", "1"]);
        assert_eq!(env.read("project/.vscode/settings.json"), "mine\n");
        assert_eq!(env.read("project/sub/.vscode/tasks.json"), "t\n");
        // What was written there since is not lost.
        env.write("project/lefthook.yml", "other\n");
        assert!(!env.ringwall(&["kept", "take", "1", "lefthook.yml"]).status.success());
        assert_eq!(env.read("project/lefthook.yml"), "other\n");
        env.said(&["kept", "drop", "1"]);
        assert_eq!(env.said(&["kept"]), "nothing is kept\n");
    }
}

/// Ways to make content look as if it had been in a commit. Each leaves `evil` in `.vscode/tasks.json`
/// or in `.vscode/settings.json`.
const PRETENCES: &[(&str, &str)] = &[
    ("a commit of the run", "echo evil > .vscode/tasks.json; git add -A; git commit -qm evil"),
    (
        "a branch of the run",
        "git switch -qc evil; echo evil > .vscode/settings.json; git commit -qam evil; git switch -q main
        git switch -q evil",
    ),
    (
        "a replaced commit",
        "echo evil > .vscode/settings.json; git commit -qam evil
        git replace one $(git rev-parse HEAD)",
    ),
    (
        "an object with another one's name",
        "echo evil > .vscode/settings.json; git add -A; new=$(git write-tree)
        old=$(git rev-parse one^{tree}); file() { echo .git/objects/$1 | sed 's,objects/..,&/,'; }
        chmod u+w $(file $old); cp $(file $new) $(file $old)",
    ),
    (
        "a graft",
        "echo evil > .vscode/settings.json; c=$(git commit-tree -m x $(git write-tree))
        mkdir -p .git/info; echo $(git rev-parse one) $c > .git/info/grafts",
    ),
    (
        "a dangling object",
        "echo evil > .vscode/tasks.json; git hash-object -w .vscode/tasks.json",
    ),
    (
        "a reference that is gone again",
        "echo evil > .vscode/tasks.json; git add -A; git commit -qm evil; git tag t; git reset -q HEAD~1
        git tag -d t",
    ),
    ("the content of another path", "cp elsewhere .vscode/tasks.json"),
    ("the path in another case", "mkdir -p .VSCODE; cp .vscode/launch.json .VSCODE/launch.json; \
        mkdir -p .vscode; cp elsewhere .vscode/tasks.json"),
    ("a link in place of a file", "ln -s ../elsewhere .vscode/tasks.json"),
    ("a directory elsewhere", "mkdir d; cp elsewhere d/tasks.json; rm -r .vscode; ln -s d .vscode"),
    ("a directory that was moved", "mkdir d; cp elsewhere d/tasks.json; rm -r .vscode; mv d .vscode"),
    ("another name of the file", "cp elsewhere x; ln x .vscode/tasks.json"),
    (
        "the same in alternates",
        "git init -q --bare /tmp/o; echo evil > .vscode/tasks.json; \
        GIT_OBJECT_DIRECTORY=/tmp/o/objects git hash-object -w .vscode/tasks.json
        echo /tmp/o/objects > .git/objects/info/alternates || true",
    ),
];

#[test]
fn content_that_only_looks_committed_does_not_stay() {
    for who in users() {
        for (what, script) in PRETENCES {
            let env = TestEnv::new(who);
            env.configure("[violation]\naction = \"deny\"\n");
            env.prepare(
                "git init -q -b main . && mkdir .vscode && echo 1 > .vscode/settings.json && \
                 echo l > .vscode/launch.json && echo evil > elsewhere && git add -A && \
                 git commit -qm one && git tag one",
            );
            let ran = env.run(&[], &format!("set -x\n{script}"));
            for name in [".vscode/tasks.json", ".vscode/settings.json", ".VSCODE/launch.json"] {
                let text = std::fs::read_to_string(env.path(&format!("project/{name}")));
                let text = text.unwrap_or_default();
                assert!(text.is_empty() || text == "1\n", "{what}: {name}: {text}: {ran:?}");
            }
            let kept = !kept(&ran).is_empty() || !ran.events("tampering").is_empty();
            assert!(kept, "{what}: {ran:?}");
        }
    }
}

#[test]
fn what_a_run_committed_does_not_count_in_the_next_one() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(REPOSITORY);
        let commit = "git switch -qc evil; mkdir -p .zed; echo evil > .zed/tasks.json; git add -A
            git commit -qm evil; echo b > b; git add b; git commit -qm more; git switch -q main";
        let ran = env.run(&[], commit);
        assert!(!env.path("project/.zed").exists(), "{ran:?}");
        for script in ["git switch -q evil", "git checkout -q evil~1"] {
            let ran = env.run(&[], script);
            assert_eq!(kept(&ran), [".zed/tasks.json"], "{script}: {ran:?}");
            assert!(!env.path("project/.zed/tasks.json").exists(), "{script}: {ran:?}");
            // The user's own commits from before still count.
            let ran = env.run(&[], "git switch -qf other; git switch -q main");
            assert_clean(&env, &ran);
        }
        // What the user commits on top of it is the user's.
        env.prepare("git merge -q --no-ff -m mine evil && git switch -q other");
        let ran = env.run(&[], "git switch -q main");
        assert_clean(&env, &ran);
        assert_eq!(env.read("project/.zed/tasks.json"), "evil\n");
    }
}

#[test]
fn the_mode_of_a_file_counts() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(REPOSITORY);
        let ran = env.run(&[], "chmod -x .husky/pre-commit; chmod +x .vscode/settings.json");
        let mut names = kept(&ran);
        names.sort();
        assert_eq!(names, [".husky/pre-commit", ".vscode/settings.json"], "{ran:?}");
        let status = env.bare("git status --porcelain");
        assert_eq!(String::from_utf8_lossy(&status.stdout), "", "{ran:?}");
    }
}

#[test]
fn names_in_dependencies_are_the_authors() {
    for who in users() {
        let env = TestEnv::new(who);
        let ran = env.run(
            &[],
            "set -e; for dir in node_modules vendor .venv target; do
                mkdir -p $dir/x/.vscode $dir/x/.claude $dir/x/.husky
                echo 1 > $dir/x/.vscode/settings.json; echo 2 > $dir/x/.claude/settings.json
                echo 3 > $dir/x/.husky/pre-commit; echo 4 > $dir/x/.mcp.json; done",
        );
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(env.read("project/vendor/x/.claude/settings.json"), "2\n", "{ran:?}");
        assert!(kept(&ran).is_empty() && ran.events("tampering").is_empty(), "{ran:?}");
        // What acts there without being asked is protected all the same.
        for name in ["vendor/x/.envrc", "target/.git/config", "node_modules/x/ringwall.toml"] {
            let script = format!("mkdir -p $(dirname {name}); git init -q target; echo x > {name}");
            let ran = env.run(&[], &script);
            let text = std::fs::read_to_string(env.path(&format!("project/{name}")));
            assert_ne!(text.unwrap_or_default(), "x\n", "{name}: {ran:?}");
        }
    }
}
