//! Machines that give less: no FUSE, a taken listener, no user namespaces, a masked /proc. The wall
//! holds, or there is no run, and what is missing is named.

use std::process::Command;

use fixtures::{RunOutput, TestEnv, User, users};
use serde_json::Value;

use crate::traces::Traces;

/// Takes device files away from whatever is mounted at `/dev/fuse`.
const NO_FUSE: &str = "mount --bind /dev/fuse /dev/fuse && mount -o remount,bind,nodev /dev/fuse";

/// What containers do.
const MASKED_PROC: &str = "mount -t tmpfs none /proc/tty";

const LANDLOCK: &str = "[confinement]\nminimum = \"landlock\"\n";

#[test]
fn without_fuse_every_open_is_watched() {
    for who in users() {
        let env = env(who, "");
        let Some(ran) = in_mounts(&env, NO_FUSE, "echo fine; cat hello.txt; ls / /usr > /dev/null")
        else {
            return;
        };
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "fine\nhello\n"), "{ran:?}");
        assert_eq!(wall(&ran, "enforcement"), "namespaces");
        assert_eq!(wall(&ran, "attribution"), "notify");
        assert_eq!(lacks(&ran), ["no-fuse"]);
        let secret = env.path("outside/secret.txt").display().to_string();
        let key = env.home().join(".ssh/id_ed25519").display().to_string();
        let new = env.path("outside/new.txt").display().to_string();
        for (script, path) in [
            (format!("cat {secret}"), &secret),
            (format!("cat {key}"), &key),
            (format!("cat < {secret}"), &secret),
            (format!("echo x > {new}"), &new),
            (format!("echo x >> {secret}"), &secret),
            (format!("rm {secret}"), &secret),
            (format!("mkdir {new}"), &new),
        ] {
            let ran = in_mounts(&env, NO_FUSE, &format!("{script}; echo next")).unwrap();
            stopped_at(&ran, path);
        }
        assert_eq!(env.read("outside/secret.txt"), "SECRET-OUTSIDE\n");
    }
}

#[test]
fn where_another_program_listens_the_wall_holds() {
    for who in users() {
        let env = env(who, "");
        env.write("project/.git/config", "[core]\n");
        let Some(ran) = under_listener(&env, "cat hello.txt") else { return };
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{ran:?}");
        if lacks(&ran).contains(&"no-fuse") {
            eprintln!(
                "skipped: /dev/fuse cannot be opened by this user, so no tripwire tells reads"
            );
            continue;
        }
        assert_eq!(lacks(&ran), ["listener-taken"]);
        assert_eq!(wall(&ran, "attribution"), "tripwire");
        // The tripwire tells reads by itself; changes are refused, and it may not see which.
        let secret = env.path("outside/secret.txt").display().to_string();
        let ran = under_listener(&env, &format!("cat {secret}; echo next")).unwrap();
        stopped_at(&ran, &secret);
        let new = env.path("outside/new.txt").display().to_string();
        let script = format!("echo x > {new}; echo x >> {secret}; rm -f {secret}; exit 6");
        let ran = under_listener(&env, &script).unwrap();
        assert!(matches!(ran.code, Some(6 | 77)), "{ran:?}");
        assert!(!env.path("outside/new.txt").exists());
        assert_eq!(env.read("outside/secret.txt"), "SECRET-OUTSIDE\n");
        // What exists under a protected name is held by mounts, what appears is moved aside.
        let script =
            "echo x > .git/config; mv .git gone; rm -rf .git/config; echo x > .envrc; true";
        let ran = under_listener(&env, script).unwrap();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(env.read("project/.git/config"), "[core]\n");
        assert!(!env.project().join(".envrc").exists(), "{ran:?}");
        assert_eq!(ran.events("tampering").len(), 1, "{ran:?}");
    }
}

#[test]
fn without_namespaces_and_listener_there_is_no_run() {
    for who in users() {
        let env = env(who, LANDLOCK);
        let script = "echo ran > ran.txt";
        let Some(ran) = under_listener_with(&env, &["--enforcement", "landlock"], script) else {
            return;
        };
        assert_eq!(ran.code, Some(69), "{ran:?}");
        assert!(ran.stderr.contains("listener-taken"), "{ran:?}");
        assert!(!env.project().join("ran.txt").exists());
    }
}

#[test]
fn with_nothing_to_attribute_the_wall_holds() {
    for who in users() {
        let env = env(who, "");
        let secret = env.path("outside/secret.txt").display().to_string();
        let script = format!("cat {secret}; echo x > {secret}; echo x > {secret}.new; exit 4");
        let ran = env.run(&["--attribution", "inferred"], &script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""), "{ran:?}");
        assert_eq!(wall(&ran, "attribution"), "inferred");
        assert_eq!(env.read("outside/secret.txt"), "SECRET-OUTSIDE\n");
        assert!(!env.path("outside/secret.txt.new").exists());
    }
}

