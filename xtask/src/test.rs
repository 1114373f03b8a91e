//! `cargo xtask test`: everything that a change must pass, also on a new machine.
//!
//! Later stages run even if a stage fails. What this machine cannot run is skipped and listed with
//! its reason. Tests are counted one by one, every other stage is one check, and the last line of the
//! output is the total.

mod fuzz;
mod libtest;

use std::io::{BufRead, BufReader};
use std::num::NonZero;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use self::fuzz::Fuzz;
use self::libtest::Tally;
use crate::failure::{Context, Failure};
use crate::generate;
use crate::packages::{self, Tried};
use crate::workspace::{Workspace, announce, output, status};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only these stages
    #[arg(long, value_name = "STAGE", value_delimiter = ',')]
    only: Vec<Stage>,
    /// Run only the tests whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// How many seconds each fuzz target runs
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    fuzz_seconds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The code is formatted
    Fmt,
    /// The code is free of lints
    Clippy,
    /// The generated files are up to date
    Gen,
    /// No default build has the hooks of the tests
    Hooks,
    /// The tests of every crate
    Tests,
    /// The test suites of three real packages do the same inside
    Packages,
    /// The fuzz targets find nothing
    Fuzz,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> ExitCode {
    let mut report = Report::default();
    for stage in Stage::value_variants() {
        if !args.only.is_empty() && !args.only.contains(stage) {
            continue;
        }
        match stage {
            Stage::Fmt => {
                report.stage("fmt", || tool(workspace, "fmt", &["fmt", "--all", "--check"]));
                report.stage("fmt fuzz", || {
                    let words = ["fmt", "--manifest-path=fuzz/Cargo.toml", "--check"];
                    tool(workspace, "fmt", &words)
                });
            }
            Stage::Clippy => report.stage("clippy", || {
                let words = ["clippy", "--workspace", "--all-targets", "--locked", HOOKS];
                tool(workspace, "clippy", &[&words[..], &["--", "-D", "warnings"]].concat())
            }),
            Stage::Gen => report.stage("gen", || generated(workspace)),
            Stage::Hooks => report.stage("hooks", || hooks(workspace)),
            Stage::Tests => report.stage("tests", || tests(workspace, args.filter.as_deref())),
            Stage::Packages => report.stage("packages", || packages(workspace)),
            Stage::Fuzz => fuzz(workspace, args.fuzz_seconds, &mut report),
        }
    }
    report.print()
}

/// A stage that is one run of a cargo subcommand, which may be missing.
fn tool(workspace: &Workspace, name: &str, words: &[&str]) -> Result<Outcome, Failure> {
    if let Err(failure) = output(workspace.cargo().args([name, "--version"])) {
        return Ok(Outcome::skipped(failure.to_string()));
    }
    let ended = status(workspace.cargo().args(words))?;
    Ok(if ended.success() {
        Outcome::PASSED
    } else {
        Outcome::failed(format!("`cargo {name}` failed: {ended}"))
    })
}

fn generated(workspace: &Workspace) -> Result<Outcome, Failure> {
    let stale = generate::stale(workspace)?;
    let complaints: Vec<_> = stale.iter().map(generate::Generated::complaint).collect();
    Ok(if stale.is_empty() { Outcome::PASSED } else { Outcome::failed(complaints.join("; ")) })
}

/// Each package is one check. Without a network they are skipped.
fn packages(workspace: &Workspace) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for (name, tried) in packages::quick(workspace)? {
        match tried {
            Tried::Equal => outcome.passed += 1,
            Tried::Different(how) => {
                outcome.failed += 1;
                outcome.notes.push(format!("FAILED: {name}: {how}"));
            }
            Tried::Skipped(why) => {
                outcome.skipped += 1;
                outcome.notes.push(format!("SKIPPED: {name}: {why}"));
            }
        }
    }
    Ok(outcome)
}

/// Builds with what only tests use.
const HOOKS: &str = "--features=ringwall/test-hooks";

/// A hook switches a part of the sandbox off, or leads a name elsewhere. So no build has them but
/// those that ask for them: cargo names every feature that a build for users would have.
fn hooks(workspace: &Workspace) -> Result<Outcome, Failure> {
    let tree = |more: &[&str]| {
        let words = ["tree", "--locked", "--package=ringwall", "--edges=no-dev", "--prefix=none"];
        output(workspace.cargo().args(words).arg("--format={p} [{f}]").args(more))
    };
    let with_hooks = |tree: &str| {
        let has = |line: &&str| line.split(['[', ',', ']']).any(|name| name == "test-hooks");
        tree.lines().filter(has).map(str::to_owned).collect::<Vec<_>>()
    };
    if with_hooks(&tree(&["--features=test-hooks"])?).is_empty() {
        return Ok(Outcome::failed("cargo does not list the feature `test-hooks` when it is on"));
    }
    let found = with_hooks(&tree(&[])?);
    Ok(if found.is_empty() {
        Outcome::PASSED
    } else {
        Outcome::failed(format!("a default build has `test-hooks`: {}", found.join("; ")))
    })
}

