//! A supervisor that was killed: what its run left is found by the next run there, and by `doctor`.

use std::process::Stdio;

use fixtures::{RunOutput, TestEnv, User, eventually, users};

/// A repository whose configuration names a program, and a protected file.
const PLANT: &str = "git init -q r; printf '[core]\\n\\tfsmonitor = \"touch PWNED; false\"\\n' \
    >> r/.git/config; echo 'touch PWNED' > .envrc";

/// Starts a run, lets it plant something, and kills its supervisor.
fn killed(env: &TestEnv, script: &str) {
    let script = script.replace("PWNED", &env.path("PWNED").display().to_string());
    let script = format!("{script}; touch ready; sleep 1000");
    let mut command = env.command(env.binary());
    command.args(["run", "--attribution", "inferred", "--", "/bin/bash", "-c", &script]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually(|| env.path("project/ready").exists().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(env.path("project/ready")).unwrap();
}

/// The notes that are there.
fn notes(env: &TestEnv) -> usize {
    let place = env.home().join(".local/state/ringwall/runs");
    place.read_dir().map_or(0, Iterator::count)
}

/// The next run there; the dead one's processes may hold its note for a moment.
fn next(env: &TestEnv, options: &[&str]) -> RunOutput {
    let mut ran = env.run(options, "true");
    let mut tries = 0;
    while notes(env) > 0 && tries < 100 {
        ran = env.run(options, "true");
        tries += 1;
    }
    ran
}

fn assert_swept(env: &TestEnv) {
    assert!(!env.path("project/.envrc").exists());
    env.bare("git -C r status");
    assert!(!env.path("PWNED").exists());
    assert_eq!(notes(env), 0);
}

#[test]
fn the_next_run_searches_for_what_a_killed_one_left() {
    for who in users() {
        let env = TestEnv::new(who);
        killed(&env, PLANT);
        assert!(env.path("project/.envrc").exists());
        assert_eq!(notes(&env), 1);
        let ran = next(&env, &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let found = ran.events("tampering");
        assert_eq!(found.len(), 2, "{ran:?}");
        assert!(ran.stderr.contains("left by a run that was killed"), "{ran:?}");
        assert_swept(&env);
        let ran = env.run(&[], "true");
        assert!(ran.events("tampering").is_empty(), "{ran:?}");
    }
}

/// Without descriptors nothing can be searched, and the run cannot be watched either.
#[test]
fn a_run_whose_search_fails_keeps_its_note_and_is_no_run_that_did_not_start() {
    for who in users() {
        let env = TestEnv::new(who);
        let script = PLANT.replace("PWNED", &env.path("PWNED").display().to_string());
        let script = format!("{script}; touch ready; until [ -e go ]; do sleep 0.01; done");
        let mut command = env.command(env.binary());
        command.args(["run", "--attribution", "inferred", "--", "/bin/bash", "-c", &script]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        eventually(|| env.path("project/ready").exists().then_some(()));
        // As the same user: not every machine's root may set the limits of others.
        let pid = child.id().to_string();
        let mut limit = env.command("/usr/bin/prlimit");
        assert!(limit.args(["--pid", &pid, "--nofile=3:3"]).status().unwrap().success());
        std::fs::write(env.path("project/go"), "").unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!matches!(output.status.code(), Some(0 | 69)), "{}: {said}", output.status);
        assert!(said.contains("searches again"), "{said}");
        assert!(!said.contains("cannot start") && !said.contains(".git/config"), "{said}");
        assert_eq!(notes(&env), 1, "{said}");
        let ran = next(&env, &[]);
        assert_eq!(ran.events("tampering").len(), 2, "{ran:?}");
        assert_swept(&env);
    }
}

#[test]
fn doctor_searches_for_what_a_killed_run_left() {
    for who in users() {
        let env = TestEnv::new(who);
        killed(&env, PLANT);
        let mut said = String::new();
        eventually(|| {
            let output = env.ringwall(&["doctor"]);
            said.push_str(&String::from_utf8_lossy(&output.stdout));
            (notes(&env) == 0).then_some(())
        });
        assert!(said.contains(".envrc") && said.contains("was killed"), "{said}");
        assert_swept(&env);
    }
}

#[test]
fn what_was_there_before_a_killed_run_stays() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare("git init -q . && git config core.pager less && echo x > .envrc");
        env.program("project/.git/hooks/pre-commit", "#!/bin/sh\n");
        killed(&env, "true");
        // What the user does before the next run.
        env.prepare("git config user.name New; echo edited > new; mv new .envrc");
        let ran = next(&env, &[]);
        assert!(ran.events("tampering").is_empty() && ran.events("changed").is_empty(), "{ran:?}");
        assert_eq!(env.read("project/.envrc"), "edited\n");
        assert!(env.read("project/.git/config").contains("pager = less"));
        assert!(env.path("project/.git/hooks/pre-commit").exists());
    }
}

#[test]
fn a_run_elsewhere_and_a_run_that_goes_on_are_left_alone() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("elsewhere/file", "");
        killed(&env, PLANT);
        let elsewhere = env.path("elsewhere").display().to_string();
        let ran = env.run(&["--workspace", &elsewhere], "true");
        assert!(ran.events("tampering").is_empty(), "{ran:?}");
        assert!(env.path("project/.envrc").exists());
        assert_eq!(notes(&env), 1);
        next(&env, &[]);
        assert_swept(&env);
        // Two at once: neither takes the other for dead.
        std::thread::scope(|scope| {
            let wait = "touch first; until [ -e second ]; do sleep 0.01; done";
            let first = scope.spawn(|| {
                env.command(env.binary())
                    .args(["run", "--", "/bin/bash", "-c", wait])
                    .status()
                    .unwrap()
            });
            eventually(|| env.path("project/first").exists().then_some(()));
            assert_eq!(notes(&env), 1);
            let ran = env.run(&[], "touch second");
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert!(ran.events("tampering").is_empty(), "{ran:?}");
            assert!(first.join().unwrap().success());
        });
        assert_eq!(notes(&env), 0);
    }
}

