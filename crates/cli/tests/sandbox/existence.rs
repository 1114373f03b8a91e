//! What a run does not need does not exist for it, and an attempt to read it is still noticed.

use std::os::unix::fs::symlink;

use fixtures::{TestEnv, users};

/// Ways to ask whether something exists. Each says `there` if it does.
const LOOKS: &[&str] = &[
    "[ -e {} ] && echo there",
    "[ -f {} ] || [ -d {} ] && echo there",
    "[ -r {} ] || [ -L {} ] && echo there",
    "stat {} > /dev/null 2>&1 && echo there",
    "stat -f {} > /dev/null 2>&1 && echo there",
    "ls -d {} > /dev/null 2>&1 && echo there",
    "ls -la {} > /dev/null 2>&1 && echo there",
    "find {} -maxdepth 0 2> /dev/null | grep -q . && echo there",
    "readlink -e {} > /dev/null && echo there",
    "realpath -e {} > /dev/null 2>&1 && echo there",
    "(cd {}) 2> /dev/null && echo there",
    "cp -r {} copy 2> /dev/null && echo there",
    "/usr/bin/python3 -c 'import os; os.path.exists(\"{}\") and print(\"there\")'",
    "/usr/bin/python3 -c 'import os; os.access(\"{}\", 0) and print(\"there\")'",
    "/usr/bin/python3 -c 'import os; os.open(\"{}\", os.O_PATH); print(\"there\")' 2> /dev/null",
    "/usr/bin/python3 -c 'import os; os.listxattr(\"{}\"); print(\"there\")' 2> /dev/null",
];

/// The same by the error that a call gives: what exists must not answer differently.
const ERRORS: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def error(call, *rest):
    ctypes.set_errno(0)
    call(*rest)
    return ctypes.get_errno()
def answers(path):
    name, room = path.encode(), ctypes.create_string_buffer(4096)
    watch = libc.inotify_init1(0)
    return [error(libc.access, name, 0), error(libc.faccessat, -100, name, 4, 0),
        error(libc.readlink, name, room, 4096), error(libc.statfs, name, room),
        error(libc.getxattr, name, b'user.a', room, 4096), error(libc.chdir, name),
        error(libc.inotify_add_watch, watch, name, 0xfff),
        error(libc.statx, -100, name, 0, 0xfff, room), error(libc.chdir, name + b'/x')]
there, absent = (answers(path) for path in sys.argv[1:3])
print('same' if there == absent else (there, absent))
";

fn prepared(who: fixtures::User) -> TestEnv {
    let env = TestEnv::new(who);
    env.write("home/notes/deep/a.txt", "NOTE\n");
    symlink("secret.txt", env.path("outside/link")).unwrap();
    env.own();
    env
}

fn paths(env: &TestEnv) -> Vec<String> {
    let below = |name: &str| env.path(name).display().to_string();
    ["home/.ssh", "home/.ssh/id_ed25519", "home/notes", "home/notes/deep", "home/notes/deep/a.txt"]
        .iter()
        .chain(&["outside/secret.txt", "outside/link", "outside"])
        .map(|name| below(name))
        .chain(["/boot".into(), "/srv".into(), "/etc/shadow".into()])
        .collect()
}

#[test]
fn a_look_at_what_is_not_needed_says_that_it_is_not_there() {
    for who in users() {
        let env = prepared(who);
        for path in paths(&env) {
            let asked: Vec<_> = LOOKS.iter().map(|look| look.replace("{}", &path)).collect();
            let ran = env.run(&[], &format!("{}; echo end", asked.join("\n")));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "end\n"), "{path}: {ran:?}");
            assert!(ran.violations().is_empty(), "{path}: {ran:?}");
        }
    }
}

#[test]
fn no_error_tells_what_exists_from_what_does_not() {
    for who in users() {
        let env = prepared(who);
        env.write("project/ask.py", ERRORS);
        for path in paths(&env) {
            let ran = env.run(&[], &format!("/usr/bin/python3 ask.py {path} {path}-absent"));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "same\n"), "{path}: {ran:?}");
        }
    }
}

