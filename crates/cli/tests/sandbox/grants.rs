//! Grants: found after a run, tried, given, listed and taken back.

use fixtures::{TestEnv, text, users};

fn said(env: &TestEnv, words: &[&str]) -> (Option<i32>, String) {
    let output = env.ringwall(words);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn what_the_last_run_lacked_is_proposed_and_each_proposal_works() {
    for who in users() {
        let env = TestEnv::new(who);
        let shared = env.write("outside/shared/a.txt", "shared\n");
        env.write("outside/repository/.git/HEAD", "ref: refs/heads/main\n");
        let deep = env.write("outside/repository/src/deep/x.txt", "deep\n");
        let script = format!("cat {}; cat {}; true", shared.display(), deep.display());
        let ran = env.run(&["--on-violation", "deny"], &script);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let (code, proposed) = said(&env, &["grant", "--last"]);
        let expected: String = ["outside/shared", "outside/repository"]
            .map(|dir| format!("ringwall grant read {}\n", env.path(dir).display()))
            .concat();
        assert_eq!((code, &proposed), (Some(0), &expected), "{ran:?}");
        for line in proposed.lines() {
            let words: Vec<_> = line.split(' ').skip(1).collect();
            assert_eq!(said(&env, &words).0, Some(0), "{line}");
        }
        let ran = env.run(&[], &script);
        assert_eq!((ran.code, &*ran.stdout), (Some(0), "shared\ndeep\n"), "{ran:?}");
        let (_, nothing) = said(&env, &["grant", "--last"]);
        assert!(nothing.contains("lacked nothing"), "{nothing}");
    }
}

#[test]
fn a_lock_or_a_temporary_name_is_never_granted() {
    for who in users() {
        let env = TestEnv::new(who);
        std::fs::create_dir_all(env.path("outside/data")).unwrap();
        env.own();
        let dir = env.path("outside/data").display().to_string();
        for name in ["index.lock", "tmpA1b2C3", "x.swp", ".#notes"] {
            let ran = env.run(&[], &format!("echo x > {dir}/{name}"));
            let allow = ran.violations()[0]["allow"].as_str().map(str::to_owned);
            assert_eq!(allow, Some(format!("ringwall grant write {dir}")), "{name}: {ran:?}");
        }
    }
}

/// What gives away more than it seems to is never proposed, and asks.
#[test]
fn a_secret_and_what_is_too_wide_are_not_proposed() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.ssh/id_rsa", "KEY\n");
        env.write("home/notes.txt", "notes\n");
        let home = env.home().display().to_string();
        for script in ["cat ~/.ssh/id_rsa", "ls ~/.ssh", "ls /home/*/ /root; ls -R / 2>/dev/null"] {
            let ran = env.run(&["--on-violation", "deny"], &format!("{script}; true"));
            for violation in ran.violations() {
                let allow = violation["allow"].as_str().unwrap_or_default();
                let wide =
                    ["", "/", "/home", "/root", "/etc", &home].map(|path| format!(" {path}"));
                let bad = allow.contains(".ssh") || wide.iter().any(|end| allow.ends_with(end));
                assert!(allow.is_empty() || !bad, "{script}: {violation}");
            }
            let (_, proposed) = said(&env, &["grant", "--last"]);
            assert!(!proposed.contains(".ssh"), "{proposed}");
        }
        let key = format!("{home}/.ssh/id_rsa");
        for path in ["/", "~", &home, &key, "~/.config", "/var/run/docker.sock", "/home", "/etc"] {
            for kind in ["read", "write"] {
                let (code, told) = said(&env, &["grant", kind, path]);
                assert_eq!(code, Some(64), "{kind} {path}: {told}");
                assert!(told.contains("pass `--yes`"), "{kind} {path}: {told}");
            }
        }
        assert!(!env.path("project/ringwall.toml").exists());
        assert_eq!(said(&env, &["grant", "read", &key, "--yes"]).0, Some(0));
    }
}

#[test]
fn grants_are_listed_with_their_lines_and_taken_back() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("shared/a.txt", "a\n");
        let file = env.write("project/ringwall.toml", "# mine\nversion = 1\n");
        let before = env.read("project/ringwall.toml");
        let grants = [
            ["read", "../shared"],
            ["domain", "example.org"],
            ["port", "5432"],
            ["env", "DATABASE_URL"],
            ["unix", "/run/x.sock"],
        ];
        for [kind, value] in grants {
            let (code, told) = said(&env, &["grant", kind, value]);
            assert_eq!(code, Some(0), "{kind}: {told}");
        }
        let (_, list) = said(&env, &["grant", "--list"]);
        for part in ["read", "example.org", "5432", "DATABASE_URL", "/run/x.sock"] {
            let line = list.lines().find(|line| line.contains(part)).unwrap_or_default();
            let at = format!("{}:", file.display());
            assert!(line.contains(&at), "{part}: {list}");
        }
        for [kind, value] in grants {
            let (code, told) = said(&env, &["revoke", kind, value]);
            assert_eq!(code, Some(0), "{kind}: {told}");
        }
        assert!(env.read("project/ringwall.toml").starts_with(&before));
        let (_, list) = said(&env, &["grant", "--list"]);
        assert!(list.contains("nothing is granted"), "{list}");
        let (code, told) = said(&env, &["revoke", "read", "../shared"]);
        assert!(code == Some(1) && told.contains("ringwall grant --list"), "{told}");
        // In another file: the hint says how.
        assert_eq!(said(&env, &["grant", "port", "99", "--user"]).0, Some(0));
        let (_, told) = said(&env, &["revoke", "port", "99"]);
        assert!(told.contains("`ringwall revoke port 99 --user`"), "{told}");
        assert_eq!(said(&env, &["revoke", "port", "99", "--user"]).0, Some(0));
    }
}

/// A project's file cannot loosen what a violation does, and neither can an agent inside.
#[test]
fn only_the_user_loosens() {
    for who in users() {
        let env = TestEnv::new(who);
        let secret = env.path("outside/secret.txt").display().to_string();
        env.write("project/ringwall.toml", "[violation]\naction = \"deny\"\n");
        let ran = env.run(&[], &format!("cat {secret}; echo on"));
        assert_eq!((ran.code, &*ran.stdout), (Some(78), ""), "{ran:?}");
        std::fs::remove_file(env.path("project/ringwall.toml")).unwrap();
        let ran = env.run(&["--on-violation", "deny"], &format!("cat {secret}; echo on"));
        assert_eq!((ran.code, &*ran.stdout), (Some(0), "on\n"), "{ran:?}");
        assert!(ran.stderr.contains("warning: denied: `cat` tried to read"), "{ran:?}");
        env.configure("[violation]\naction = \"deny\"\n");
        let ran = env.run(&["--on-violation", "stop"], &format!("cat {secret}; echo on"));
        assert_eq!((ran.code, &*ran.stdout), (Some(77), ""), "{ran:?}");
        let own = env.binary().display().to_string();
        let inner = format!("{own} grant read /srv; {own} revoke read /srv; true");
        let ran = env.run(&["--on-violation", "deny", "--allow-read", &own], &inner);
        assert!(ran.stderr.matches("inside `ringwall run`").count() >= 2, "{ran:?}");
        let ran = env.run(&["--on-violation", "maybe"], "true");
        assert_eq!(ran.code, Some(64), "{ran:?}");
    }
}
