//! A process that appends records until it is killed or cannot: the tests start it and kill it.
//!
//! `audit-writer DIRECTORY COUNT` stops after so many records. Its exit status is 3 once an append
//! fails, which the test of a full disk expects.

use std::process::ExitCode;

extern crate ringwall_audit as audit;

use audit::Log;
use model::{Record, Verdict};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(directory), Some(count)) = (words.next(), words.next()) else {
        return ExitCode::FAILURE;
    };
    let Some(count) = count.to_str().and_then(|count| count.parse::<u64>().ok()) else {
        return ExitCode::FAILURE;
    };
    let log = Log::at(directory);
    for number in 0..count {
        let record = Record {
            time: "2026-01-01T00:00:00.000Z".into(),
            agent: "claude".into(),
            session: format!("s{number}"),
            workspace: "/p".into(),
            tool: "Bash".into(),
            actions: Vec::new(),
            verdict: Verdict::Allow,
            rules: Vec::new(),
            config: String::new(),
            micros: number,
            notes: Vec::new(),
        };
        // Another writer may hold the lock for a while; only a failing write counts.
        match log.append(&record) {
            Err(error) if error.to_string().contains("cannot write") => return ExitCode::from(3),
            _ => {}
        }
    }
    ExitCode::SUCCESS
}