#[test]
fn without_user_namespaces_there_is_no_run() {
    for who in users() {
        let env = env(who, "");
        let Some(ran) = without_namespaces(&env, "echo ran > ran.txt") else { return };
        assert_eq!(ran.code, Some(69), "{ran:?}");
        let remedy = "sudo sysctl user.max_user_namespaces=15000";
        for part in ["only `landlock`", "user-namespaces-off", remedy] {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
        let refused = ran.events("refused");
        assert_eq!(refused[0]["exit"], 69, "{ran:?}");
        assert_eq!(refused[0]["lacking"][0]["name"], "user-namespaces-off", "{ran:?}");
        assert_eq!(refused[0]["lacking"][0]["remedy"], remedy, "{ran:?}");
        assert!(!env.project().join("ran.txt").exists());
    }
}

#[test]
fn without_user_namespaces_landlock_holds_where_that_is_accepted() {
    for who in users() {
        let env = env(who, LANDLOCK);
        let Some(ran) = without_namespaces(&env, "echo fine") else { return };
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "fine\n"), "{ran:?}");
        assert_eq!(wall(&ran, "enforcement"), "landlock");
        assert_eq!(wall(&ran, "attribution"), "notify");
        assert_eq!(lacks(&ran), ["user-namespaces-off"]);
        landlock_holds(&env, &|script| without_namespaces(&env, script).unwrap());
    }
}

#[test]
fn a_masked_proc_is_named() {
    for who in users() {
        let strict = env(who, "");
        let Some(ran) = in_mounts(&strict, MASKED_PROC, "echo ran > ran.txt") else { return };
        assert_eq!(ran.code, Some(69), "{ran:?}");
        for part in ["mounting /proc", "masked-proc", "systempaths=unconfined"] {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
        assert_eq!(ran.events("refused")[0]["lacking"][0]["name"], "masked-proc", "{ran:?}");
        assert!(!strict.project().join("ran.txt").exists());
        let env = env(who, LANDLOCK);
        let ran = in_mounts(&env, MASKED_PROC, "echo fine").unwrap();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "fine\n"), "{ran:?}");
        assert_eq!(wall(&ran, "enforcement"), "landlock");
        assert_eq!(lacks(&ran), ["masked-proc"]);
        landlock_holds(&env, &|script| in_mounts(&env, MASKED_PROC, script).unwrap());
    }
}

#[test]
fn landlock_alone_holds_by_choice_too() {
    for who in users() {
        let env = env(who, LANDLOCK);
        let run = |script: &str| env.run(&["--enforcement", "landlock"], script);
        landlock_holds(&env, &run);
    }
}

/// Git gives up on settings that it may not read, so it gets others.
#[test]
fn where_landlock_stands_alone_git_works() {
    for who in users() {
        let env = env(who, LANDLOCK);
        let user = "[user]\n\tname = Somebody\n\temail = s@example.org\n";
        env.write("home/.gitconfig", &format!("{user}[alias]\n\tx = !true\n"));
        env.prepare("git init -q .");
        let script = "git add . && git commit -q -m x && git log --format=%an; git config alias.x";
        let ran = env.run(&["--enforcement", "landlock"], script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "Somebody\n"), "{ran:?}");
    }
}

/// What Landlock and seccomp alone must do.
fn landlock_holds(env: &TestEnv, run: &dyn Fn(&str) -> RunOutput) {
    let traces = Traces::before(env);
    // Exact exit statuses.
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
    {
        let ran = run(script);
        assert_eq!(ran.code, Some(code), "{script}: {ran:?}");
    }
    // Reads, writes and connections outside.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let secret = env.path("outside/secret.txt").display().to_string();
    let new = env.path("outside/new.txt").display().to_string();
    let address = format!("127.0.0.1:{port}");
    for (script, target) in [
        (format!("cat {secret}"), &secret),
        (format!("echo x > {new}"), &new),
        (format!("echo x >> {secret}"), &secret),
        (format!("ln {secret} here"), &secret),
        (format!("exec 3<>/dev/tcp/127.0.0.1/{port}"), &address),
    ] {
        stopped_at(&run(&format!("{script}; echo next")), target);
    }
    // The kernel refuses what no watcher tells.
    let ran = run("echo x > /tmp/x; echo x > /dev/shm/x; true");
    assert_eq!(ran.code, Some(77), "{ran:?}");
    // Something private to write, gone with the run.
    let ran =
        run("mkdir -m 0 $TMPDIR/closed && echo x > $TMPDIR/x && cat $TMPDIR/x && echo $TMPDIR");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let dir = ran.stdout.strip_prefix("x\n").unwrap().trim().to_owned();
    assert!(dir.starts_with("/tmp/ringwall-"), "{dir}");
    assert!(!std::path::Path::new(&dir).exists(), "{dir}");
    // What has left its parents ends with the run; nobody outside can be reached by a signal.
    let ran = run("(setsid sleep 1000 > /dev/null 2>&1 &); kill -0 $PPID || echo cannot; exit 5");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), "cannot\n"), "{ran:?}");
    // Protected names.
    env.write("project/.envrc", "old\n");
    stopped_at(&run("mkdir sub; mv .envrc sub/x"), ".envrc");
    env.write("project/held/.envrc", "old\n");
    stopped_at(&run("mv held gone"), "held");
    stopped_at(&run("echo new > .envrc"), &env.project().join(".envrc").display().to_string());
    stopped_at(&run("mkdir -p .git; echo x > .mcp.json"), ".mcp.json");
    assert_eq!(env.read("project/.envrc"), "old\n");
    assert_eq!(env.read("outside/secret.txt"), "SECRET-OUTSIDE\n");
    assert!(!env.path("outside/new.txt").exists());
    traces.nothing("landlock", &[], &[".envrc", ".git", "held", "held/.envrc", "sub"]);
}

