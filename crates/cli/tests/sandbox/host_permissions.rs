//! What the user could not do outside of the sandbox fails inside with the same error, and stops nothing.

use std::os::unix::fs::PermissionsExt;

use fixtures::{TestEnv, User, text, users};

/// Calls that an unprivileged user cannot make, each with what must not come of it.
const REFUSED: &[&str] = &[
    "echo 1 > /run/ringwall-test.pid",
    "echo 1 >> /etc/hostname",
    "mkdir /_ringwall_x",
    "mkdir -p /var/lib/ringwall-test/x",
    "touch /usr/lib/ringwall-test",
    "ln -s a /usr/lib/ringwall-test",
    "cat {root}/x",
    "touch {root}/a/b",
    "cat {file}",
    "echo more >> {read_only}",
];

/// The same with programs that look first. What exists is hidden from a look, as ever.
const LOOKING: &[&str] = &[
    "ls {root}",
    "rm {others}/theirs",
    "mv {others}/theirs {others}/mine",
    "chmod 777 {others}/theirs",
];

/// A message without the name of the shell and its line, which differ.
fn error(message: &str) -> String {
    message.trim().rsplit(": ").next().unwrap_or_default().to_owned()
}

#[test]
fn what_fails_outside_fails_inside_with_the_same_error() {
    for attribution in ["tripwire", "notify"] {
        let env = TestEnv::new(*users().last().unwrap());
        for dir in ["closed", "others"] {
            std::fs::create_dir_all(env.path(dir)).unwrap();
        }
        std::fs::write(env.path("closed/x"), "x\n").unwrap();
        std::fs::write(env.path("others/theirs"), "theirs\n").unwrap();
        for (name, mode) in [("others/file", 0o600), ("others/read_only", 0o644)] {
            std::fs::write(env.path(name), "text\n").unwrap();
            std::fs::set_permissions(env.path(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        let closed = PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(env.path("closed"), closed).unwrap();
        let others = PermissionsExt::from_mode(0o1777);
        std::fs::set_permissions(env.path("others"), others).unwrap();
        if users().len() < 2 {
            // Without root, these files are the user's own, and nothing of it is refused.
            return;
        }
        let refused = REFUSED.iter().map(|call| (*call, false));
        for (call, looks) in refused.chain(LOOKING.iter().map(|call| (*call, true))) {
            let call = call
                .replace("{root}", env.path("closed").to_str().unwrap())
                .replace("{file}", env.path("others/file").to_str().unwrap())
                .replace("{read_only}", env.path("others/read_only").to_str().unwrap())
                .replace("{others}", env.path("others").to_str().unwrap());
            let outside = env.bare(&call);
            assert!(!outside.status.success(), "{call}");
            let ran = env.run(&["--attribution", attribution], &format!("{call}; echo on"));
            let expected = error(&text(&outside.stderr));
            assert_eq!((ran.code, &*ran.stdout), (Some(0), "on\n"), "{call}: {ran:?}");
            let said = error(ran.stderr.lines().next().unwrap_or_default());
            // Of what cannot be looked at from outside, the run's own root knows nothing.
            let looks = looks || attribution == "notify";
            let hidden = looks && said == "No such file or directory";
            assert!(hidden || said == expected, "{attribution}: {call}: {ran:?}");
            assert!(ran.violations().is_empty(), "{call}: {ran:?}");
        }
    }
}

#[test]
fn what_the_user_could_do_is_still_a_violation() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("outside/own.txt", "own\n");
        env.own();
        let own = env.path("outside/own.txt");
        let dir = env.path("outside");
        for call in [
            format!("cat {}", own.display()),
            format!("echo x > {}", own.display()),
            format!("mkdir {}/new", dir.display()),
            format!("mkdir {}/a.b.c", env.home().display()),
            format!("rm {}", own.display()),
        ] {
            let ran = env.run(&[], &format!("{call}; echo on"));
            assert_eq!((ran.code, &*ran.stdout), (Some(77), ""), "{who:?}: {call}: {ran:?}");
        }
        if who == User::Me && rustix::process::geteuid().is_root() {
            // Root could write there.
            let ran = env.run(&[], "mkdir /_ringwall_x; echo on");
            assert_eq!(ran.code, Some(77), "{ran:?}");
        }
    }
}

/// Only someone who wants a secret looks for it, so that an attempt in vain is one, too.
#[test]
fn an_attempt_on_a_secret_of_the_system_stops_the_run() {
    for who in users() {
        let env = TestEnv::new(who);
        for call in ["cat /etc/shadow", "cat /etc/shadow > /dev/null 2>&1 || true"] {
            let ran = env.run(&[], &format!("{call}; echo on"));
            assert_eq!((ran.code, &*ran.stdout), (Some(77), ""), "{who:?}: {call}: {ran:?}");
        }
    }
}
