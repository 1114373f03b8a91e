//! Calls that change something are made by the supervisor, on what was judged: changing their arguments
//! meanwhile has no effect, and every program gets what it would get without the sandbox.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fixtures::{RunOutput, TestEnv, users};

const TRIES: usize = 1000;

/// The ways of attribution and enforcement, as options of a run.
const WALLS: &[&[&str]] =
    &[&["--attribution", "tripwire"], &["--attribution", "notify"], &["--enforcement", "landlock"]];

const DENY: &str = "[violation]\naction = \"deny\"\n[confinement]\nminimum = \"landlock\"\n";

/// The program that races, in the project.
fn racer(env: &TestEnv) {
    env.write("race.c", include_str!("performed_calls/race.c"));
    env.configure(DENY);
    for dir in ["ok", "d", "sub"] {
        std::fs::create_dir_all(env.path("project").join(dir)).unwrap();
    }
    let done = Command::new("gcc")
        .args(["-O1", "-pthread", "-o"])
        .arg(env.path("project/race"))
        .arg(env.path("race.c"))
        .status()
        .unwrap();
    assert!(done.success());
    env.own();
}

/// Long enough to resolve that the name can be changed meanwhile.
fn slow() -> String {
    "d/../".repeat(300)
}

fn lost(ran: &RunOutput, tries: usize, name: &str) {
    assert!(ran.stdout.contains(&format!("won 0 of {tries}")), "{name}: {ran:?}");
    assert!(ran.events("tampering").is_empty(), "{name}: {ran:?}");
}

#[test]
fn an_argument_that_changes_while_it_is_judged_has_no_effect() {
    for who in users() {
        let env = TestEnv::new(who);
        racer(&env);
        let acts = ["open", "openat", "rename", "symlink", "link", "mkdir", "mknod"];
        for options in WALLS {
            for (number, act) in acts.into_iter().enumerate() {
                let name = [".envrc", "sub/.git/hooks/pre-commit"][number % 2];
                let tries = if options == &WALLS[0] { TRIES } else { TRIES / 10 };
                let race = format!("./race {act} {name} ok/config {tries} {}", slow());
                let ran = env.run(options, &race);
                lost(&ran, tries, &format!("{who:?} {options:?} {act}"));
                assert!(env.path("project").join(name).symlink_metadata().is_err(), "{act}");
            }
        }
    }
}

/// Replaces a file again and again, as `git config` does, until the test is over.
fn replaced_meanwhile(env: &TestEnv, name: &str, run: impl FnOnce() -> RunOutput) -> RunOutput {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let script = format!("cp {name} {name}.host && mv {name}.host {name}");
            while !over.load(Ordering::Relaxed) {
                assert!(env.bare(&script).status.success());
            }
        });
        let ran = run();
        over.store(true, Ordering::Relaxed);
        ran
    })
}

#[test]
fn a_protected_file_that_the_host_replaces_meanwhile_is_not_written() {
    for who in users() {
        let env = TestEnv::new(who);
        racer(&env);
        assert!(env.bare("git init -q . && touch ok/plain").status.success());
        let before = env.read("project/.git/config");
        for options in &WALLS[..2] {
            let race = format!("./race write .git/config ok/plain {TRIES} {}", slow());
            let ran = replaced_meanwhile(&env, ".git/config", || env.run(options, &race));
            lost(&ran, TRIES, &format!("{who:?} {options:?}"));
            assert_eq!(env.read("project/.git/config"), before, "{who:?} {options:?}");
        }
    }
}

#[test]
fn a_path_of_many_links_delays_nobody() {
    const LINKS: &str = "
import os, threading, time
text = 'd/../' * 800
for number in range(39):
    if not os.path.islink(str(number)):
        os.symlink(text + str(number + 1), str(number))
open('39', 'w').close()
def slow():
    while True:
        try:
            os.close(os.open('0', os.O_WRONLY))
        except OSError:
            pass
for _ in range(2):
    threading.Thread(target=slow, daemon=True).start()
worst = 0
for _ in range(50):
    since = time.monotonic()
    open('other', 'w').close()
    worst = max(worst, time.monotonic() - since)
print('worst', worst, flush=True)
os._exit(0)
";
    for who in users() {
        let env = TestEnv::new(who);
        racer(&env);
        env.write("project/slow.py", LINKS);
        for options in WALLS {
            let ran = env.run(options, "python3 slow.py");
            let worst = ran.stdout.trim().strip_prefix("worst ").map(str::parse::<f64>);
            assert!(worst.unwrap().unwrap() < 5.0, "{who:?} {options:?}: {ran:?}");
        }
        env.configure(&format!("{DENY}[limits]\nwall_seconds = 2\n"));
        let since = Instant::now();
        let script = "sed -i s/os._exit.*/time.sleep\\(600\\)/ slow.py; python3 slow.py";
        let ran = env.run(&[], script);
        assert_eq!(ran.code, Some(124), "{ran:?}");
        assert!(since.elapsed() < Duration::from_secs(60), "{ran:?}");
    }
}