fn stopped_at(ran: &RunOutput, path: &str) {
    assert_eq!(ran.code, Some(77), "{path}: {ran:?}");
    let told = ran.violations().last().map(|violation| violation["path"].clone());
    let told = told.as_ref().and_then(Value::as_str).unwrap_or_default();
    assert!(told.ends_with(path), "{told} is not {path}: {ran:?}");
    // The message has `~` for the home directory.
    let name = path.rsplit('/').next().unwrap();
    assert!(ran.stderr.contains(name), "{path}: {ran:?}");
    assert!(!ran.stdout.contains("next") && !ran.stdout.contains("SECRET"), "{ran:?}");
}

fn wall<'a>(ran: &'a RunOutput, field: &str) -> &'a str {
    ran.events("started")[0]["wall"][field].as_str().unwrap()
}

fn lacks(ran: &RunOutput) -> Vec<&str> {
    let lacking = ran.events("started")[0]["wall"]["lacking"].as_array().unwrap();
    lacking.iter().filter_map(|lack| lack["name"].as_str()).collect()
}

fn env(who: User, config: &str) -> TestEnv {
    let env = TestEnv::new(who);
    env.write("home/.config/ringwall/ringwall.toml", config);
    env
}

/// A run in a mount namespace in which something was done before. `None`, and said so, if there
/// are no such namespaces here.
fn in_mounts(env: &TestEnv, prelude: &str, script: &str) -> Option<RunOutput> {
    let mut outer = Command::new("unshare");
    outer.args(["--mount", "--propagation", "private"]);
    if !rustix::process::geteuid().is_root() {
        outer.arg("--map-root-user");
    }
    outer.args(["sh", "-c", &format!("{prelude} && exec \"$@\""), "sh"]);
    let inner = env.command(env.binary());
    outer.arg(inner.get_program()).args(inner.get_args());
    outer.env_clear().current_dir(env.project()).stdin(std::process::Stdio::null());
    outer.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run(env, outer, prelude, &[], script)
}

/// A run where user namespaces are switched off.
fn without_namespaces(env: &TestEnv, script: &str) -> Option<RunOutput> {
    let prelude = "echo 0 > /proc/sys/user/max_user_namespaces";
    let mut outer = env.command("unshare");
    outer.args(["--map-root-user", "sh", "-c", &format!("{prelude} && exec \"$@\""), "sh"]);
    outer.arg(env.binary());
    run(env, outer, prelude, &[], script)
}

/// A run under a program that watches calls already.
fn under_listener(env: &TestEnv, script: &str) -> Option<RunOutput> {
    under_listener_with(env, &[], script)
}

fn under_listener_with(env: &TestEnv, options: &[&str], script: &str) -> Option<RunOutput> {
    let python = "/usr/bin/python3";
    if !std::path::Path::new(python).exists() {
        eprintln!("skipped: there is no {python} to install a listener");
        return None;
    }
    let mut outer = env.command(python);
    outer.args(["-c", LISTENER]).arg(env.binary());
    run(env, outer, "a listener", options, script)
}

fn run(
    env: &TestEnv,
    mut outer: Command,
    prelude: &str,
    options: &[&str],
    script: &str,
) -> Option<RunOutput> {
    let events = env.path("events.jsonl");
    let _ = std::fs::remove_file(&events);
    outer.args(["run", "--events"]).arg(&events).args(options);
    outer.args(["--", "/bin/bash", "-c", script]);
    let output = outer.output().unwrap();
    let ran = RunOutput::new(&output, &events);
    if ran.events.is_empty() && ran.code != Some(69) {
        eprintln!("skipped: cannot prepare `{prelude}` here: {ran:?}");
        return None;
    }
    Some(ran)
}

/// Installs a filter that allows everything and has a listener, and runs a program under it.
const LISTENER: &str = r"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
allow = struct.pack('HBBI', 6, 0, 0, 0x7fff0000)
code = ctypes.create_string_buffer(allow, len(allow))
class Program(ctypes.Structure):
    _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
program = Program(1, ctypes.addressof(code))
fd = libc.syscall(317 if os.uname().machine == 'x86_64' else 277, 1, 8, ctypes.byref(program))
assert fd >= 0, os.strerror(ctypes.get_errno())
os.set_inheritable(fd, True)
os.execv(sys.argv[1], sys.argv[1:])
";
