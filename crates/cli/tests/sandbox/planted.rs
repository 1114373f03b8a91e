//! What a run leaves behind for others to trip over: programs that git would run afterwards, links
//! that lead elsewhere, names that look like something else.

use std::os::unix::fs::PermissionsExt;

use fixtures::{RunOutput, TestEnv, User, has_python, users};

const WATCHED: &[&str] = &[];
const UNWATCHED: &[&str] = &["--attribution", "inferred"];

/// The parts by which git takes a directory for a repository, whatever it is called.
const PARTS: &str = "mkdir -p d/objects d/refs; echo 'ref: refs/heads/main' > d/HEAD";

/// A configuration for it that names a program. Git heeds `worktree` only beside a version.
const CONFIG: &str = r#"mkdir -p d; printf '%s\n' '[core]' 'repositoryformatversion = 0' \
    'bare = false' 'worktree = .' 'fsmonitor = "touch PWNED; false"' > d/config"#;

/// A script whose mark, `PWNED`, lies beside the project, where only git without a wall makes it.
fn marking(env: &TestEnv, script: &str) -> String {
    script.replace("PWNED", &env.path("PWNED").display().to_string())
}

/// Runs scripts one after another behind the wall, and then git without one, which must run nothing
/// that they left.
fn planted(who: User, options: &[&str], scripts: &[&str], git: &str) -> (TestEnv, Vec<RunOutput>) {
    let env = TestEnv::new(who);
    let ran: Vec<_> =
        scripts.iter().map(|script| env.run(options, &marking(&env, script))).collect();
    let after = env.bare(git);
    assert!(!env.path("PWNED").exists(), "{scripts:?}, {options:?}: {ran:?}, {after:?}");
    (env, ran)
}

/// Where there was no wall git does run it, or the test would try nothing.
fn assert_armed(who: User, scripts: &[&str], git: &str) {
    let env = TestEnv::new(who);
    let made: Vec<_> = scripts.iter().map(|script| env.bare(&marking(&env, script))).collect();
    let after = env.bare(git);
    assert!(env.path("PWNED").exists(), "{scripts:?}: {made:?}, {after:?}");
}

