//! Parsing and judging shell text, over the corpus: microseconds per command in this process.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Common;
use crate::failure::{Context, Failure};
use crate::workspace::{Workspace, succeed};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// How many inputs to generate from the corpus
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    inputs: u32,
}

/// A name, and how to create the text.
type Bomb = (&'static str, fn() -> String);

/// Texts that must be rejected quickly as opaque.
const BOMBS: &[Bomb] = &[
    ("10 MB of text", || "a".repeat(10 << 20)),
    ("50,000 open parentheses", || "(".repeat(50_000)),
    ("50,000 open substitutions", || "$(".repeat(50_000)),
    ("50,000 open parameters", || "${a:-".repeat(50_000)),
    ("60 levels of substitution", || format!("{}x{}", "$(echo ".repeat(60), ")".repeat(60))),
    ("10,000 segments", || "ls; ".repeat(10_000)),
];

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode, Failure> {
    if cfg!(debug_assertions) {
        // What is measured runs in this process, so this process must be optimised.
        let (rounds, inputs) = (args.common.rounds.to_string(), args.inputs.to_string());
        let again = ["run", "--release", "--quiet", "--package", "xtask", "--"];
        succeed(
            workspace
                .cargo()
                .args(again)
                .args(["bench", "shell", "--rounds", &rounds, "--inputs", &inputs]),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut commands = Vec::new();
    for file in ["corpus/shell.jsonl", "corpus/commands.jsonl"] {
        let path = workspace.root.join(file);
        let text = std::fs::read_to_string(&path).context(|| format!("cannot read {file}"))?;
        for line in text.lines() {
            let row: Value =
                serde_json::from_str(line).context(|| format!("cannot parse {file}"))?;
            commands.extend(row.get("command").and_then(Value::as_str).map(str::to_owned));
        }
    }
    let rounds = args.common.rounds.div_ceil(60);
    println!("{} commands, {rounds} rounds", commands.len());
    println!("{:<28}{:>10}{:>10}{:>10}", "", "median us", "p99 us", "max us");
    print(
        "parse",
        &measure(&commands, rounds, |command| {
            ringwall::testing::parse(command);
        }),
    );
    print(
        "parse and judge",
        &measure(&commands, rounds, |command| {
            let _ = ringwall::testing::decide(command);
        }),
    );
    for (name, make) in BOMBS {
        let text = make();
        let started = Instant::now();
        let (_, unknown) = ringwall::testing::parse(&text);
        let time = started.elapsed();
        let opaque = if unknown > 0 { "opaque" } else { "parsed completely" };
        println!("{name:<28}{:>10.0}  {opaque}", micros(time));
    }
    generated(&commands, args.inputs);
    println!("for the whole process, run `cargo xtask bench hook`");
    Ok(ExitCode::SUCCESS)
}

/// Random combinations of pieces of the corpus. Prints the slowest.
fn generated(commands: &[String], inputs: u32) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap_or(0) % below.max(1)
    };
    let mut slowest = (Duration::ZERO, String::new());
    for _ in 0..inputs {
        let mut text = String::new();
        for _ in 0..=random(4) {
            let piece = commands.get(random(commands.len())).map_or("", String::as_str);
            let (a, b) = (random(piece.len() + 1), random(piece.len() + 1));
            text.push_str(piece.get(a.min(b)..a.max(b)).unwrap_or(piece));
            text.push_str(
                ["", " ", ";", "|", "$(", "`", "'", "\"", "\n", "<<E\n", "{", "&&"]
                    .get(random(12))
                    .unwrap_or(&""),
            );
        }
        let started = Instant::now();
        let _ = ringwall::testing::decide(&text);
        let time = started.elapsed();
        if time > slowest.0 {
            slowest = (time, text);
        }
    }
    println!("{inputs} generated inputs, no panic; the slowest took {:.0} us:", micros(slowest.0));
    println!("    {:?}", slowest.1.chars().take(200).collect::<String>());
}

fn measure(commands: &[String], rounds: u32, run: impl Fn(&str)) -> Vec<Duration> {
    let mut times = Vec::with_capacity(commands.len());
    for command in commands {
        // The best of the rounds: what the work takes when nothing else gets in its way.
        let time = (0..rounds).map(|_| {
            let started = Instant::now();
            run(command);
            started.elapsed()
        });
        times.extend(time.min());
    }
    times.sort();
    times
}

fn print(name: &str, times: &[Duration]) {
    let at = |share: usize| times.get((times.len() - 1) * share / 100).copied().unwrap_or_default();
    let (median, p99, max) = (at(50), at(99), at(100));
    println!("{name:<28}{:>10.1}{:>10.1}{:>10.1}", micros(median), micros(p99), micros(max));
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
