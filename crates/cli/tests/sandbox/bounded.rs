//! Work and memory of the supervisor have an end, whatever the run does, and nothing that ends a run
//! waits for its output.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fixtures::{TestEnv, User, eventually, users};
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;

/// By how much the supervisor may grow while a run does its worst.
const GROWTH: u64 = 16 << 10;

/// How long the end of a run may take after the command's, or after SIGTERM. Builds for tests are
/// slow, and tests run beside each other.
const END: Duration = Duration::from_secs(2);

fn env(who: User, config: &str) -> TestEnv {
    let env = TestEnv::new(who);
    env.write("home/.config/ringwall/ringwall.toml", config);
    env.own();
    env
}

const DENY: &str = "[violation]\naction = \"deny\"\n";

/// 10^5 attempts to create directories that are denied, each at a path of its own.
const REFUSALS: &str = "for (1..100_000) { mkdir qq(../outside/$_) and die } \
                        open F, q(>), q(done); close F; exit 3";

#[test]
fn many_denials_hold_up_no_end() {
    for (who, options) in users().into_iter().zip([&["--learn"][..], &[]]) {
        let env = env(who, DENY);
        let ran = env.run(options, &format!("exec perl -e '{REFUSALS}'"));
        assert_eq!(ran.code, Some(3), "{options:?} {}", ran.stderr);
        // The last event is the last thing that a run writes to the file.
        let ended = env.path("events.jsonl").metadata().unwrap().modified().unwrap();
        let done = env.project().join("done").metadata().unwrap().modified().unwrap();
        let took = ended.duration_since(done).unwrap();
        assert!(took < END, "{options:?}: {took:?}");
        assert_eq!(ran.events("stopped")[0]["violations"]["deny"], 100_000);
    }
}

/// Not only in the end: SIGTERM meanwhile ends the run as well.
#[test]
fn many_denials_hold_up_no_signal() {
    for who in users() {
        let env = env(who, DENY);
        let script = "trap '' TERM; perl -e 'for (1..20_000) { mkdir qq(../outside/$_) }'; \
                      > done; while :; do perl -e 'for (1..20_000) { mkdir qq(../outside/x$_) }'; done";
        let going = Going::start(&env, &["--learn"], script);
        eventually(|| env.project().join("done").exists().then_some(()));
        let (took, code) = going.terminate();
        assert!(took < END, "{took:?}");
        assert_eq!(code, Some(143));
    }
}

/// A run that goes on until something ends it.
struct Going {
    child: Child,
    events: std::path::PathBuf,
}

