//! Every call of the set-up fails once, at each place where it is made: there is no run, or one
//! behind a wall that holds.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use fixtures::{RunOutput, TestEnv, User, users};

use crate::traces::Traces;

/// A call of the set-up, and the errors it gets.
struct Fault {
    call: &'static str,
    errors: &'static [&'static str],
}

const fn fault(call: &'static str, errors: &'static [&'static str]) -> Fault {
    Fault { call, errors }
}

/// Calls that only Ringwall makes: the command itself is never hit.
const OURS: &[Fault] = &[
    fault("clone3", &["EPERM", "ENOSPC", "ENOSYS"]),
    fault("mount", &["EPERM"]),
    fault("open_tree", &["EPERM", "ENOMEM"]),
    fault("move_mount", &["EPERM", "ENOSPC"]),
    fault("mount_setattr", &["EPERM"]),
    fault("fsopen", &["EPERM", "ENODEV"]),
    fault("fsconfig", &["EPERM", "EINVAL"]),
    fault("fsmount", &["EPERM", "ENOSPC"]),
    fault("openat2", &["EPERM", "ENOSYS"]),
    fault("mkdirat", &["EACCES", "ENOSPC"]),
    fault("symlinkat", &["ENOSPC"]),
    fault("fchmodat", &["EPERM"]),
    fault("pivot_root", &["EPERM", "EINVAL"]),
    fault("unshare", &["EPERM", "ENOSPC"]),
    fault("setns", &["EPERM"]),
    fault("umount2", &["EPERM", "EBUSY"]),
    fault("fchdir", &["EPERM"]),
    fault("capset", &["EPERM"]),
    fault("landlock_create_ruleset", &["EPERM", "ENOSYS", "EOPNOTSUPP"]),
    fault("landlock_add_rule", &["EPERM", "EINVAL"]),
    fault("landlock_restrict_self", &["EPERM", "E2BIG"]),
    fault("seccomp", &["EPERM", "ENOMEM", "EINVAL"]),
    fault("close_range", &["EPERM", "ENOSYS"]),
    fault("socketpair", &["ENFILE"]),
    fault("signalfd4", &["ENOMEM"]),
    fault("sendmsg", &["EPERM", "EPIPE"]),
    fault("pidfd_open", &["EPERM", "ENOSYS"]),
];

/// Calls that lay the ground and protect what is in it: they fail at every single place. Nothing is
/// watched then, so that only what was laid can hold.
const LAYING: &[Fault] = &[
    fault("open_tree", &["EPERM"]),
    fault("move_mount", &["EPERM"]),
    fault("mount_setattr", &["EPERM"]),
    fault("openat2", &["EACCES"]),
];

/// Calls of a set-up without namespaces.
const LESSER: &[Fault] = &[
    fault("clone3", &["EPERM"]),
    fault("clone", &["EAGAIN"]),
    fault("mkdirat", &["EACCES", "ENOSPC"]),
    fault("capset", &["EPERM"]),
    fault("landlock_create_ruleset", &["EPERM", "ENOSYS", "EOPNOTSUPP"]),
    fault("landlock_add_rule", &["EPERM"]),
    fault("landlock_restrict_self", &["EPERM", "E2BIG"]),
    fault("seccomp", &["EPERM", "ENOMEM", "EINVAL", "EBUSY"]),
    fault("close_range", &["EPERM"]),
    fault("socketpair", &["ENFILE"]),
    fault("signalfd4", &["ENOMEM"]),
    fault("sendmsg", &["EPERM", "EPIPE"]),
    fault("recvmsg", &["ENOMEM"]),
    fault("pidfd_open", &["EPERM"]),
    fault("prctl", &["EPERM"]),
    fault("setpgid", &["EPERM"]),
    fault("prlimit64", &["EPERM"]),
];

/// Calls that others make too. What they break in the command says nothing about the wall.
const EVERYBODYS: &[Fault] = &[
    fault("prctl", &["EPERM"]),
    fault("clone", &["EAGAIN", "ENOMEM"]),
    fault("chdir", &["EACCES"]),
    fault("prlimit64", &["EPERM"]),
    fault("setpgid", &["EPERM"]),
    fault("recvmsg", &["ENOMEM"]),
    fault("setsockopt", &["EPERM"]),
    fault("socket", &["EACCES"]),
    fault("bind", &["EADDRINUSE"]),
    fault("listen", &["EADDRINUSE"]),
    fault("ioctl", &["EPERM"]),
    fault("write", &["EPERM", "ENOSPC"]),
    fault("ppoll", &["ENOMEM"]),
    fault("rt_sigprocmask", &["EINVAL"]),
    fault("getdents64", &["EACCES"]),
    fault("fcntl", &["EMFILE"]),
    // A kernel that says that something is not there is believed.
    fault("statx", &["EACCES", "EIO"]),
    fault("readlink", &["EACCES"]),
];

/// Files whose opening fails.
const OPENED: &[(&str, &str)] = &[
    ("/dev/fuse", "EACCES"),
    ("/proc/self/setgroups", "EPERM"),
    ("/proc/self/uid_map", "EPERM"),
    ("/proc/self/gid_map", "EPERM"),
    ("/proc", "EACCES"),
];

/// Protected files of the workspace.
const KEPT: &[&str] = &[
    "project/.envrc",
    "project/sub/.envrc",
    "project/.git/config",
    "project/.git/hooks/pre-commit",
];

/// Tries to get out in every way that a layer of the wall prevents.
const ACTS: &str = r#"
tell() { echo "BREACH: $1"; }
cat "$OUTSIDE/secret.txt" 2> /dev/null && tell "read outside"
cat "$HOME/.ssh/id_ed25519" 2> /dev/null && tell "read a key"
echo x 2> /dev/null >> "$OUTSIDE/secret.txt" && tell "write outside"
echo x 2> /dev/null > "$OUTSIDE/new.txt" && tell "create outside"
echo x 2> /dev/null > /etc/ringwall-fault && tell "create in /etc"
echo x 2> /dev/null > .envrc && tell "write a protected file"
mv .envrc moved 2> /dev/null && tell "move a protected file"
mv sub moved 2> /dev/null && tell "move the directory around one"
echo x 2> /dev/null > .git/config && tell "write the repository's configuration"
echo x 2> /dev/null > .git/hooks/pre-commit && tell "write a hook"
mv .git/hooks moved 2> /dev/null && tell "move the hooks"
(exec 3<> "/dev/tcp/127.0.0.1/$PORT") 2> /dev/null && tell "connect to the host"
cat <&9 2> /dev/null && tell "use a descriptor"
test -n "$LEAK" && tell "see a variable"
kill -0 "$SUPERVISOR" 2> /dev/null && tell "signal the supervisor"
test "$LANDLOCK" -ge 6 && kill -0 1 2> /dev/null && tell "(no-landlock) signal the first process"
unshare --user true 2> /dev/null && tell "make a user namespace"
mount -t tmpfs none /tmp 2> /dev/null && tell "mount"
test "$(ulimit -c)" = 0 || tell "write core files"
test "$(ulimit -f)" = 4096 || tell "write large files: $(ulimit -f)"
grep -q "^CapEff:.0000000000000000$" /proc/self/status || tell "hold capabilities"
grep -q "^NoNewPrivs:.1$" /proc/self/status || tell "gain privileges"
grep -q "^Seccomp:.2$" /proc/self/status || tell "make any call"
test "$TIER" = landlock || test "$(ls -d /proc/[0-9]* | wc -l)" -lt 20 || tell "see other processes"
(setsid sleep 1000 > /dev/null 2>&1 &)
exit 42
"#;

#[test]
fn a_call_that_fails_leaves_no_hole() {
    for who in users() {
        let Some(fault_env) = FaultEnv::new(who, &[], Whose::Ours) else { return };
        OURS.iter().for_each(|fault| fault_env.fail(fault, &sample));
    }
}

#[test]
fn ground_that_cannot_be_laid_leaves_no_hole() {
    for who in users() {
        let Some(fault_env) = FaultEnv::new(who, &["--attribution", "inferred"], Whose::Ours)
        else {
            return;
        };
        LAYING.iter().for_each(|fault| fault_env.fail(fault, &|times| (1..=times).collect()));
    }
}

#[test]
fn without_namespaces_a_call_that_fails_leaves_no_hole() {
    for who in users() {
        let lesser = &["--enforcement", "landlock"];
        let Some(fault_env) = FaultEnv::new(who, lesser, Whose::Everybodys) else { return };
        LESSER.iter().for_each(|fault| fault_env.fail(fault, &sample));
    }
}

#[test]
fn a_call_that_fails_for_everybody_leaves_no_hole() {
    for who in users() {
        let Some(fault_env) = FaultEnv::new(who, &[], Whose::Everybodys) else { return };
        EVERYBODYS.iter().for_each(|fault| fault_env.fail(fault, &sample));
    }
}

#[test]
fn a_file_that_cannot_be_opened_leaves_no_hole() {
    for who in users() {
        let Some(fault_env) = FaultEnv::new(who, &[], Whose::Everybodys) else { return };
        for (path, error) in OPENED {
            let inject = format!("inject=openat,open:error={error}");
            let strace = ["-P", path, "-e", "trace=openat,open", "-e", &inject];
            fault_env.judge(&format!("opening {path}: {error}"), &strace);
        }
    }
}

/// Two threads build the wall. When one fails, the other finds itself alone: that is no reason of
/// its own, and must not be heard before the true one.
#[test]
fn only_the_thread_that_failed_says_why() {
    for who in users() {
        let Some(fault_env) = FaultEnv::new(who, &[], Whose::Ours) else { return };
        let log = fault_env.env.write("calls.txt", "");
        // The second thing that the first thread says is its failure; it is held up on its way.
        let faults = ["inject=pivot_root:error=EIO", "inject=sendmsg:delay_enter=1000000:when=2"];
        let [root, delay] = faults;
        let log_to = log.to_str().unwrap();
        let strace = ["-e", "trace=sendmsg,pivot_root", "-e", root, "-e", delay, "-o", log_to];
        let ran = fault_env.run("a late word", &strace);
        let said = fs::read_to_string(&log).unwrap();
        assert_eq!(ran.code, Some(69), "{ran:?}");
        assert!(ran.stderr.contains("mounting the root"), "{ran:?}");
        if !said.contains("DELAYED") {
            eprintln!("skipped: there is no tripwire, and so nothing is said before the failure");
            return;
        }
        assert_eq!(said.matches("Failed").count(), 1, "{said}");
    }
}

/// Who makes a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Ours,
    Everybodys,
}