#[test]
fn a_run_cannot_reach_the_notes() {
    for who in users() {
        let env = TestEnv::new(who);
        env.configure("[violation]\naction = \"deny\"\n");
        let place = env.home().join(".local/state/ringwall/runs").display().to_string();
        let script = format!("ls {place}/; rm -rf {place}; echo '{{}}' > {place}/x.json; true");
        for options in [&[][..], &["--level", "full"], &["--allow-write", "~/"]] {
            let ran = env.run(options, &format!("{script}; ls {place}/"));
            if options.is_empty() {
                assert_eq!(ran.stdout, "", "{ran:?}");
            }
            assert!(!env.path("home/.local/state/ringwall/runs/x.json").exists(), "{ran:?}");
            killed_note_is_kept(&env, options, &place, who);
        }
    }
}

/// A run that can write as much as a run can, and wants to remove its own note.
fn killed_note_is_kept(env: &TestEnv, options: &[&str], place: &str, who: User) {
    let script = format!("rm -rf {place}/* {place}; touch ready; sleep 1000");
    let mut command = env.command(env.binary());
    command.arg("run").args(options).args(["--", "/bin/bash", "-c", &script]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually(|| env.path("project/ready").exists().then_some(()));
    assert_eq!(notes(env), 1, "{options:?}, {who:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(env.path("project/ready")).unwrap();
    next(env, &[]);
}

#[test]
fn without_a_place_for_notes_a_run_goes_on_and_says_so() {
    for who in users() {
        let env = TestEnv::new(who);
        // Also an administrator cannot create a directory there.
        env.write("home/.local/state/ringwall/runs", "a file\n");
        let ran = env.run(&[], "echo ran");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ran\n"), "{ran:?}");
        assert!(ran.stderr.contains("if this run is killed"), "{ran:?}");
    }
}

#[test]
fn names_that_act_later_are_judged_by_the_next_run() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(
            "git init -q -b main . && mkdir .vscode && echo 1 > .vscode/settings.json && \
             echo h > lefthook.yml && git add -A && git commit -qm one && \
             echo 2 > .vscode/settings.json && git commit -qam two && echo KEPT > .gdbinit",
        );
        let script =
            "set -C; git checkout -q HEAD~1 -- .vscode; echo evil > .gdbinit; echo t > .ghci
            echo evil > .vscode/tasks.json; echo e > .mcp.json";
        killed(&env, script);
        let ran = next(&env, &[]);
        assert_eq!(env.read("project/.vscode/settings.json"), "1\n", "{ran:?}");
        assert_eq!(env.read("project/.gdbinit"), "KEPT\n", "{ran:?}");
        for name in [".vscode/tasks.json", ".ghci", ".mcp.json"] {
            assert!(!env.path(&format!("project/{name}")).exists(), "{name}: {ran:?}");
        }
        assert!(env.said(&["kept", "show", "1"]).contains("    evil\n"));
        assert!(ran.stderr.contains("ringwall kept take 1"), "{}", ran.stderr);
    }
}