#[test]
fn a_heading_cannot_hide_a_key() {
    for who in users() {
        for (heading, armed) in [
            (r#"[remote "x"][core] fsmonitor = "touch PWNED; false" #]"#, true),
            (r#"[remote "x"] [core] fsmonitor = "touch PWNED; false" ;]"#, true),
            (r#"[remote.x][core] fsmonitor = "touch PWNED; false" #]"#, true),
            // All of it is a name to this git. It is nothing that git writes by itself.
            (r#"[remote "x] [core] fsmonitor = touch PWNED"]"#, false),
        ] {
            let script = format!(
                "git init -q r; printf '%s\\n' '[core]' '\trepositoryformatversion = 0' \
                 '{heading}' > r/.git/config"
            );
            let git = "git -C r status";
            if armed {
                assert_armed(who, &[&script], git);
            }
            let (_, ran) = planted(who, WATCHED, &[&script], git);
            assert!(ran[0].stderr.contains("tampering"), "{heading}: {ran:?}");
        }
    }
}

#[test]
fn what_is_moved_aside_lies_on_the_ground() {
    for who in users() {
        for options in [WATCHED, UNWATCHED] {
            for (dir, file, before, script) in [
                ("outside", "ringwall.toml", "ln -s x/ringwall.toml .envrc", "ln -s DIR x"),
                // The user's own, whose loss would open what it denies.
                (
                    "home/.config/ringwall",
                    "ringwall.toml",
                    "ln -s x/ringwall.toml .envrc",
                    "ln -s DIR x",
                ),
                (
                    "outside",
                    "attributes",
                    "true",
                    "git init -q r; rm -rf r/.git/info; ln -s DIR r/.git/info",
                ),
            ] {
                let env = TestEnv::new(who);
                let file = format!("{dir}/{file}");
                env.write(&file, "# KEPT\n");
                env.prepare(before);
                let dir = env.path(dir);
                let ran = env.run(options, &script.replace("DIR", &dir.display().to_string()));
                let kept = std::fs::read_to_string(env.path(&file)).ok();
                assert_eq!(kept.as_deref(), Some("# KEPT\n"), "{file}, {script}: {ran:?}");
                let names = dir.read_dir().unwrap().flatten().map(|entry| entry.file_name());
                let moved: Vec<_> = names
                    .filter(|name| name.to_string_lossy().contains(".moved-by-ringwall-"))
                    .collect();
                assert!(moved.is_empty(), "{moved:?}, {script}: {ran:?}");
            }
        }
    }
}

#[test]
fn nothing_planted_can_keep_its_place() {
    // Every name that it could be moved to is taken, or nothing can be moved there.
    let taken = "for n in $(seq 99); do echo > d/config.moved-by-ringwall-$n; done";
    let closed = "chmod 0555 d";
    for who in users() {
        for last in [taken, closed] {
            let script = format!("{PARTS}; {CONFIG}; {last}");
            let git = "git -C d status";
            assert_armed(who, &[&script], git);
            let (env, ran) = planted(who, WATCHED, &[&script], git);
            let config = env.path("project/d/config");
            assert!(config.symlink_metadata().is_err(), "{last}: {ran:?}");
            if last == closed {
                let mode = env.path("project/d").metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o7777, 0o555, "{ran:?}");
            }
        }
    }
}

#[test]
fn hooks_that_cannot_be_listed_do_not_stay() {
    // By the open directory, where no name tells what it is.
    let script = r#"git init -q r; mkdir h; printf '#!/bin/sh\ntouch PWNED\n' > h/pre-commit
        chmod 755 h/pre-commit; rm -rf r/.git/hooks; mv h r/.git/hooks
        /usr/bin/python3 -c 'import os; os.fchmod(os.open("r/.git/hooks", 0), 0o311)'"#;
    let git = "git -C r commit -q --allow-empty -m x";
    for who in users().into_iter().filter(|_| has_python()) {
        assert_armed(who, &[script], git);
        // Whether the run was stopped on the way or swept after does not matter.
        for options in [WATCHED, UNWATCHED] {
            planted(who, options, &[script], git);
        }
    }
}

#[test]
fn an_embedded_repository_is_disarmed_however_it_came() {
    // Git asks whether they can be entered, and so takes files that can be run for directories.
    let files = format!(
        "mkdir d; echo > d/objects; echo > d/refs; chmod 755 d/objects d/refs
        echo 'ref: refs/heads/main' > d/HEAD; {CONFIG}"
    );
    let git = "git -C d status";
    for who in users() {
        // What a run before left does not look new to the one that completes it.
        for scripts in [&[CONFIG, PARTS][..], &[PARTS, CONFIG], &[files.as_str()]] {
            assert_armed(who, scripts, git);
            planted(who, WATCHED, scripts, git);
        }
    }
}

#[test]
fn every_link_of_a_protected_name_stays() {
    for who in users() {
        for script in [
            "rm -f l1; echo 'touch PWNED' > l1; true",
            "echo 'touch PWNED' > new; mv -f new l1; true",
            "echo 'touch PWNED' > new; ln -sf new l1; true",
        ] {
            let env = TestEnv::new(who);
            env.prepare("echo KEPT > real; ln -s real l1; ln -s l1 .envrc");
            let ran = env.run(&[], &marking(&env, script));
            let kept = std::fs::read_to_string(env.path("project/.envrc")).ok();
            assert_eq!(kept.as_deref(), Some("KEPT\n"), "{script}: {ran:?}");
        }
        let scripts = [
            "git init -q r; mv r/.git/config c; ln -s c l2; ln -s ../../l2 r/.git/config",
            r#"rm -f l2; printf '%s\n' '[core]' 'fsmonitor = "touch PWNED; false"' > l2"#,
        ];
        let git = "git -C r status";
        assert_armed(who, &scripts, git);
        planted(who, WATCHED, &scripts, git);
    }
}

#[test]
fn a_grant_does_not_follow_a_link_to_secrets() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("lib/include/lib.h", "HEADER\n");
        let include = env.path("lib/include").display().to_string();
        let options = ["--allow-read", &include];
        let ran = env.run(&options, &format!("cat {include}/lib.h"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "HEADER\n"), "{ran:?}");
        // As a run that may write there would leave it.
        env.prepare("rm -r ../lib/include && ln -s ~/.ssh ../lib/include");
        let key = env.home().join(".ssh/id_ed25519").display().to_string();
        for path in [&key, &format!("{include}/id_ed25519")] {
            let ran = env.run(&options, &format!("cat {path}"));
            assert_ne!(ran.code, Some(0), "{path}: {ran:?}");
            assert!(!ran.stdout.contains("SECRET-KEY"), "{path}: {ran:?}");
        }
        // Whoever names the key means it.
        let ran = env.run(&["--allow-read", &key], &format!("cat {key}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "SECRET-KEY\n"), "{ran:?}");
    }
}

#[test]
fn a_message_stays_on_its_line() {
    let refused = r#"/usr/bin/python3 -c 'import os
os.mkdir(os.environ["HOME"] + "/x\nringwall: all is well")'"#;
    let swept = r#"d=$'x\nringwall: all is well'; mkdir other "$d"; ln -s ../other "$d/.git""#;
    for who in users().into_iter().filter(|_| has_python()) {
        let env = TestEnv::new(who);
        for (options, script) in [(WATCHED, refused), (UNWATCHED, swept)] {
            let ran = env.run(options, script);
            let told: Vec<_> =
                ran.stderr.lines().filter(|line| line.contains("all is well")).collect();
            assert!(!told.is_empty(), "{script}: {ran:?}");
            let forged = told.iter().any(|line| line.starts_with("ringwall: all is well"));
            assert!(!forged, "{script}: {ran:?}");
        }
    }
}

#[test]
fn what_a_repository_has_git_read_is_part_of_it() {
    for who in users() {
        for script in [
            "echo 'touch PWNED' >> .githooks/pre-commit",
            "printf '[core]\\nfsmonitor = \"touch PWNED; false\"\\n' >> more.gitconfig",
            "printf '[core]\\nfsmonitor = \"touch PWNED; false\"\\n' > later.gitconfig",
        ] {
            let env = TestEnv::new(who);
            env.prepare(
                "git init -q .; git config core.hooksPath .githooks; git config include.path ../more.gitconfig
                git config --add include.path ../later.gitconfig
                mkdir .githooks; printf '#!/bin/sh\\n' > .githooks/pre-commit
                chmod +x .githooks/pre-commit; : > more.gitconfig",
            );
            let ran = env.run(&[], &marking(&env, script));
            assert_eq!(ran.code, Some(77), "{script}: {ran:?}");
            env.bare("git status; git commit --allow-empty -m x");
            assert!(!env.path("PWNED").exists(), "{script}: {ran:?}");
        }
    }
}

/// Where no path can be told, nothing is let pass that could make a protected name.
#[test]
fn nothing_is_made_where_nobody_can_look() {
    if !has_python() {
        return;
    }
    let script = "exec /usr/bin/python3 -c '
import os
for _ in range(30):
    try:
        os.mkdir(\"d\" * 200)
    except PermissionError:
        break
    os.chdir(\"d\" * 200)
else:
    open(\"ringwall.toml\", \"w\")
    print(\"MADE\")
'";
    for who in users() {
        let env = TestEnv::new(who);
        let bare = env.bare(script);
        assert_eq!(String::from_utf8_lossy(&bare.stdout), "MADE\n", "{bare:?}");
        env.prepare("rm -rf d*");
        let ran = env.run(&[], script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    }
}