#[test]
fn looking_first_does_not_hide_an_attempt_to_read() {
    for who in users() {
        let env = prepared(who);
        let key = env.path("home/.ssh/id_ed25519").display().to_string();
        for script in [
            "cat {}",
            "head -c 1 {}",
            "[ -e {} ]; cat {}",
            "stat {}; for n in 1 2 3; do test -e {}; done; cat < {}",
            "/usr/bin/python3 -c 'import os; os.path.exists(\"{}\"); open(\"{}\")'",
            "/usr/bin/python3 -c 'import os; os.open(os.path.dirname(\"{}\"), os.O_RDONLY)'",
            "/usr/bin/python3 -c 'import os; os.listdir(os.path.dirname(\"{}\"))'",
            "{}",
            "echo x >> {}",
            ". {}",
        ] {
            let script = script.replace("{}", &key);
            let ran = env.run(&[], &format!("{script} 2> /dev/null; echo next"));
            assert_eq!(ran.code, Some(77), "{script}: {ran:?}");
            assert!(!ran.stdout.contains("next"), "{script}: {ran:?}");
            let shown = ran.stderr.contains("id_ed25519") || ran.stderr.contains(".ssh");
            assert!(shown, "{script}: {ran:?}");
        }
    }
}

#[test]
fn a_look_is_recorded_and_a_run_that_fails_says_what_it_did_not_see() {
    for who in users() {
        let env = prepared(who);
        let notes = env.path("home/notes").display().to_string();
        let ran = env.run(&[], &format!("ls {notes}"));
        assert_ne!(ran.code, Some(77), "{ran:?}");
        assert!(ran.stderr.contains("grant read") && ran.stderr.contains("notes"), "{ran:?}");
        let looks = ran.events("violation");
        let recorded = looks.iter().any(|event| {
            event["class"] == "probe" && event["operation"] == "look" && event["path"] == notes
        });
        assert!(recorded, "{ran:?}");
        let ran = env.run(&[], &format!("ls {notes}; true"));
        assert!(!ran.stderr.contains("grant read"), "{ran:?}");
    }
}

/// What leads to the workspace and to toolchains has to be seen, and nothing beside it is.
#[test]
fn the_directories_above_what_a_run_needs_are_there() {
    for who in users() {
        let env = prepared(who);
        let project = env.project().display().to_string();
        let script = format!(
            "set -e; realpath -e {project}; d=$PWD; while [ $d != / ]; do [ -d $d ]; d=$(dirname $d); done
            [ -d ~ ]; [ -d /usr ]; pwd -P; git rev-parse --is-inside-work-tree || true; echo end"
        );
        let ran = env.run(&[], &script);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.ends_with("end\n") && ran.violations().is_empty(), "{ran:?}");
    }
}

/// A link of the host is a link in the run if it leads to something allowed, and absent otherwise.
#[test]
fn links_that_lead_to_what_is_allowed_are_links() {
    for who in users() {
        let env = prepared(who);
        env.write("granted/in/file", "granted\n");
        for (name, target) in [
            ("home/code", "../"),
            ("home/work", "../project"),
            ("home/twice", "work"),
            ("home/shared", "../granted/in"),
            ("home/elsewhere", "../outside"),
            ("home/keys", ".ssh"),
            ("home/root", "/"),
            ("home/system", "/etc"),
            ("home/dangling", "../nothing"),
        ] {
            symlink(target, env.path(name)).unwrap();
        }
        env.own();
        let grant = env.path("granted/in").display().to_string();
        let script = "cat ~/code/project/hello.txt ~/work/hello.txt ~/twice/hello.txt ~/shared/file
            echo new > ~/twice/new; cat new; readlink ~/twice; cd ~/code/project && pwd -P
            for name in elsewhere keys root system dangling; do
                [ -e ~/$name ] && echo there; [ -L ~/$name ] && echo there; readlink ~/$name
            done; true";
        let ran = env.run(&["--allow-read", &grant], script);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let project = env.project().display().to_string();
        let expected = format!("hello\nhello\nhello\ngranted\nnew\nwork\n{project}\n");
        assert_eq!(ran.stdout, expected, "{ran:?}");

        for (path, tried) in [
            ("elsewhere/secret.txt", "home/elsewhere/secret.txt"),
            ("keys/id_ed25519", "home/keys/id_ed25519"),
        ] {
            let ran = env.run(&[], &format!("cat ~/{path}; echo went on"));
            assert_eq!(ran.code, Some(77), "{path}: {ran:?}");
            let tried = env.path(tried).display().to_string();
            assert_eq!(ran.violations()[0]["path"], tried, "{ran:?}");
            assert!(!ran.stdout.contains("SECRET"), "{ran:?}");
        }
        // What the target is when it is followed counts, and not what the link says.
        let ran = env.run(&[], "cat ~/work/../outside/secret.txt; cat ~/code/outside/secret.txt");
        assert!(ran.code == Some(77) && !ran.stdout.contains("SECRET"), "{ran:?}");
    }
}