impl Going {
    fn start(env: &TestEnv, options: &[&str], script: &str) -> Self {
        let events = env.path("events.jsonl");
        let mut command = env.command(env.binary());
        command.args(["run", "--events"]).arg(&events).args(options);
        command.args(["--", "/bin/bash", "-c", script]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let going = Self { child: command.spawn().unwrap(), events };
        eventually(|| {
            std::fs::read_to_string(&going.events).ok()?.contains("started").then_some(())
        });
        going
    }

    /// The most memory that the supervisor had so far, in KiB.
    fn memory(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Sends SIGTERM, and returns how long the end took and the status.
    fn terminate(mut self) -> (Duration, Option<i32>) {
        let since = Instant::now();
        signal(&self.child, Signal::TERM);
        let status = self.child.wait().unwrap();
        (since.elapsed(), status.code())
    }

    fn stopped(events: &Path) -> bool {
        std::fs::read_to_string(events).unwrap().contains("\"event\":\"stopped\"")
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn the_supervisor_grows_no_further_whatever_is_tried() {
    let name = "my $p = q(d) x 200;";
    let long = "my $p = join q(/), map { q(d) x 200 } 1..18;";
    let floods = [
        // Repositories below directories that do not exist.
        format!("{name} for (1..25_000) {{ open F, q(>), qq($p/$p/$p/$_.git/config) }}"),
        // Denials with long paths.
        format!("{long} for (1..8_000) {{ mkdir qq(../outside/$_/$p) }}"),
        format!("{name} for (1..15_000) {{ mkdir qq(../outside/$_$p) }}"),
        format!("{long} for (1..5_000) {{ -e qq(/usr/local/bin/$_$p); -e qq(../$_/$p) }}"),
    ];
    for who in users() {
        for (flood, options) in floods.iter().zip([None, Some("--learn")].into_iter().cycle()) {
            let env = env(who, DENY);
            let script = format!(
                "until [ -e go ]; do sleep 0.05; done; perl -e '{flood}'; > done; exec sleep 1000"
            );
            let options: Vec<_> = options.into_iter().collect();
            let going = Going::start(&env, &options, &script);
            let before = going.memory();
            env.write("project/go", "");
            eventually(|| env.project().join("done").exists().then_some(()));
            let grown = going.memory() - before;
            assert!(grown < GROWTH, "{options:?} {flood}: {grown} KiB");
            going.terminate();
        }
    }
}

/// A reader that never reads costs no memory, and still gets to know how the run ended if it reads
/// at last.
#[test]
fn the_last_events_have_room() {
    for who in users() {
        let env = env(who, DENY);
        let (mut reader, writer) = std::io::pipe().unwrap();
        let script = "perl -e '$p = q(x) x 200; for (1..15_000) { mkdir qq(../outside/$_$p) }'; \
                      > done; until [ -e go ]; do sleep 0.05; done";
        let events = format!("fd:{}", 0);
        let mut command = env.command(env.binary());
        command.args(["run", "--events", &events, "--", "/bin/bash", "-c", script]);
        command.stdin(OwnedFd::from(writer)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        drop(command);
        let mut going = Going { child, events: env.path("none") };
        eventually(|| env.project().join("done").exists().then_some(()));
        let grown = going.memory();
        assert!(grown < (48 << 10), "{grown} KiB");
        // The reader reads at last.
        env.write("project/go", "");
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        going.child.wait().unwrap();
        let last = text.lines().last().unwrap_or_default();
        assert!(last.contains("\"event\":\"stopped\""), "{last}");
    }
}

#[test]
fn a_command_that_ignores_sigterm_is_ended() {
    for who in users() {
        for options in [&[][..], &["--learn"]] {
            let env = env(who, DENY);
            let going = Going::start(
                &env,
                options,
                "trap '' TERM; echo > ready; while :; do sleep 9; done",
            );
            eventually(|| env.project().join("ready").exists().then_some(()));
            let events = going.events.clone();
            let (took, code) = going.terminate();
            assert!(took < END, "{took:?}");
            assert_eq!(code, Some(143));
            assert!(Going::stopped(&events));
        }
    }
}

#[test]
fn a_command_may_end_itself_at_sigterm() {
    for who in users() {
        let env = env(who, "");
        let script = "trap 'echo > saved; exit 5' TERM; echo > ready; while :; do sleep 0.05; done";
        let going = Going::start(&env, &[], script);
        eventually(|| env.project().join("ready").exists().then_some(()));
        assert_eq!(going.terminate().1, Some(5));
        assert!(env.project().join("saved").exists());
    }
}

/// A terminal without a shell at it: whoever is started there leads its session.
struct Line {
    master: File,
    child: Child,
}

impl Line {
    fn start(env: &TestEnv, options: &[&str], script: &str) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let end = || File::options().read(true).write(true).open(&name).unwrap();
        let mut command: Command = env.command("setsid");
        command.args(["--ctty"]).arg(env.binary()).args(["run", "--events"]);
        command.arg(env.path("events.jsonl")).args(options);
        command.args(["--", "/bin/bash", "-c", script]);
        command.stdin(end()).stdout(end()).stderr(end());
        Self { child: command.spawn().unwrap(), master: File::from(master) }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Stops all output of the terminal, as ^S does.
const STOP_OUTPUT: &str =
    "perl -e 'use POSIX; POSIX::tcflow(1, POSIX::TCOOFF) or die; open F, q(>), q(held)'";

#[test]
fn a_terminal_that_takes_no_output_holds_no_run() {
    for who in users() {
        for end in ["mkdir ../outside/x", "exec sleep 1000"] {
            let env = env(who, "[limits]\nwall_seconds = 3\n");
            let mut line = Line::start(&env, &[], &format!("{STOP_OUTPUT}; {end}"));
            let status = line.child.wait().unwrap();
            assert!([Some(77), Some(124)].contains(&status.code()), "{end}: {status:?}");
            assert!(Going::stopped(&env.path("events.jsonl")), "{end}");
        }
        // A process outside keeps it stopped.
        let env = env(who, DENY);
        let script =
            "trap '' TERM; > ready; while :; do mkdir ../outside/x; sleep 0.1; done 2> err";
        let mut line = Line::start(&env, &[], script);
        eventually(|| env.project().join("ready").exists().then_some(()));
        let slave = line.master.try_clone().unwrap();
        rustix::termios::tcflow(&slave, rustix::termios::Action::OOff).unwrap();
        let since = Instant::now();
        signal(&line.child, Signal::TERM);
        let status = line.child.wait().unwrap();
        assert!(since.elapsed() < END, "{:?}", since.elapsed());
        assert_eq!(status.code(), Some(143));
        assert!(Going::stopped(&env.path("events.jsonl")));
    }
}

#[test]
fn a_command_that_stops_itself_gets_no_more_time() {
    for who in users() {
        for stop in ["STOP", "TSTP", "TTIN"] {
            let env = env(who, "[limits]\nwall_seconds = 3\n");
            let script = format!("while :; do kill -{stop} $$; done");
            let mut line = Line::start(&env, &[], &script);
            let since = Instant::now();
            let status = line.child.wait().unwrap();
            assert_eq!(status.code(), Some(124), "{stop}");
            assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
            assert!(env.read("events.jsonl").contains("wall_seconds"), "{stop}");
        }
    }
}

/// What a run leaves is searched at its end. Many directories at the end of a path as long as there can be
/// one are kept by their names.
#[test]
fn the_search_at_the_end_grows_no_further_whatever_is_left() {
    if !fixtures::has_python() {
        eprintln!("skipped: no python3 to try this with");
        return;
    }
    let leave = "
import os
def chain(name, inner):
    os.mkdir(name)
    while len(os.getcwd()) + len(name) + 251 < 3700:
        name += '/' + 'd' * 250
        os.mkdir(name)
    os.rename(inner, name + '/i')
os.mkdir('w0')
for number in range(3000):
    os.mkdir(f'w0/x{number}')
for number in range(1, 9):
    chain(f'w{number}', f'w{number - 1}')
";
    // The most that any of the processes used.
    let measure = "
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
";
    for who in users() {
        let peak = |script: &str| {
            let env = env(who, DENY);
            env.write("project/leave.py", script);
            let mut command = env.command("/usr/bin/python3");
            command.args(["-c", measure]).arg(env.binary());
            command.args(["run", "--", "/usr/bin/python3", "leave.py"]);
            let output = command.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            text.parse::<u64>().unwrap_or_else(|_| panic!("{output:?}"))
        };
        let (before, with) = (peak("pass"), peak(leave));
        assert!(with < before + GROWTH, "{before} {with} KiB");
    }
}
