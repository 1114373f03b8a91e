//! What ordinary work costs behind the wall: processor time and wall time, inside and outside.
//!
//! Nothing is subtracted: what the supervisor does counts as the run's own. A program that works
//! for a few milliseconds says more about start-up than about work, so its figure is taken from
//! runs that call it many times, as an agent's session does; one call alone is shown beside it.

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

/// Single calls are measured in one round of so many.
const SINGLE_EVERY: u32 = 20;

/// Calls a command so many times, and ends with the first that fails.
const REPEAT: &str = "n=$1; shift; while [ $n -gt 0 ]; do \"$@\" || exit; n=$((n-1)); done";

pub(super) fn measure(scene: &Scene, peers: &Peers, rounds: u32) -> Result<Vec<Figure>, Failure> {
    let bench = Bench { scene, clock: scene.write("clock.py", CLOCK)? };
    let mut figures = Vec::new();
    for kind in works::ALL {
        let measured = (kind.set)(scene, peers).and_then(|work| {
            if work.calls > 1 {
                bench.compare(kind.name, &work, 1, rounds.div_ceil(SINGLE_EVERY))?;
            }
            bench.compare(kind.name, &work, work.calls, rounds.div_ceil(work.every))
        });
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
    Inside,
}

/// What one run took.
struct Spent {
    wall: Duration,
    processor: Duration,
}

struct Bench<'a> {
    scene: &'a Scene,
    clock: PathBuf,
}

impl Bench<'_> {
    /// Prints both sides, and says how many times the processor time is spent inside.
    fn compare(&self, name: &str, work: &Work, calls: u32, rounds: u32) -> Result<f64, Failure> {
        println!("\n{name}: calls in one run: {calls}, rounds: {rounds}");
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            // Who goes first changes, so that nobody always finds the other's caches.
            let mut order = [(Side::Outside, &mut outside), (Side::Inside, &mut inside)];
            if round % 2 == 1 {
                order.reverse();
            }
            for (side, all) in order {
                let spent = self.run(work, side, calls)?;
                if round > 0 {
                    all.push(spent);
                }
            }
        }
        let times = |name: &str, all: &[Spent], take: fn(&Spent) -> Duration| {
            Times::new(name, all.iter().map(take).collect())
        };
        let processor = [
            times("processor time, outside", &outside, |spent| spent.processor),
            times("processor time, inside", &inside, |spent| spent.processor),
        ];
        print_table(&processor);
        print_table(&[
            times("wall time, outside", &outside, |spent| spent.wall),
            times("wall time, inside", &inside, |spent| spent.wall),
        ]);
        let [outside, inside] = &processor;
        Ok(inside.ratio_to(outside))
    }

    fn run(&self, work: &Work, side: Side, calls: u32) -> Result<Spent, Failure> {
        if let Some(product) = work.product.as_ref().filter(|product| product.exists()) {
            std::fs::remove_dir_all(product)
                .context(|| format!("cannot remove `{}`", product.display()))?;
        }
        let mut words: Vec<OsString> = Vec::new();
        if side == Side::Inside {
            words.extend([self.scene.ringwall.clone().into(), "run".into(), "--".into()]);
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
