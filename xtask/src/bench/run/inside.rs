//! What ordinary work costs behind the wall: processor time and wall time, inside and outside.
//!
//! What the supervisor does for a call counts as the call's own. Starting a run has figures of its
//! own, so a program that works for a few milliseconds is measured by what each further call in a
//! run costs, as in an agent's session. What any seccomp filter costs on this machine is shown
//! beside it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::scene::Scene;
use super::skipped;
use super::works::{self, Work};
use crate::bench::measure::{Bound, Figure, Times, print_table};
use crate::bench::peers::Peers;
use crate::failure::{Context, Failure};
use crate::workspace::output;

/// The standard library cannot ask what a child used.
const CLOCK: &str = include_str!("clock.py");

/// Calls a command so many times, and ends with the first that fails.
const REPEAT: &str = "n=$1; shift; while [ $n -gt 0 ]; do \"$@\" || exit; n=$((n-1)); done";

pub(super) fn measure(scene: &Scene, peers: &Peers, rounds: u32) -> Result<Vec<Figure>, Failure> {
    let bench = Bench { scene, clock: scene.write("clock.py", CLOCK)? };
    let mut figures = Vec::new();
    for kind in works::ALL {
        let measured = (kind.set)(scene, peers)
            .and_then(|work| bench.compare(kind.name, &work, rounds.div_ceil(work.every)));
        if let Err(failure) = &measured {
            skipped(kind.name, failure);
        }
        let bound = Bound::AtMost(1.03);
        figures.push(Figure { claim: kind.claim, bound, measured: measured.ok() });
    }
    Ok(figures)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Outside,
    Filtered,
    Inside,
}

impl Side {
    const ALL: [Self; 3] = [Self::Outside, Self::Filtered, Self::Inside];

    fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Filtered => "behind a seccomp filter that allows everything",
            Self::Inside => "inside",
        }
    }
}

/// What one run took.
#[derive(Debug, Clone, Copy)]
struct Spent {
    wall: Duration,
    processor: Duration,
}

/// What one side took in all rounds.
struct Rounds {
    side: Side,
    /// Of one call alone.
    single: Vec<Spent>,
    /// Of many calls in one run.
    many: Vec<Spent>,
}

impl Rounds {
    fn times(&self, all: &[Spent], take: fn(&Spent) -> Duration) -> Times {
        Times::new(self.side.name(), all.iter().map(take).collect())
    }

    /// Processor time of every call but the first.
    fn further(&self, calls: u32) -> Times {
        let pairs = self.many.iter().zip(&self.single);
        let each = pairs.map(|(many, single)| {
            many.processor.saturating_sub(single.processor) / calls.saturating_sub(1).max(1)
        });
        Times::new(self.side.name(), each.collect())
    }
}

struct Bench<'a> {
    scene: &'a Scene,
    clock: PathBuf,
}

impl Bench<'_> {
    /// Prints all sides, and says how many times the processor time is spent inside.
    fn compare(&self, name: &str, work: &Work, rounds: u32) -> Result<f64, Failure> {
        let calls = work.calls;
        println!("\n{name}: rounds: {rounds}");
        let mut sides = Side::ALL.map(|side| Rounds { side, single: vec![], many: vec![] });
        for round in 0..=rounds {
            // Who goes first changes, so that nobody always finds the same one's caches.
            sides.rotate_left(1);
            for rounds in &mut sides {
                let single = self.run(work, rounds.side, 1)?;
                let many = (calls > 1).then(|| self.run(work, rounds.side, calls)).transpose()?;
                if round > 0 {
                    rounds.single.push(single);
                    rounds.many.extend(many);
                }
            }
        }
        sides.sort_by_key(|rounds| Side::ALL.iter().position(|side| *side == rounds.side));
        let print = |what: &str, table: &[Times]| {
            println!("\n{what}");
            print_table(table);
        };
        let alone = sides.each_ref().map(|side| side.times(&side.single, |spent| spent.processor));
        print("processor time of one call alone", &alone);
        let wall = sides.each_ref().map(|side| side.times(&side.single, |spent| spent.wall));
        print("wall time of one call alone", &wall);
        if calls == 1 {
            return Ok(inside_to_outside(&alone));
        }
        let many = sides.each_ref().map(|side| side.times(&side.many, |spent| spent.processor));
        print(&format!("processor time of {calls} calls in one run"), &many);
        let further = sides.each_ref().map(|side| side.further(calls));
        print("processor time of each further call", &further);
        Ok(inside_to_outside(&further))
    }

    fn run(&self, work: &Work, side: Side, calls: u32) -> Result<Spent, Failure> {
        if let Some(product) = work.product.as_ref().filter(|product| product.exists()) {
            std::fs::remove_dir_all(product)
                .context(|| format!("cannot remove `{}`", product.display()))?;
        }
        let mut words: Vec<OsString> = Vec::new();
        match side {
            Side::Outside => {}
            Side::Filtered => words.push("--filtered".into()),
            Side::Inside => {
                words.extend([self.scene.ringwall.clone().into(), "run".into(), "--".into()]);
            }
        }
        if calls > 1 {
            words.extend(["sh", "-c", REPEAT, "sh", &calls.to_string()].map(OsString::from));
        }
        words.extend(work.words.iter().cloned());
        let mut clock = self.scene.command(Path::new("python3"));
        // Alone: the packages of this machine may run code at every start.
        clock.current_dir(&work.dir).args(["-I", "-S"]).arg(&self.clock).args(words);
        parse(&output(&mut clock)?)
    }
}

/// By the medians.
fn inside_to_outside([outside, _, inside]: &[Times; 3]) -> f64 {
    inside.ratio_to(outside)
}

/// The two numbers that the clock prints.
fn parse(text: &str) -> Result<Spent, Failure> {
    let micros = |text: &str| text.parse().map(Duration::from_micros);
    match text.split_once(' ').map(|(wall, processor)| (micros(wall), micros(processor))) {
        Some((Ok(wall), Ok(processor))) => Ok(Spent { wall, processor }),
        _ => Err(Failure::new(format!("the clock says `{text}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_says_two_numbers() {
        let spent = parse("2500 1200").unwrap();
        assert_eq!((spent.wall.as_micros(), spent.processor.as_micros()), (2500, 1200));
        assert!(parse("2500").is_err());
        assert!(parse("it ended with 1").is_err());
    }
}
