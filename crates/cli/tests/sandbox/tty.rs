//! The terminal, and where there is none: signals, statuses, streams.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fixtures::{TestEnv, User, users};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

/// Longer than anything takes on the slowest machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal with a shell at it, and somebody who types.
pub(super) struct Terminal {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// What came and was not looked at yet.
    unread: String,
    pub(super) transcript: String,
    shell: Child,
}

impl Terminal {
    pub(super) fn new(env: &TestEnv) -> Self {
        Self::of_kind(env, "dumb")
    }

    pub(super) fn of_kind(env: &TestEnv, term: &str) -> Self {
        // Whoever else is started meanwhile must not keep the terminal alive.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let name = name.to_str().unwrap().to_owned();
        let end = || File::options().read(true).write(true).open(&name).unwrap();
        let mut shell = env.command("setsid");
        shell.args(["--ctty", "--wait", "/bin/bash", "--norc", "--noprofile", "-i"]);
        shell.env("TERM", term).env("PS1", "outer> ");
        shell.stdin(end()).stdout(end()).stderr(end());
        let shell = shell.spawn().unwrap();
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().unwrap();
        let (sender, screen) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the last program on the terminal is an error here.
            while let Ok(length) = output.read(&mut bytes) {
                if length == 0 || sender.send(bytes[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let (unread, transcript) = (String::new(), String::new());
        let mut terminal = Self { keyboard, screen, unread, transcript, shell };
        terminal.resize(31, 101);
        terminal.expect("outer> ");
        terminal
    }

    fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.keyboard, size).unwrap();
    }

    pub(super) fn send(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this was shown.
    pub(super) fn expect(&mut self, text: &str) {
        loop {
            if let Some(at) = self.unread.find(text) {
                self.unread.drain(..at + text.len());
                return;
            }
            match self.screen.recv_timeout(PATIENCE) {
                Ok(bytes) => {
                    let bytes = String::from_utf8_lossy(&bytes).into_owned();
                    self.unread.push_str(&bytes);
                    self.transcript.push_str(&bytes);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("`{text}` was never shown:\n{}", self.transcript);
                }
            }
        }
    }

    /// Interrupts until this was shown. A shell names the job that it brings to the front before it
    /// has done so, and takes an interrupt in between for its own.
    fn interrupt(&mut self, text: &str) {
        let since = Instant::now();
        while !self.unread.contains(text) && since.elapsed() < PATIENCE {
            self.send("\x03");
            if let Ok(bytes) = self.screen.recv_timeout(Duration::from_secs(1)) {
                let bytes = String::from_utf8_lossy(&bytes).into_owned();
                self.unread.push_str(&bytes);
                self.transcript.push_str(&bytes);
            }
        }
        self.expect(text);
    }

    /// Types a command and waits for what it shows. What is typed is shown too, so the text must
    /// not be part of it.
    pub(super) fn tell(&mut self, command: &str, shown: &str) {
        assert!(!command.contains(shown), "{command}");
        self.send(&format!("{command}\n"));
        self.expect(shown);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Landlock and seccomp alone.
const LANDLOCK: &[&str; 2] = &["--enforcement", "landlock"];

fn wall(env: &TestEnv) -> String {
    format!("{} run --", env.binary().display())
}

#[test]
fn streams_can_be_opened_by_their_names() {
    let tiers = [&["--attribution", "tripwire"], &["--attribution", "notify"], LANDLOCK];
    for (who, options) in users().into_iter().flat_map(|who| tiers.map(|tier| (who, tier))) {
        let env = TestEnv::new(who);
        let minimum = "[confinement]\nminimum = \"landlock\"\n";
        env.write("home/.config/ringwall/ringwall.toml", minimum);
        let run = format!("{} run {} --", env.binary().display(), options.join(" "));
        let inner = "'cat /dev/stdin; echo one > /dev/stdout; echo two > /dev/stderr'";
        // A file to read has rules about files made; the streams to write are no part of them.
        for input in ["< /dev/null", "< ../outside/secret.txt"] {
            let script = format!("{run} bash -c {inner} {input} > ../out.txt 2> ../err.txt");
            let done = env.bare(&script);
            let (out, err) = (env.read("out.txt"), env.read("err.txt"));
            assert!(done.status.success(), "{options:?} {script}: {out} {err}");
            assert!(out.ends_with("one\n"), "{options:?} {script}: {out} {err}");
            assert_eq!(err, "two\n", "{options:?} {script}");
        }
    }
}

#[test]
fn a_shell_inside_has_the_terminal() {
    for who in users() {
        let env = TestEnv::new(who);
        let mut terminal = Terminal::new(&env);
        terminal.send(&format!("{} /bin/bash --norc --noprofile -i\n", wall(&env)));
        terminal.tell("PS1='in''ner> '", "inner> ");
        terminal.tell("[[ -o monitor ]] && echo jobs-$((1+1))", "jobs-2");
        terminal.tell("stty size", "31 101");
        terminal.tell("echo tty-$((2+2)) > /dev/tty", "tty-4");
        terminal.tell("read -r line < /dev/tty; echo got-$line-$((1+1))\nhello", "got-hello-2");

        let wait = "while :; do sleep 0.1; done";
        let winch = format!("bash -c 'trap \"stty size; exit\" WINCH; echo see-$((1+1)); {wait}'");
        terminal.tell(&winch, "see-2");
        terminal.resize(41, 111);
        terminal.expect("41 111");

        let sleeper = "bash -c 'echo sleeps-$((1+1)); exec sleep 1000'";
        terminal.tell(sleeper, "sleeps-2");
        terminal.send("\x03");
        terminal.expect("inner> ");
        terminal.tell("echo status-$?", "status-130");

        terminal.tell(sleeper, "sleeps-2");
        terminal.send("\x1a");
        terminal.expect("Stopped");
        terminal.tell("jobs -s | wc -l; echo stopped-$((1+1))", "stopped-2");
        terminal.send("fg\n");
        terminal.expect("sleep 1000");
        terminal.interrupt("inner> ");
        terminal.tell("sleep 1000 & kill %1; wait; echo killed-$((1+1))", "killed-2");

        terminal.send("exit 7\n");
        terminal.expect("outer> ");
        terminal.tell("echo status-$?", "status-7");
        terminal.tell("[[ -o monitor ]] && echo jobs-$((3+3)); jobs", "jobs-6");
        let shown = &terminal.transcript;
        assert!(!shown.contains("no job control") && !shown.contains("process group"), "{shown}");
        assert!(!shown.contains("ringwall:"), "{shown}");
    }
}

#[test]
fn a_run_is_a_job_of_the_shell_around_it() {
    for who in users() {
        let env = TestEnv::new(who);
        let mut terminal = Terminal::new(&env);
        let echo = "bash -c 'echo ready-$((1+1)); while read -r l; do echo got-$l-$((1+1)); done'";
        terminal.tell(&format!("{} {echo}", wall(&env)), "ready-2");
        for word in ["one", "two"] {
            terminal.send("\x1a");
            terminal.expect("Stopped");
            terminal.tell("echo outside-$((1+1))", "outside-2");
            terminal.send("fg\n");
            terminal.expect("read -r l");
            terminal.tell(word, &format!("got-{word}-2"));
        }
        terminal.send("\x03");
        terminal.expect("outer> ");
        terminal.tell("echo status-$?", "status-130");

        // In the background it stops as soon as it reads, and goes on when it has the terminal.
        terminal.tell(&format!("{} {echo} &", wall(&env)), "ready-2");
        terminal.tell("while ! jobs -s | grep run; do sleep 0.1; done", "Stopped");
        terminal.send("fg\n");
        terminal.expect("read -r l");
        terminal.tell("three", "got-three-2");
        terminal.send("\x04");
        terminal.expect("outer> ");
        terminal.tell("echo status-$?", "status-0");
        let wordless = "bash -c 'sleep 0.1; echo background-$((1+1)) > done.txt'";
        terminal.tell(&format!("{} {wordless} &", wall(&env)), "outer> ");
        terminal.tell("wait; cat done.txt; echo $?-$((1+1))", "background-2");
        terminal.expect("0-2");
    }
}

#[test]
fn the_terminal_is_as_it_was_after_a_stop() {
    for who in users() {
        let env = TestEnv::new(who);
        let mut terminal = Terminal::new(&env);
        let secret = env.home().join(".ssh/id_ed25519").display().to_string();
        let script = format!("bash -c 'stty raw -echo; cat {secret}'");
        terminal.tell(&format!("{} {script}", wall(&env)), "stopped: `cat` tried to read");
        terminal.expect("outer> ");
        terminal.tell("echo status-$?", "status-77");
        let modes = "stty -a | tr ' ' '\\n' | grep -x -e icanon -e echo -e opost | tr '\\n' '+'";
        terminal.tell(modes, "opost+icanon+echo+");
    }
}

/// A command whose streams are ours.
fn start(env: &TestEnv, arguments: &[&str]) -> Child {
    let mut command = env.command(env.binary());
    command.args(["run", "--"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn status(env: &TestEnv, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = env.command(env.binary());
    let output = command.args(["run", "--"]).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn signals_to_the_supervisor_reach_the_command() {
    for who in users() {
        let env = TestEnv::new(who);
        let signals = ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"];
        let each = signals.into_iter().flat_map(|name| [(name, true), (name, false)]);
        // Bash itself never minds this one.
        for (signal, trapped) in each.filter(|one| *one != ("QUIT", false)) {
            let script = if trapped {
                let trap = format!("trap 'echo got-{signal}; exit 3' {signal}");
                format!("{trap}; echo ready; while :; do sleep 0.05; done")
            } else {
                "echo ready; exec sleep 1000".to_owned()
            };
            let mut child = start(&env, &["bash", "-c", &script]);
            let mut output = BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
            let pid = child.id().to_string();
            let sent = Command::new("kill").args([&format!("-{signal}"), "--", &pid]).status();
            assert!(sent.unwrap().success());
            let mut rest = String::new();
            output.read_to_string(&mut rest).unwrap();
            let code = child.wait().unwrap().code();
            if trapped {
                assert_eq!((code, rest.as_str()), (Some(3), &*format!("got-{signal}\n")));
            } else {
                let number =
                    Command::new("bash").args(["-c", &format!("kill -l {signal}")]).output();
                let number = String::from_utf8(number.unwrap().stdout).unwrap();
                assert_eq!(code, Some(128 + number.trim().parse::<i32>().unwrap()), "{signal}");
            }
        }
    }
}

#[test]
fn statuses_are_those_of_the_command() {
    for who in users() {
        let env = TestEnv::new(who);
        let few = [0, 1, 2, 64, 69, 77, 78, 124, 125, 126, 127, 128, 255];
        let codes: Vec<i32> = if who == User::Me { (0..=255).collect() } else { few.to_vec() };
        for code in codes {
            let (got, stderr) = status(&env, &["bash", "-c", &format!("exit {code}")]);
            assert_eq!((got, stderr.as_str()), (Some(code), ""));
        }
        for (signal, number) in [
            ("HUP", 1),
            ("INT", 2),
            ("ABRT", 6),
            ("KILL", 9),
            ("SEGV", 11),
            ("PIPE", 13),
            ("TERM", 15),
        ] {
            let ran = env.run(&[], &format!("kill -{signal} $$"));
            assert_eq!(ran.code, Some(128 + number), "{ran:?}");
            assert_eq!(ran.events("stopped")[0]["signal"], number, "{ran:?}");
        }
        env.write("project/plain", "no program\n");
        std::fs::create_dir(env.path("project/directory")).unwrap();
        for (program, code) in [
            ("./plain", 126),
            ("./directory", 126),
            ("./nothing", 127),
            ("no-such-program", 127),
            ("", 127),
        ] {
            let (got, stderr) = status(&env, &[program]);
            assert_eq!(got, Some(code), "{program}: {stderr}");
            assert!(stderr.contains("error:"), "{program}: {stderr}");
        }
    }
}

#[test]
fn streams_pass_untouched() {
    for who in users() {
        let env = TestEnv::new(who);
        let sent: Vec<u8> =
            (0..5_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for script in ["cat", "cat >&2"] {
            let mut child = start(&env, &["bash", "-c", script]);
            let mut input = child.stdin.take().unwrap();
            let bytes = sent.clone();
            let writer = std::thread::spawn(move || input.write_all(&bytes));
            let output = child.wait_with_output().unwrap();
            writer.join().unwrap().unwrap();
            assert!(output.status.success());
            let (got, other) = match script {
                "cat" => (output.stdout, output.stderr),
                _ => (output.stderr, output.stdout),
            };
            assert!(got == sent && other.is_empty(), "{script}");
        }

        // Nothing is held back until the end.
        let mut child = start(
            &env,
            &["bash", "-c", "echo one; read -r l; echo two-$l >&2; read -r l; echo $l"],
        );
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        assert_eq!(output.next().unwrap().unwrap(), "one");
        input.write_all(b"x\n").unwrap();
        assert_eq!(errors.next().unwrap().unwrap(), "two-x");
        input.write_all(b"three\n").unwrap();
        assert_eq!(output.next().unwrap().unwrap(), "three");
        assert!(child.wait().unwrap().success());

        // Whoever does not read to the end ends it.
        let cut = env.bare(&format!("{} yes | head -n 1; echo ${{PIPESTATUS[0]}}", wall(&env)));
        assert_eq!(String::from_utf8_lossy(&cut.stdout), "y\n141\n");
    }
}

#[test]
fn arguments_pass_untouched() {
    for who in users() {
        let env = TestEnv::new(who);
        // As much as one argument, and all together, may be.
        let long = "x".repeat(131_071);
        let many: Vec<&str> = std::iter::repeat_n(long.as_str(), 10).collect();
        let mut command = env.command(env.binary());
        command.args(["run", "--", "bash", "-c", "echo $# ${#1} \"$2\"", "name"]);
        let output = command.arg(&long).arg("a b\n*'\"$(id)\\").args(&many).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            text,
            "12 131071 a b\n*'\"$(id)\\\n",
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
