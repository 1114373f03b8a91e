//! A process that appends records, for the tests that kill it or take its disk space.
//!
//! The process is this test program again, started to run only the test below. So no
//! binary has to be built for it that a package would install.

use std::process::{Child, Command, Stdio};

use audit::Log;

use crate::test_log::{TestLog, record};

/// Where the process appends, and how many records.
const DIRECTORY: &str = "AUDIT_WRITER_DIRECTORY";
const COUNT: &str = "AUDIT_WRITER_COUNT";

/// The exit status after an append that could not be written.
pub(crate) const FAILED: i32 = 3;

/// Starts a process that appends so many records. `setup` is shell text that runs before it.
pub(crate) fn start(ground: &TestLog, records: u64, setup: &str) -> Child {
    Command::new("sh")
        .args(["-c", &format!("{setup} exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "writer::append_as_a_process", "--nocapture"])
        .env(DIRECTORY, ground.directory())
        .env(COUNT, records.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Does nothing unless [`start`] has started it.
#[test]
fn append_as_a_process() {
    let (Some(directory), Ok(count)) = (std::env::var_os(DIRECTORY), std::env::var(COUNT)) else {
        return;
    };
    let log = Log::at(directory);
    for number in 0..count.parse().unwrap() {
        // Another writer may hold the lock for a while; only a failed write ends the process.
        if let Err(audit::AppendError::Write { .. }) = log.append(&record(number)) {
            std::process::exit(FAILED);
        }
    }
}
