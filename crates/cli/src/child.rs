//! Runs a program until it ends or a time limit is reached.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The programs that we start print far less than this.
const LARGEST_OUTPUT: u64 = 4 << 20;

/// How a program ended, and what it printed.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Runs `command` with `input`, which must fit into a pipe. Past `limit` its process group is
/// killed, and the error is of the kind `TimedOut`.
///
/// The output goes through files: a pipe would stay open, and be waited for, as long as any
/// background process holds on to it.
pub(crate) fn run(command: &mut Command, input: &[u8], limit: Duration) -> io::Result<Ended> {
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        .process_group(0)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program may stop reading early.
        let _ = stdin.write_all(input);
    }
    let status = wait(&mut child, limit)?;
    Ok(Ended { status, stdout: read_back(stdout)?, stderr: read_back(stderr)? })
}

fn wait(child: &mut Child, limit: Duration) -> io::Result<ExitStatus> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= end {
            // The child has not been waited for, so its process id cannot have been reused.
            kill_process_group(Pid::from_child(child), Signal::KILL)?;
            child.wait()?;
            let why = format!("no answer within {} seconds", limit.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn read_back(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(LARGEST_OUTPUT).read_to_end(&mut bytes)?;
    Ok(bytes)
}
