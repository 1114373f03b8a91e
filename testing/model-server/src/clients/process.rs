//! Runs a client to its end, or to its time limit.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How a client ended, and what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The exit status.
    pub status: ExitStatus,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
}

/// Runs `command` with an empty standard input. Past `limit` its process group is killed.
///
/// The output goes through files in `dir`: a pipe would stay open, and be waited for, as long as
/// any background process of the client holds on to it.
///
/// # Panics
/// If the command does not start, or does not end in time; the text then holds its output.
pub(super) fn run(command: &mut Command, dir: &Path, limit: Duration) -> Finished {
    let (stdout, stderr) = (dir.join("stdout"), dir.join("stderr"));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).expect("a file for the output"))
        .stderr(File::create(&stderr).expect("a file for the errors"))
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
    let status = wait(&mut child, limit);
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    match status {
        Some(status) => Finished { status, stdout, stderr },
        None => panic!("no end after {limit:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"),
    }
}

/// The exit status, or `None` after the limit, when the group has been killed.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return Some(status);
        }
        if Instant::now() >= end {
            // Not yet waited for, so the number is still the child's own.
            let group = Pid::from_child(child);
            kill_process_group(group, Signal::KILL).expect("the child's group can be killed");
            child.wait().expect("the child can be waited for");
            return None;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = shell("echo out; echo err >&2; cat; exit 3");
        let finished = run(&mut command, dir.path(), Duration::from_mins(1));
        assert_eq!(finished.status.code(), Some(3));
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    #[should_panic(expected = "--- stdout\nbefore\n")]
    fn past_the_limit_the_output_is_in_the_panic() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = shell("echo before; sleep 600 & wait");
        run(&mut command, dir.path(), Duration::from_secs(2));
    }
}