/// What the program prints, without the sandbox or in it.
fn semantics(env: &TestEnv, options: Option<&[&str]>) -> String {
    let mut command = match options {
        None => env.command(Path::new("/usr/bin/python3")),
        Some(options) => {
            let mut command = env.command(env.binary());
            command.arg("run").args(options).args(["--", "/usr/bin/python3"]);
            command
        }
    };
    let output = command.arg("semantics.py").stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{options:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn programs_get_what_they_get_without_the_sandbox() {
    for who in users() {
        let env = TestEnv::new(who);
        env.configure(DENY);
        env.write("project/semantics.py", include_str!("performed_calls/semantics.py"));
        let outside = semantics(&env, None);
        assert!(outside.lines().count() > 1500, "{outside}");
        for options in &WALLS[..2] {
            let inside = semantics(&env, Some(options));
            for (outside, inside) in outside.lines().zip(inside.lines()) {
                // The descriptor is opened again, without the flag that found it.
                let plain = |line: &str| line.replace("'0o4000", "'0o");
                assert_eq!(plain(inside), plain(outside), "{who:?} {options:?}");
            }
            assert_eq!(inside.lines().count(), outside.lines().count(), "{who:?} {options:?}");
        }
    }
}

#[test]
fn a_run_of_root_writes_no_files_of_others() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let env = TestEnv::new(fixtures::User::Me);
    env.configure(DENY);
    for (dir, mode) in [("closed", 0o700), ("open", 0o777)] {
        let path = env.path("project").join(dir);
        std::fs::create_dir(&path).unwrap();
        for (file, mode) in [(path.join("file"), 0o600), (path.clone(), mode)] {
            if file != path {
                std::fs::write(&file, "theirs").unwrap();
            }
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            std::os::unix::fs::chown(&file, Some(12345), Some(12345)).unwrap();
        }
    }
    let script = "for dir in closed open; do echo x >> $dir/file; echo x > $dir/new; \
        truncate -s 0 $dir/file; chmod 666 $dir/file; touch -d 2001-01-01 $dir/file; \
        chown 0 $dir/file; setfattr -n user.x -v y $dir/file; done; chmod 777 closed; true";
    for options in WALLS {
        let ran = env.run(options, script);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for file in ["closed/file", "open/file"] {
            use std::os::unix::fs::MetadataExt;
            let found = env.path("project").join(file).metadata().unwrap();
            assert_eq!((found.uid(), found.mode() & 0o7777, found.len()), (12345, 0o600, 6));
        }
        assert!(!env.path("project/closed/new").exists(), "{options:?}");
        assert!(env.path("project/open/new").exists(), "{options:?}: {ran:?}");
        std::fs::remove_file(env.path("project/open/new")).unwrap();
    }
}

#[test]
fn a_limit_of_the_size_of_files_holds_for_truncate() {
    for who in users() {
        let env = TestEnv::new(who);
        env.configure("[limits]\nfile_size = \"1 MiB\"\n");
        let script = "import os, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n\
            open('f', 'w').close()\ntry: os.truncate('f', 1 << 30)\nexcept OSError as e: print(e.errno)\n";
        env.write("project/large.py", script);
        let ran = env.run(&[], "python3 large.py");
        assert_eq!(ran.stdout.trim(), libc_efbig(), "{ran:?}");
        assert_eq!(env.path("project/f").metadata().unwrap().len(), 0);
    }
}

fn libc_efbig() -> String {
    rustix::io::Errno::FBIG.raw_os_error().to_string()
}

/// Removing or renaming what is mounted on is denied to processes in the same mount namespace only; the
/// supervisor is in another one.
#[test]
fn a_place_with_a_mount_on_it_is_neither_removed_nor_replaced() {
    for who in users() {
        let env = TestEnv::new(who);
        env.configure(DENY);
        env.write("project/.envrc", "export A=1\n");
        env.write("project/sub/.envrc", "export B=1\n");
        assert!(env.bare("git init -q .").status.success());
        let script = "mv .git moved; mv sub moved; mv .envrc e; rm -f .envrc sub/.envrc; rm -rf .git; \
            mkdir other; mv -T other sub; mv -T other .git; touch f; mv -T f .envrc; ln -f f .envrc; \
            python3 -c 'import ctypes; l = ctypes.CDLL(None); \
            l.renameat2(-100, b\"f\", -100, b\".envrc\", 2); l.renameat2(-100, b\"other\", -100, b\".git\", 2)'; true";
        for options in &WALLS[..2] {
            let ran = env.run(options, script);
            assert_eq!(env.read("project/.envrc"), "export A=1\n", "{who:?} {options:?}: {ran:?}");
            assert_eq!(env.read("project/sub/.envrc"), "export B=1\n", "{who:?}: {ran:?}");
            assert!(env.path("project/.git/config").exists(), "{who:?} {options:?}: {ran:?}");
            assert!(ran.events("tampering").is_empty(), "{who:?} {options:?}: {ran:?}");
            let status = env.bare("rm -rf moved other f e");
            assert!(status.status.success());
        }
    }
}

/// The supervisor does not wait where the run makes a call that would.
#[test]
fn a_call_that_waits_holds_up_no_other() {
    let script = "mkfifo p; (echo late > p) & for n in 1 2 3; do echo $n > f; done; cat f; \
        sleep 0.2; cat p; wait";
    for who in users() {
        let env = TestEnv::new(who);
        for options in &WALLS[..2] {
            let ran = env.run(options, script);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "3\nlate\n"), "{ran:?}");
            assert!(env.bare("rm -f p f").status.success());
        }
        // Nobody ever reads it.
        let mut run = env.command(env.binary());
        run.args(["run", "--", "/bin/sh", "-c", "mkfifo q; echo started; echo never > q"]);
        let mut run = run.stdout(Stdio::piped()).spawn().unwrap();
        let mut started = [0; 8];
        run.stdout.as_mut().unwrap().read_exact(&mut started).unwrap();
        let id = run.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let since = Instant::now();
        while run.try_wait().unwrap().is_none() {
            assert!(since.elapsed() < Duration::from_secs(30), "{who:?}: SIGTERM does not end it");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
