//! Starts five runs at once through the library, prints their events, and stops one of them.
//!
//! `cargo run -p ringwall-run --example five_runs`

#![allow(clippy::print_stdout, reason = "an example prints what it sees")]

use std::error::Error;
use std::thread;

use ringwall_run::{Event, Request, spawn};

/// One command per run. The last one does not end by itself.
const COMMANDS: [&str; 5] = [
    "echo hello from the sandbox",
    "cat ~/.gitconfig; ls /; true",
    "cat /etc/shadow; echo not reached",
    "exit 3",
    "sleep 600",
];

fn main() -> Result<(), Box<dyn Error>> {
    let workspace = tempfile::tempdir()?;
    let mut readers = Vec::new();
    let mut last = None;
    for (number, command) in COMMANDS.into_iter().enumerate() {
        let mut request = Request::new(["sh", "-c", command]);
        request.options.workspace = Some(workspace.path().to_path_buf());
        let run = spawn(&request)?;
        last = Some(run.canceller()?);
        readers.push(thread::spawn(move || follow(number + 1, run)));
    }
    // The other four end by themselves.
    let sleeper = readers.pop();
    for reader in readers {
        reader.join().map_err(|_| "a reader failed")??;
    }
    last.ok_or("no run was started")?.stop()?;
    if let Some(sleeper) = sleeper {
        sleeper.join().map_err(|_| "a reader failed")??;
    }
    Ok(())
}

/// Prints the events of one run, and how it ended.
fn follow(number: usize, mut run: ringwall_run::Handle) -> Result<(), ringwall_run::Error> {
    for event in &mut run {
        match event {
            Event::Started { command, mechanism, .. } => {
                println!(
                    "run {number}: started `{}` ({})",
                    command.join(" "),
                    mechanism.enforcement
                );
            }
            Event::Violation { violation, .. } => {
                println!(
                    "run {number}: {:?}: {:?} {}",
                    violation.class, violation.operation, violation.path
                );
            }
            Event::Stopped { exit, end, seconds, .. } => {
                println!("run {number}: {end:?} with status {exit} after {seconds:.2} s");
            }
            event => println!("run {number}: {event:?}"),
        }
    }
    let report = run.wait()?;
    println!("run {number}: {} denied, {} hidden", report.counts.deny, report.counts.probe);
    Ok(())
}