struct FaultEnv {
    env: TestEnv,
    listener: TcpListener,
    options: &'static [&'static str],
    whose: Whose,
    tally: RefCell<BTreeMap<(String, Option<i32>), usize>>,
}

impl FaultEnv {
    fn new(who: User, options: &'static [&'static str], whose: Whose) -> Option<Self> {
        let known = Command::new("strace").arg("--version").output();
        if !known.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: there is no strace to make calls fail");
            return None;
        }
        let env = TestEnv::new(who);
        let minimum = if options.contains(&"landlock") { "landlock" } else { "namespaces" };
        let config = format!(
            "[violation]\naction = \"deny\"\n[limits]\nfile_size = \"4MiB\"\n\
             [confinement]\nminimum = \"{minimum}\"\n[environment]\n\
             pass = [\"OUTSIDE\", \"PORT\", \"SUPERVISOR\", \"LANDLOCK\", \"TIER\"]\n"
        );
        env.write("home/.config/ringwall/ringwall.toml", &config);
        KEPT.iter().for_each(|name| drop(env.write(name, "[core]\n")));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tally = RefCell::default();
        let fault_env = Self { env, listener, options, whose, tally };
        let ran = fault_env.run("nothing", &["-e", "trace=none"]);
        assert!(!ran.stdout.contains("BREACH"), "{ran:?}");
        if ran.code != Some(42) {
            eprintln!("skipped: nothing can be traced here: {ran:?}");
            return None;
        }
        Some(fault_env)
    }

    /// Lets a call fail at places chosen of those where it is made.
    fn fail(&self, fault: &Fault, choose: &dyn Fn(usize) -> Vec<usize>) {
        let call = fault.call;
        let times = self.count(call);
        if times == 0 {
            eprintln!("note: nobody calls {call}");
        }
        for error in fault.errors {
            for n in choose(times) {
                let inject = format!("inject={call}:error={error}:when={n}");
                let strace = ["-e", &format!("trace={call}"), "-e", &inject];
                self.judge(&format!("{call} {n} of {times}: {error}"), &strace);
            }
        }
    }

    /// How often one process calls something until it runs the command.
    fn count(&self, call: &str) -> usize {
        let log = self.env.write("calls.txt", "");
        let trace = format!("trace={call},execve");
        self.run(call, &["-e", &trace, "-o", log.to_str().unwrap()]);
        let mut counts = BTreeMap::new();
        for line in fs::read_to_string(&log).unwrap().lines() {
            let Some((pid, text)) = line.split_once(' ') else { continue };
            let (count, over) = counts.entry(pid.to_owned()).or_insert((0, false));
            *over |= text.trim_start().starts_with("execve(\"/bin/bash");
            let counts = !*over && text.trim_start().starts_with(&format!("{call}("));
            *count += usize::from(counts);
        }
        fs::remove_file(log).unwrap();
        counts.values().map(|(count, _)| *count).max().unwrap_or(0)
    }

    fn judge(&self, what: &str, strace: &[&str]) {
        let traces = Traces::before(&self.env);
        let ran = self.run(what, strace);
        // A kernel without Landlock is accepted, and said.
        let said = ran.events("started").iter().any(|event| event["wall"]["landlock"] == 0);
        let out =
            if said { ran.stdout.replace("BREACH: (no-landlock)", "") } else { ran.stdout.clone() };
        let RunOutput { code, stderr, .. } = &ran;
        assert!(!out.contains("BREACH") && !out.contains("SECRET"), "{what}: {out} {stderr}");
        assert_eq!(self.env.read("outside/secret.txt"), "SECRET-OUTSIDE\n", "{what}");
        for name in KEPT {
            let text = fs::read_to_string(self.env.path(name)).unwrap_or_default();
            assert_eq!(text, "[core]\n", "{what}: {name}: {stderr}");
        }
        // What cannot be moved is copied by `mv`.
        let _ = fs::remove_dir_all(self.env.project().join("moved"));
        // A run is named after its time and its supervisor.
        let run = ran.events.first().and_then(|event| event["run"].as_str());
        let number = run.and_then(|run| run.rsplit('-').next());
        let number = number.and_then(|number| u32::from_str_radix(number, 16).ok());
        traces.nothing(what, number.as_slice(), &[]);
        let began = !ran.events("started").is_empty();
        // The program may be missing with the ground it lies in, and the last word of a run may
        // be lost: then it was killed, as far as anybody knows.
        let expected: &[i32] = if began { &[42, 126, 127, 137] } else { &[69] };
        match self.whose {
            Whose::Ours => {
                let right = code.is_some_and(|code| expected.contains(&code));
                assert!(
                    right && (began || stderr.contains("error: ")),
                    "{what}: {code:?} {stderr}"
                );
            }
            Whose::Everybodys => assert!(began || *code != Some(0), "{what}: {stderr}"),
        }
        let call = what.split(' ').next().unwrap().to_owned();
        *self.tally.borrow_mut().entry((call, *code)).or_insert(0) += 1;
    }

    /// A run whose calls are traced.
    fn run(&self, what: &str, strace: &[&str]) -> RunOutput {
        let events = self.env.path("events.jsonl");
        let _ = fs::remove_file(&events);
        let script = "exec 9< \"$0\"; export SUPERVISOR=$$; exec strace \"$@\"";
        let mut command = self.env.command("sh");
        command.args(["-c", script]).arg(self.env.path("outside/secret.txt"));
        command.args(["-f", "-qq", "--seccomp-bpf"]);
        if !strace.contains(&"-o") {
            command.args(["-o", "/dev/null"]);
        }
        command.args(strace).arg(self.env.binary()).args(["run", "--events"]).arg(&events);
        command.args(self.options).args(["--", "/bin/bash", "-c", ACTS]);
        let port = self.listener.local_addr().unwrap().port().to_string();
        command.env("PORT", port).env("OUTSIDE", self.env.path("outside")).env("LEAK", "leak");
        command.env("TIER", self.options.last().unwrap_or(&""));
        command.env("LANDLOCK", sandbox::landlock_version().to_string());
        RunOutput::new(&patiently(what, command), &events)
    }
}

impl Drop for FaultEnv {
    /// Says what ended how, for whoever wants to know.
    fn drop(&mut self) {
        for ((call, code), times) in self.tally.borrow().iter() {
            eprintln!("{:?} {call}: exit {code:?}, {times} times", self.options);
        }
    }
}

/// Runs a command that might hang.
fn patiently(what: &str, mut command: Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        let since = Instant::now();
        while waiting.recv_timeout(Duration::from_secs(1)).is_err() {
            if since.elapsed() > Duration::from_secs(150) {
                let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
                return true;
            }
        }
        false
    });
    let output = child.wait_with_output().unwrap();
    let _ = done.send(());
    assert!(!watchdog.join().unwrap(), "{what}: it hung: {output:?}");
    output
}

/// All of a few, and of many the first, the last and some between.
fn sample(times: usize) -> Vec<usize> {
    let every = (times / 12).max(1);
    let chosen = |n: &usize| *n <= 3 || *n + 3 > times || n % every == 0;
    (1..=times).filter(chosen).collect()
}
