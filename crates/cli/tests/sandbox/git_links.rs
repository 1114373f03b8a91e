//! Links in git directories, and repositories that the host makes during a run: git on the host writes
//! through the one, and acts on the other at once.

use fixtures::{RunOutput, TestEnv, users};

const REPOSITORY: &str = "git init -q -b main . && git add -A && git commit -q -m first";

/// Ways to bring a link to a path in a git directory; `$1` is what it leads to, `$2` where it is.
const WAYS: &[&str] = &[
    "ln -sf \"$1\" \"$2\"",
    "ln -s \"$1\" l; mv -f l \"$2\"",
    "ln -s \"$1\" l; ln -f l \"$2\"",
    "ln -s \"$1\" l; : > \"$2\"; python3 -c 'import ctypes, sys
ctypes.CDLL(None).renameat2(-100, b\"l\", -100, sys.argv[1].encode(), 2)' \"$2\"",
    "mkdir d; ln -s \"$1\" d/x; rm -rf \"$2\"; mv d \"$2\"",
];

fn meanwhile(env: &TestEnv, script: &str, host: &str) -> RunOutput {
    let host = format!("until [ -e ready ]; do sleep 0.01; done; {host}; touch done");
    let script = format!("touch ready; until [ -e done ]; do sleep 0.01; done; {script}");
    std::thread::scope(|scope| {
        let acts = scope.spawn(|| env.bare(&host));
        let ran = env.run(&[], &script);
        let acted = acts.join().unwrap();
        assert!(acted.status.success(), "{acted:?}");
        ran
    })
}

#[test]
fn no_link_comes_into_a_git_directory() {
    for who in users() {
        for way in WAYS {
            for place in [".git/COMMIT_EDITMSG", ".git/logs/x", "new/.git/TAG_EDITMSG"] {
                let env = TestEnv::new(who);
                env.prepare(REPOSITORY);
                env.write("home/.bashrc", "mine\n");
                let script = format!(
                    "git init -q new; bring() {{ {way}; }}; bring ../../home/.bashrc {place}; true"
                );
                let ran = env.run(&[], &script);
                // A link to a link crosses mounts, where `.git` is one.
                assert!(
                    ran.code == Some(77) || ran.stderr.contains("cross-device"),
                    "{way}: {ran:?}"
                );
                env.bare("GIT_EDITOR=true git commit --allow-empty; GIT_EDITOR=true git tag -a t");
                assert_eq!(env.read("home/.bashrc"), "mine\n", "{way}, {place}");
            }
        }
    }
}

#[test]
fn no_link_comes_into_the_git_directory_of_a_linked_worktree() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(
            "cd .. && rm -rf project && mkdir repo && cd repo && git init -q -b main . \
             && git commit -q --allow-empty -m first && git worktree add -q ../project -b one",
        );
        env.write("home/.bashrc", "mine\n");
        let link = "ln -sf ../../../../home/.bashrc ../repo/.git/worktrees/project/COMMIT_EDITMSG";
        let ran = env.run(&[], link);
        assert_eq!(ran.code, Some(77), "{ran:?}");
        env.bare("GIT_EDITOR=true git commit --allow-empty");
        assert_eq!(env.read("home/.bashrc"), "mine\n");
    }
}

#[test]
fn a_link_that_came_without_an_intercepted_call_is_moved_aside() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(REPOSITORY);
        env.write("home/.bashrc", "mine\n");
        let script = "ln -sf ../../home/.bashrc .git/COMMIT_EDITMSG";
        let ran = env.run(&["--attribution", "inferred"], script);
        assert_eq!(ran.events("tampering").len(), 1, "{ran:?}");
        env.bare("GIT_EDITOR=true git commit --allow-empty");
        assert_eq!(env.read("home/.bashrc"), "mine\n");
    }
}

#[test]
fn links_elsewhere_and_repositories_of_the_run_are_ordinary_work() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(REPOSITORY);
        let ran = env.run(
            &[],
            "set -e; mkdir -p bin odd.git; ln -s ../hello.txt bin/a; ln -s hello.txt odd.git/b; mv bin/a c
            git init -q sub; cd sub; git config user.name x; git config user.email x@example.org
            ln -s x y; git add -A; git commit -q -m one; git branch -m other; git gc -q; cd ..
            mv sub moved; cd moved; git config color.ui false; git commit -q --allow-empty -m two
            git clone -q . ../again; cd ../again; git config user.name y",
        );
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.events("tampering").is_empty(), "{ran:?}");
    }
}

#[test]
fn an_unfinished_rebase_cannot_be_continued_through_a_link() {
    for who in users() {
        for link in [
            "mv $dir x; ln -s ../x $dir",
            "mv $dir/git-rebase-todo x; ln -s $PWD/x $dir/git-rebase-todo",
        ] {
            let env = TestEnv::new(who);
            env.prepare(&format!(
                "{REPOSITORY}; git switch -q -c topic; echo t > hello.txt; git commit -q -am topic
                git switch -q main; echo m > hello.txt; git commit -q -am main; git switch -q topic"
            ));
            let ran = env.run(&[], &format!("dir=.git/rebase-merge; git rebase -q main; {link}"));
            assert_eq!(ran.code, Some(77), "{link}: {ran:?}");
            assert_eq!(ran.events("violation").last().unwrap()["operation"], "symbolic_link");
        }
    }
}

#[test]
fn a_directory_that_the_run_moves_to_the_name_of_a_repository_is_not_the_hosts() {
    let planted = "mkdir -p new/refs new/objects; echo 'ref: refs/heads/main' > new/HEAD
        printf '[core]\n\tfsmonitor = touch PWNED\n' > new/config";
    for who in users() {
        for moved in [
            "mv new lib.git",
            "mkdir up; mv new up/lib.git; mv up down",
            "mkdir lib.git; python3 -c 'import ctypes
ctypes.CDLL(None).renameat2(-100, b\"new\", -100, b\"lib.git\", 2)'",
        ] {
            let env = TestEnv::new(who);
            let ran = env.run(&[], &format!("{planted}; {moved}"));
            let left = env.bare("grep -rl PWNED --include config .");
            assert!(left.stdout.is_empty(), "{moved}: {left:?}, {ran:?}");
        }
    }
}

#[test]
fn a_repository_that_the_host_makes_during_a_run_is_not_written() {
    for who in users() {
        for plant in [
            "printf '[core]\\n\\tfsmonitor = touch PWNED\\n' >> lib/.git/config",
            "mkdir -p lib2; mv lib lib3; printf '[alias]\\n' >> lib3/.git/config",
            "printf x > lib/.git/hooks/pre-commit",
        ] {
            let env = TestEnv::new(who);
            let ran = meanwhile(&env, plant, "git init -q lib");
            assert_eq!(ran.code, Some(77), "{plant}: {ran:?}");
            assert!(ran.events("tampering").is_empty(), "{plant}: {ran:?}");
            // What the host wrote there stays.
            env.prepare("test -e lib/.git/config || test -e lib3/.git/config");
        }
        // One that the run makes, and moves, is judged at the end as before.
        let env = TestEnv::new(who);
        let ran = env.run(
            &[],
            "git init -q lib; printf '[core]\\n\\tfsmonitor = touch PWNED\\n' >> lib/.git/config; mv lib x",
        );
        assert_eq!(ran.events("tampering").len(), 1, "{ran:?}");
        env.bare("cd x; git status");
        assert!(!env.path("project/x/PWNED").exists() && !env.path("project/PWNED").exists());
    }
}
