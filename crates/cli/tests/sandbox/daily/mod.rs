//! Ordinary work: what people do all day is done outside and inside, with equal results.
//!
//! Each row is run twice in fresh directories, by the same user: without the sandbox, then in a run with
//! the built-in rules. Status, output and what is left in the project must be the same, and the run must
//! report nothing. A row whose programs are not installed, or that fails outside, is skipped; the number of
//! those is printed, and most rows must be tried.

mod builds;
mod data;
mod files;
mod languages;
mod processes;
mod repositories;

use std::process::Output;

use fixtures::{TestEnv, User, has, text, users};

/// One piece of work.
pub(super) struct Scenario {
    name: &'static str,
    /// The programs, besides those that every machine has.
    needs: &'static [&'static str],
    /// A script that prepares the project, outside.
    setup: &'static str,
    /// What is compared.
    command: &'static str,
    /// A script that prints what is left, outside.
    left: &'static str,
    expected: Expected,
}

/// What a run of the command must be like.
#[derive(Clone, Copy)]
enum Expected {
    /// As without the sandbox, with this status, and nothing is reported.
    Same(i32),
    /// It cannot work, and the report has this text.
    Says(&'static str),
}

/// What was seen of a command.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    code: Option<i32>,
    stdout: String,
    left: String,
}

/// Results that name the directory of the test name it alike.
fn seen(env: &TestEnv, scenario: &Scenario, code: Option<i32>, stdout: &str) -> Seen {
    let root = env.root.display().to_string();
    let left = text(&env.bare(scenario.left).stdout);
    Seen { code, stdout: stdout.replace(&root, "ROOT"), left: left.replace(&root, "ROOT") }
}

/// The project of one scenario. `None` if it cannot be prepared here.
fn prepared(who: User, scenario: &Scenario) -> Option<TestEnv> {
    let env = TestEnv::new(who);
    env.own();
    let Output { status, stderr, .. } = env.bare(&format!("set -e\n{}", scenario.setup));
    if !status.success() {
        eprintln!("skipped: {}: cannot be prepared: {}", scenario.name, text(&stderr));
        return None;
    }
    Some(env)
}

/// Whether a scenario was tried, and what was wrong.
enum Tried {
    Skipped,
    Fine,
    Wrong(String),
}

fn try_scenario(who: User, scenario: &Scenario) -> Tried {
    let missing: Vec<_> = scenario.needs.iter().filter(|program| !has(program)).collect();
    if !missing.is_empty() {
        eprintln!("skipped: {}: not installed: {missing:?}", scenario.name);
        return Tried::Skipped;
    }
    let Some(env) = prepared(who, scenario) else { return Tried::Skipped };
    let done = env.bare(scenario.command);
    let outside = seen(&env, scenario, done.status.code(), &text(&done.stdout));
    let wanted = if let Expected::Same(code) = scenario.expected { code } else { 0 };
    if outside.code != Some(wanted) {
        let said = text(&done.stderr);
        eprintln!("skipped: {} as {who:?}: fails outside: {outside:?} {said}", scenario.name);
        return Tried::Skipped;
    }
    drop(env);
    let Some(env) = prepared(who, scenario) else { return Tried::Skipped };
    let ran = env.run(&[], scenario.command);
    // A note is no fault: it may name a file of the build that changed.
    let reported = ["error: ", "warning: "]
        .iter()
        .any(|start| ran.stderr.lines().any(|line| line.starts_with(start)));
    let inside = seen(&env, scenario, ran.code, &ran.stdout);
    let fine = match scenario.expected {
        Expected::Same(_) => inside == outside && !reported,
        Expected::Says(part) => reported && ran.stderr.contains(part),
    };
    if fine {
        return Tried::Fine;
    }
    let (name, said) = (scenario.name, &ran.stderr);
    Tried::Wrong(format!("{name} as {who:?}\n  outside {outside:?}\n  inside  {inside:?}\n{said}"))
}

/// Tries all scenarios as every user. At least half of them must be possible as one of the users.
fn try_all(scenarios: &[Scenario]) {
    let (mut fine, mut skipped, mut wrong) = (0, 0, Vec::new());
    for who in users() {
        for scenario in scenarios {
            match try_scenario(who, scenario) {
                Tried::Fine => fine += 1,
                Tried::Skipped => skipped += 1,
                Tried::Wrong(how) => wrong.push(how),
            }
        }
    }
    eprintln!("{fine} as without the sandbox, {skipped} skipped");
    assert!(wrong.is_empty(), "{} are not as outside:\n{}", wrong.len(), wrong.join("\n"));
    assert!(fine >= scenarios.len() / 2, "{fine} of {} scenarios were tried", scenarios.len());
}

/// A row for work that leaves nothing to look at.
const fn prints(
    name: &'static str,
    needs: &'static [&'static str],
    command: &'static str,
) -> Scenario {
    Scenario { name, needs, setup: "", command, left: "", expected: Expected::Same(0) }
}

/// A row for work whose result is in the project.
const fn leaves(
    name: &'static str,
    needs: &'static [&'static str],
    setup: &'static str,
    command: &'static str,
    left: &'static str,
) -> Scenario {
    Scenario { name, needs, setup, command, left, expected: Expected::Same(0) }
}

#[test]
fn work_with_files() {
    try_all(files::ALL);
}

#[test]
fn work_with_processes() {
    try_all(processes::ALL);
}

#[test]
fn work_with_compilers() {
    try_all(builds::ALL);
}

#[test]
fn work_in_languages() {
    try_all(languages::ALL);
}

#[test]
fn work_with_data() {
    try_all(data::ALL);
}

#[test]
fn work_with_repositories() {
    try_all(repositories::ALL);
}
