//! The supervisor is killed: nothing of the run outlives it.

use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fixtures::{TestEnv, User, eventually, users};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::traces::Traces;

/// Works, forks, and leaves a daemon that has nothing to do with its parents any more.
const SCRIPT: &str = "while :; do echo tick >> ticks; sleep 0.01; done & \
    (setsid sh -c 'while :; do sleep 0.05; done' > /dev/null 2>&1 < /dev/null &) & \
    sleep 1000 & (sleep 1000 &) ; wait";

/// Moments at which a run is killed, for each user.
const MOMENTS: u32 = 200;

#[test]
fn a_killed_supervisor_takes_everything_with_it() {
    for who in users() {
        die(who, &[], MOMENTS, |child| kill_process(pid(child), Signal::KILL));
    }
}

#[test]
fn without_namespaces_too() {
    for who in users() {
        die(who, &["--enforcement", "landlock"], MOMENTS / 2, |child| {
            kill_process(pid(child), Signal::KILL)
        });
    }
}

#[test]
fn a_killed_process_group_takes_everything_with_it() {
    for who in users() {
        for options in [&[][..], &["--enforcement", "landlock"]] {
            for signal in [Signal::KILL, Signal::TERM] {
                die(who, options, MOMENTS / 8, |child| kill_process_group(pid(child), signal));
            }
        }
    }
}

/// Starts runs and ends each after a while that reaches from nothing to well into the command.
fn die(
    who: User,
    options: &[&str],
    moments: u32,
    end: impl Fn(&Child) -> Result<(), rustix::io::Errno>,
) {
    let env = TestEnv::new(who);
    // With a limit, there is a control group to clear up too.
    let config = "[confinement]\nminimum = \"landlock\"\n[limits]\nprocesses = 1000\n";
    env.write("home/.config/ringwall/ringwall.toml", config);
    let longest = start_time(&env, options) * 2;
    let traces = Traces::before(&env);
    let mut supervisors = Vec::new();
    let mut ran = 0;
    for moment in 0..moments {
        let mut child = start(&env, options);
        supervisors.push(child.id());
        // Spread evenly, in no order, and the same in every test run.
        let part = f64::from(moment * 89 % moments) / f64::from(moments);
        std::thread::sleep(longest.mul_f64(part));
        end(&child).unwrap();
        let status = child.wait().unwrap();
        assert!(!status.success(), "{status:?}");
        let what = format!("{who:?} {options:?}, moment {moment} of {longest:?}");
        traces.no_process(&what);
        if env.project().join("ticks").exists() {
            ran += 1;
            std::fs::remove_file(env.project().join("ticks")).unwrap();
        }
    }
    traces.nothing(&format!("{who:?} {options:?}"), &supervisors, &[]);
    // On a busy machine a run takes longer to start; some must have come so far.
    let (some, all) = (ran > 0, ran < moments);
    assert!(some && all, "{ran} of {moments} commands had begun within {longest:?}");
}

fn start(env: &TestEnv, options: &[&str]) -> Child {
    let mut command = env.command(env.binary());
    command.arg("run").args(options).args(["--", "/bin/bash", "-c", SCRIPT]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap()
}

/// How long a run takes until its command does something.
fn start_time(env: &TestEnv, options: &[&str]) -> Duration {
    let ticks = env.project().join("ticks");
    let since = Instant::now();
    let mut child = start(env, options);
    eventually(|| ticks.exists().then_some(()));
    let time = since.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = std::fs::remove_file(ticks);
    time
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}
