//! What the kernel counts for a user in all namespaces together: a run leaves a part of it to the host.

use std::process::Command;

use fixtures::{TestEnv, eventually, has_python, users};

/// Takes as much as there is, says how much it was, and keeps it until a file appears.
const TAKE: &str = "
import ctypes, os, time
libc = ctypes.CDLL(None)
taken = 0
while taken < 100000 and libc.inotify_init1(0) >= 0:
    taken += 1
open('taken', 'w').write(str(taken))
while not os.path.exists('over'):
    time.sleep(0.01)
";

#[test]
fn a_run_leaves_inotify_instances_to_the_host() {
    if !has_python() {
        eprintln!("skipped: no python3 to try this with");
        return;
    }
    for who in users() {
        let env = TestEnv::new(who);
        env.write("project/take.py", TAKE);
        std::thread::scope(|scope| {
            let run = scope.spawn(|| env.run(&[], "ulimit -n 4096; /usr/bin/python3 take.py"));
            let text = || std::fs::read_to_string(env.path("project/taken")).ok();
            let taken = eventually(|| text()?.parse::<usize>().ok());
            // One more, for a program of the same user outside.
            let one = "import ctypes; raise SystemExit(ctypes.CDLL(None).inotify_init1(0) < 0)";
            let mut host: Command = env.command("/usr/bin/python3");
            let host = host.args(["-c", one]).status().unwrap();
            std::fs::write(env.path("project/over"), "").unwrap();
            let ran = run.join().unwrap();
            assert!(host.success() && taken > 0, "{taken}: {ran:?}");
            assert_eq!(ran.code, Some(0), "{ran:?}");
        });
    }
}

/// `core_pattern` may name a program, which the kernel starts on the host for every crash, unless the
/// limit is 1. A limit of 0 does not prevent that.
#[test]
fn no_crash_in_a_run_starts_a_program_of_the_host() {
    for who in users() {
        let env = TestEnv::new(who);
        let limit = "awk '/core file/ { print $5, $6 }' /proc/self/limits";
        let script = format!("{limit}; ulimit -c 0 && {limit}; (kill -SEGV $BASHPID); ls core*");
        for mechanism in ["namespaces", "landlock"] {
            env.configure("[confinement]\nminimum = \"landlock\"\n");
            let ran = env.run(&["--enforcement", mechanism], &script);
            assert_eq!(ran.stdout, "1 1\n1 1\n", "{mechanism}: {ran:?}");
        }
    }
}

#[test]
fn a_run_leaves_pending_signals_to_the_host() {
    for who in users() {
        let env = TestEnv::new(who);
        let limit = |text: &str| text.trim().parse::<u64>().unwrap();
        let host = env.bare("ulimit -Hi");
        let host = String::from_utf8(host.stdout).unwrap();
        if host.trim() == "unlimited" {
            continue;
        }
        let ran = env.run(&[], "ulimit -Hi");
        assert_eq!(limit(&ran.stdout), limit(&host) / 2, "{ran:?}");
    }
}