/// Programs that some tests need, and a part of the names of those tests.
const RUN_FOR_REAL: &[(&str, &str)] =
    &[("curl", "redirected_by_curl"), ("wget", "redirected_by_wget")];

/// Runs all tests. Their output is printed as it arrives, and counted.
fn tests(workspace: &Workspace, filter: Option<&str>) -> Result<Outcome, Failure> {
    let missing = |(program, _): &&(&str, &str)| {
        Command::new(program).arg("--version").stdout(Stdio::null()).status().is_err()
    };
    let missing: Vec<_> = RUN_FOR_REAL.iter().filter(missing).collect();
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--workspace", "--locked", HOOKS, "--no-fail-fast"]).stdout(Stdio::piped());
    // A test reports in its output what it skipped.
    cargo.args(["--", "--show-output"]).args(filter);
    for (_, tests) in &missing {
        cargo.args(["--skip", tests]);
    }
    announce(&cargo);
    let mut child = cargo.spawn().context(|| "cannot start `cargo test`".into())?;
    let mut tally = Tally::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.context(|| "cannot read the tests' output".into())?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            tally.line(&line);
        }
    }
    let ended = child.wait().context(|| "cannot wait for `cargo test`".into())?;
    let mut outcome = tally.outcome(ended);
    for (program, tests) in missing {
        outcome.skipped += 1;
        outcome.notes.push(format!("SKIPPED: {tests}: `{program}` is not installed"));
    }
    Ok(outcome)
}

fn fuzz(workspace: &Workspace, seconds: u32, report: &mut Report) {
    let mut targets = Vec::new();
    let mut built = None;
    report.stage("fuzz build", || {
        targets = fuzz::targets(workspace)?;
        let (fuzz, outcome) = Fuzz::build(workspace)?;
        built = fuzz;
        Ok(outcome)
    });
    let run = |target: &String| match &built {
        Some(fuzz) => fuzz.run(target, seconds),
        None => Ok(Outcome::skipped("the fuzz targets were not built")),
    };
    // Each uses one processor.
    let at_once = thread::available_parallelism().map_or(1, NonZero::get);
    for group in targets.chunks(at_once) {
        println!("\n==== fuzz {}", group.join(", "));
        thread::scope(|scope| {
            let started = Instant::now();
            let runs = group.iter().map(|target| (target, scope.spawn(move || run(target))));
            for (target, run) in runs.collect::<Vec<_>>() {
                let ended = run.join().unwrap_or_else(|_| Err(Failure::new("it panicked")));
                report.ended(&format!("fuzz {target}"), ended, started.elapsed());
            }
        });
    }
}

/// The result of a stage.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Outcome {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// What failed or was skipped, and why.
    notes: Vec<String>,
}

impl Outcome {
    const PASSED: Self = Self { passed: 1, failed: 0, skipped: 0, notes: Vec::new() };

    fn failed(why: impl Into<String>) -> Self {
        Self { failed: 1, notes: vec![format!("FAILED: {}", why.into())], ..Self::default() }
    }

    fn skipped(why: impl Into<String>) -> Self {
        Self { skipped: 1, notes: vec![format!("SKIPPED: {}", why.into())], ..Self::default() }
    }

    fn word(&self) -> &'static str {
        match self {
            Self { failed: 1.., .. } => "failed",
            Self { passed: 0, skipped: 1.., .. } => "skipped",
            _ => "passed",
        }
    }
}

/// The results of all stages so far.
#[derive(Debug, Default)]
struct Report {
    stages: Vec<(String, Outcome, Duration)>,
}

impl Report {
    fn stage(&mut self, name: &str, run: impl FnOnce() -> Result<Outcome, Failure>) {
        println!("\n==== {name}");
        let started = Instant::now();
        let ended = run();
        self.ended(name, ended, started.elapsed());
    }

    fn ended(&mut self, name: &str, ended: Result<Outcome, Failure>, time: Duration) {
        let outcome = ended.unwrap_or_else(|failure| Outcome::failed(failure.to_string()));
        for note in &outcome.notes {
            println!("{name}: {note}");
        }
        println!("---- {name}: {} in {:.1} s", outcome.word(), time.as_secs_f64());
        self.stages.push((name.to_owned(), outcome, time));
    }

    /// Prints all stages again, what failed or was skipped, and the total.
    fn print(&self) -> ExitCode {
        println!("\n==== summary");
        let width = self.stages.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        for (name, outcome, time) in &self.stages {
            println!("{name:width$}  {:7}  {:>6.1} s", outcome.word(), time.as_secs_f64());
        }
        for (name, outcome, _) in &self.stages {
            outcome.notes.iter().for_each(|note| println!("{name}: {note}"));
        }
        let sum = |count: fn(&Outcome) -> u64| -> u64 {
            self.stages.iter().map(|(_, outcome, _)| count(outcome)).sum()
        };
        let failed = sum(|outcome| outcome.failed);
        let (passed, skipped) = (sum(|outcome| outcome.passed), sum(|outcome| outcome.skipped));
        println!("\n{passed} passed, {failed} failed, {skipped} skipped");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
