//! Runs through the library, from a program with threads.

#![expect(clippy::panic, reason = "checks are there to fail")]

use std::thread;

use ringwall_run::{Class, Ending, Event, Handle, Request, STOPPED, spawn};

fn request(workspace: &tempfile::TempDir, script: &str) -> Request {
    let mut request = Request::new(["sh", "-c", script]);
    request.options.workspace = Some(workspace.path().to_path_buf());
    request
}

/// All events of a run; the first must be `started`.
fn started(run: &mut Handle) {
    match run.next() {
        Some(Event::Started { .. }) => {}
        other => panic!("not started: {other:?}"),
    }
}

#[test]
fn several_runs_at_once_have_their_own_events_and_ends() {
    let workspace = tempfile::tempdir().unwrap();
    let scripts = ["exit 0", "exit 3", "cat /etc/shadow; exit 0", "exec sleep 600"];
    let mut runs: Vec<_> =
        scripts.iter().map(|script| spawn(&request(&workspace, script)).unwrap()).collect();
    let mut sleeper = runs.pop().unwrap();
    started(&mut sleeper);
    let canceller = sleeper.canceller().unwrap();
    let threads: Vec<_> = runs
        .into_iter()
        .map(|mut run| {
            thread::spawn(move || {
                started(&mut run);
                let stops = run.by_ref().filter(|event| match event {
                    Event::Violation { violation, .. } => violation.class == Class::Stop,
                    _ => false,
                });
                let stops = stops.count();
                (stops, run.wait().unwrap().exit)
            })
        })
        .collect();
    let ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(ends, [(0, 0), (0, 3), (1, STOPPED)]);
    canceller.stop().unwrap();
    let report = sleeper.wait().unwrap();
    assert_eq!((report.end, report.stopped_by.is_none()), (Ending::Cancelled, true));
}

#[test]
fn a_violation_that_was_read_back_has_its_rule_and_the_command_that_allows_it() {
    let workspace = tempfile::tempdir().unwrap();
    let outside = concat!("cat '", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml'");
    let report = spawn(&request(&workspace, outside)).unwrap().wait().unwrap();
    let reason = report.stopped_by.unwrap().reason.unwrap();
    assert_eq!(reason.rule, ringwall_run::Rule::Workspace);
    let command = reason.instead.unwrap().command();
    assert!(command.unwrap().starts_with("ringwall grant read /"));
}

#[test]
fn a_dropped_handle_ends_its_run() {
    let workspace = tempfile::tempdir().unwrap();
    let script = "echo $$ > pid; i=0; while :; do cat /nowhere/$i 2> /dev/null; i=$((i+1)); done";
    let mut run = spawn(&request(&workspace, script)).unwrap();
    started(&mut run);
    // Returns, also though no one has read the events.
    drop(run);
}

#[test]
fn a_request_that_cannot_be_is_an_error_with_its_exit_status() {
    let workspace = tempfile::tempdir().unwrap();
    let mut request = request(&workspace, "true");
    request.allow_domain.push("https://example.org/".into());
    let error = spawn(&request).unwrap().wait().unwrap_err();
    assert_eq!(error.exit_code(), 64, "{error}");
    request.allow_domain.clear();
    request.options.workspace = Some("/nowhere".into());
    let error = spawn(&request).unwrap().wait().unwrap_err();
    assert_eq!(error.exit_code(), 64, "{error}");
}
