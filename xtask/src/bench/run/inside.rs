//! What ordinary work costs in the sandbox, in CPU time.
//!
//! The figure is about a command in a run that has already started, as in an agent's session; the time
//! of the supervisor is included. Two others are measured beside it: an empty sandbox, which is a
//! seccomp filter and a Landlock domain that deny nothing, and so the lower bound for any sandbox made
//! of these two; and a whole run for the command, from its start to its end.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use super::scene::Scene;
use super::skipped;
use super::works::{self, Work};
use crate::bench::measure::{Bound, Figure, Times, in_turn, paired_ratio, print_table};
use crate::bench::peers::Peers;
use crate::failure::{Context, Failure};

/// The standard library cannot measure the CPU time of a child.
const WORKER: &str = include_str!("worker.py");

/// The limits of the two ratios: to outside, and to an empty sandbox.
const LIMITS: [f64; 2] = [1.08, 1.03];

pub(super) fn measure(scene: &Scene, peers: &Peers, rounds: u32) -> Vec<Figure> {
    let mut figures = Vec::new();
    for kind in works::ALL {
        let measured = (kind.set)(scene, peers)
            .and_then(|work| compare(scene, kind.name, &work, rounds.div_ceil(work.every)));
        if let Err(failure) = &measured {
            skipped(kind.name, failure);
        }
        let measured = measured.unwrap_or_default();
        let named = kind.claims.into_iter().zip(measured);
        let named = named.zip(LIMITS.map(Bound::AtMost));
        figures.extend(named.map(|((claim, measured), bound)| Figure { claim, bound, measured }));
    }
    figures
}

/// Prints all sides, and returns the ratios of the CPU time inside: to outside, and to an empty
/// sandbox.
fn compare(
    scene: &Scene,
    name: &str,
    work: &Work,
    rounds: u32,
) -> Result<[Option<f64>; 2], Failure> {
    println!("\n{name}: CPU time of one command, {rounds} rounds");
    let start = |side| Worker::start(scene, work, side);
    let mut workers = Side::ALL.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let all = in_turn(&mut workers, 1, rounds, |worker, _| worker.call(work).map(Some))?;
    workers.into_iter().try_for_each(Worker::end)?;
    let ratios = match all.as_slice() {
        [outside, empty, inside, _] => [outside, empty].map(|side| paired_ratio(inside, side)),
        _ => [None; 2],
    };
    let named = Side::ALL.iter().zip(all);
    print_table(&named.map(|(side, times)| Times::new(side.name(), times)).collect::<Vec<_>>());
    Ok(ratios)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Outside,
    Empty,
    Inside,
    Whole,
}

impl Side {
    const ALL: [Self; 4] = [Self::Outside, Self::Empty, Self::Inside, Self::Whole];

    fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Empty => "in an empty sandbox",
            Self::Inside => "inside",
            Self::Whole => "in a run of its own",
        }
    }
}

/// Runs a command repeatedly on one side.
struct Worker {
    side: Side,
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    fn start(scene: &Scene, work: &Work, side: Side) -> Result<Self, Failure> {
        let run = || [scene.ringwall.clone().into(), "run".into(), "--".into()];
        let mut words: Vec<OsString> = Vec::new();
        if side == Side::Inside {
            words.extend(run());
        }
        // Without site packages, which may run code at every start.
        words.extend(["python3", "-I", "-S", "-c", WORKER].map(OsString::from));
        match side {
            Side::Outside | Side::Inside => {}
            Side::Empty => words.push("--empty-sandbox".into()),
            Side::Whole => words.extend(run()),
        }
        let mut command = scene.command(Path::new("env"));
        command.current_dir(&work.dir).args(words).args(&work.words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context(|| "cannot start a worker".into())?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (orders, answers) = pipes.ok_or_else(|| Failure::new("a worker has no pipes"))?;
        Ok(Self { side, process, orders, answers: BufReader::new(answers) })
    }

    /// The CPU time of one command.
    fn call(&mut self, work: &Work) -> Result<Duration, Failure> {
        if let Some(product) = work.product.as_ref().filter(|product| product.exists()) {
            std::fs::remove_dir_all(product)
                .context(|| format!("cannot remove `{}`", product.display()))?;
        }
        let before = self.supervision()?;
        let what = || format!("cannot write to the worker {}", self.side.name());
        self.orders.write_all(b"\n").context(what)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).context(|| "cannot read from a worker".into())?;
        let own = parse(&answer)?;
        Ok(own + self.supervision()?.saturating_sub(before))
    }

    /// It ends when there is no next line.
    fn end(mut self) -> Result<(), Failure> {
        drop(self.orders);
        let ended = self.process.wait().context(|| "cannot wait for a worker".into())?;
        let failed = || Failure::new(format!("the worker {} ended with {ended}", self.side.name()));
        ended.success().then_some(()).ok_or_else(failed)
    }

    /// The CPU time of the supervisor so far.
    fn supervision(&self) -> Result<Duration, Failure> {
        match self.side {
            Side::Inside => used(self.process.id()),
            Side::Outside | Side::Empty | Side::Whole => Ok(Duration::ZERO),
        }
    }
}

/// The CPU time of a running process, in all its threads.
fn used(process: u32) -> Result<Duration, Failure> {
    let what = || format!("cannot read the CPU time of process {process}");
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task")).context(what)? {
        let path: PathBuf = thread.context(what)?.path().join("schedstat");
        // A thread may have ended.
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        nanos += text.split(' ').next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

/// The number that a worker prints.
fn parse(answer: &str) -> Result<Duration, Failure> {
    let micros = answer.trim_end().parse().map(Duration::from_micros);
    micros.map_err(|_| Failure::new(format!("unexpected answer of a worker: `{answer}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_prints_one_number() {
        assert_eq!(parse("1200\n").unwrap().as_micros(), 1200);
        assert!(parse("").is_err());
        assert!(parse("it ended with 1\n").is_err());
    }

    #[test]
    fn what_a_process_uses_grows() {
        let myself = std::process::id();
        let before = used(myself).unwrap();
        while used(myself).unwrap() == before {}
    }
}
