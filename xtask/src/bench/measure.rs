//! Runs programs in turn and measures how long each of them takes.

use std::io::{ErrorKind, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Context, Failure};

/// Rounds that are not counted, so that no program pays for a cold cache.
const WARM_UP: u32 = 3;

/// One of the programs that are compared. It must succeed and print nothing.
#[derive(Debug)]
pub(super) struct Contender {
    name: String,
    command: Command,
    input: Vec<u8>,
    every: u32,
}

impl Contender {
    pub(super) fn new(name: impl Into<String>, mut command: Command, input: Vec<u8>) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Self { name: name.into(), command, input, every: 1 }
    }

    /// For a slow program: it runs in one round of so many.
    pub(super) fn every(self, rounds: u32) -> Self {
        Self { every: rounds.max(1), ..self }
    }

    /// The time from before the start to after the end.
    fn run(&mut self) -> Result<Duration, Failure> {
        let name = &self.name;
        let started = Instant::now();
        let mut child = self.command.spawn().context(|| format!("cannot start {name}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            match stdin.write_all(&self.input) {
                // The empty program does not wait for its input.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                written => written.context(|| format!("cannot write to {name}"))?,
            }
        }
        let mut answer = Vec::new();
        if let Some(mut stdout) = child.stdout.take() {
            stdout.read_to_end(&mut answer).context(|| format!("cannot read from {name}"))?;
        }
        let status = child.wait().context(|| format!("cannot wait for {name}"))?;
        let time = started.elapsed();
        if !status.success() || !answer.is_empty() {
            let answer = String::from_utf8_lossy(&answer);
            return Err(Failure::new(format!("{name} ended with {status} and printed `{answer}`")));
        }
        Ok(time)
    }
}

/// Runs every contender once per round, so that noise affects all of them alike.
pub(super) fn round_robin(
    mut contenders: Vec<Contender>,
    rounds: u32,
) -> Result<Vec<Times>, Failure> {
    let all = in_turn(&mut contenders, WARM_UP, rounds, |contender, round| {
        let takes_part = round.is_multiple_of(contender.every);
        if takes_part { contender.run().map(Some) } else { Ok(None) }
    })?;
    let named = contenders.iter().zip(all);
    Ok(named.map(|(contender, times)| Times::new(&contender.name, times)).collect())
}

/// Runs everything once per round, and returns for each how long its turns took. `run` gets the
/// number of the round, and may skip it.
///
/// The order changes from round to round: a fixed predecessor would always leave its successor
/// the same caches.
pub(super) fn in_turn<T>(
    things: &mut [T],
    warm_up: u32,
    rounds: u32,
    mut run: impl FnMut(&mut T, u32) -> Result<Option<Duration>, Failure>,
) -> Result<Vec<Vec<Duration>>, Failure> {
    let mut order: Vec<_> =
        things.iter_mut().enumerate().map(|(place, thing)| (place, thing, Vec::new())).collect();
    let mut shuffle = Shuffle(1);
    for round in 0..warm_up + rounds {
        shuffle.apply(&mut order);
        for (_, thing, times) in &mut order {
            let time = run(thing, round.saturating_sub(warm_up))?;
            if round >= warm_up {
                times.extend(time);
            }
        }
    }
    order.sort_by_key(|(place, ..)| *place);
    Ok(order.into_iter().map(|(.., times)| times).collect())
}

/// The same orders in every run.
struct Shuffle(u64);

impl Shuffle {
    fn apply<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            // Knuth's MMIX generator; its high bits are the good ones.
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let other = (self.0 >> 33) % (last as u64 + 1);
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}

/// How long one contender took, in all rounds.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) name: String,
    sorted: Vec<Duration>,
}

impl Times {
    pub(super) fn new(name: &str, mut times: Vec<Duration>) -> Self {
        times.sort();
        Self { name: name.to_owned(), sorted: times }
    }

    /// The time that this percentage of the runs did not exceed.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let last = self.sorted.len().saturating_sub(1);
        self.sorted.get(last * percent / 100).copied().unwrap_or_default()
    }

    pub(super) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// The ratio of the medians: this one to another.
    pub(super) fn ratio_to(&self, other: &Self) -> f64 {
        self.median().as_secs_f64() / other.median().as_secs_f64()
    }

    /// The ratio of the best times, which is more stable on a busy machine.
    pub(super) fn best_to(&self, other: &Self) -> f64 {
        self.percentile(0).as_secs_f64() / other.percentile(0).as_secs_f64()
    }
}

/// The median of the ratios of all rounds. What slows the machine down for a while affects both
/// sides of a ratio.
pub(super) fn paired_ratio(slow: &[Duration], fast: &[Duration]) -> Option<f64> {
    let pairs = slow.iter().zip(fast);
    let mut all: Vec<_> =
        pairs.map(|(slow, fast)| slow.as_secs_f64() / fast.as_secs_f64()).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// Prints all times, each with its ratio to the first.
pub(super) fn print_table(all: &[Times]) {
    let Some(base) = all.first() else { return };
    let width = all.iter().map(|times| times.name.chars().count()).max().unwrap_or(0);
    println!(
        "\n{:width$}  {:>8}  {:>9}  {:>8}  {:>7}  {:>7}",
        "", "min ms", "median ms", "p90 ms", "ratio", "of mins"
    );
    for times in all {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        println!(
            "{:width$}  {:>8.2}  {:>9.2}  {:>8.2}  {:>6.2}x  {:>6.2}x",
            times.name,
            ms(times.percentile(0)),
            ms(times.median()),
            ms(times.percentile(90)),
            times.ratio_to(base),
            times.best_to(base)
        );
    }
}

/// A ratio and its limit.
#[derive(Debug)]
pub(super) struct Figure {
    /// What is compared to what.
    pub(super) claim: &'static str,
    pub(super) bound: Bound,
    /// `None` if this machine could not measure it.
    pub(super) measured: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// At most this much memory; an absolute value.
    Megabytes(f64),
}

impl Figure {
    /// A figure that was not measured counts as missed.
    fn is_met(&self) -> bool {
        self.measured.is_some_and(|measured| match self.bound {
            Bound::AtMost(bound) | Bound::Megabytes(bound) => measured <= bound,
            Bound::AtLeast(bound) => measured >= bound,
        })
    }
}

/// Prints the figures, and returns the exit status of the command.
pub(super) fn print_figures(figures: &[Figure], no_check: bool) -> ExitCode {
    let width = figures.iter().map(|figure| figure.claim.chars().count()).max().unwrap_or(0);
    println!();
    for figure in figures {
        let word = if figure.is_met() { "pass" } else { "FAIL" };
        let (sign, bound, unit) = match figure.bound {
            Bound::AtMost(bound) => ("<=", bound, "x"),
            Bound::AtLeast(bound) => (">=", bound, "x"),
            Bound::Megabytes(bound) => ("<=", bound, " MB"),
        };
        let measured = figure
            .measured
            .map_or("not measured".into(), |measured| format!("{measured:.2}{unit}"));
        println!("{word}  {:width$}  {measured:>7}  (limit: {sign} {bound}{unit})", figure.claim);
    }
    if no_check || figures.iter().all(Figure::is_met) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Reports that something cannot be measured here, and why.
pub(super) fn skipped(what: &str, why: &Failure) {
    println!("skipped: {what}: {why}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(millis: &[u64]) -> Times {
        Times::new("x", millis.iter().copied().map(Duration::from_millis).collect())
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let ten = times(&[5, 1, 2, 4, 3, 10, 9, 8, 7, 6, 11]);
        let at = |percent| ten.percentile(percent).as_millis();
        assert_eq!([at(0), at(50), at(90), at(100)], [1, 6, 10, 11]);
        assert_eq!(times(&[7]).percentile(90).as_millis(), 7);
        assert!((times(&[6]).ratio_to(&times(&[3])) - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn rounds_are_compared_one_by_one() {
        let millis =
            |all: &[u64]| all.iter().copied().map(Duration::from_millis).collect::<Vec<_>>();
        // The machine was slow in the second half.
        let (slow, fast) = (millis(&[11, 11, 110, 110, 112]), millis(&[10, 10, 100, 100, 100]));
        assert!((paired_ratio(&slow, &fast).unwrap() - 1.1).abs() < 1e-9);
        assert_eq!(paired_ratio(&[], &[]), None);
    }

    #[test]
    fn a_figure_that_was_not_measured_is_missed() {
        let figure = |bound, measured| Figure { claim: "", bound, measured };
        assert!(figure(Bound::AtMost(2.0), Some(2.0)).is_met());
        assert!(!figure(Bound::AtMost(2.0), Some(2.1)).is_met());
        assert!(!figure(Bound::AtLeast(15.0), Some(14.9)).is_met());
        assert!(!figure(Bound::AtLeast(15.0), None).is_met());
    }

    #[test]
    fn turns_stay_with_their_things_and_only_those_of_real_rounds_count() {
        let mut things = [1, 10];
        let all = in_turn(&mut things, 2, 4, |thing, round| {
            let takes_part = *thing == 1 || round % 2 == 0;
            Ok(takes_part.then(|| Duration::from_millis(*thing)))
        });
        assert_eq!(
            all.unwrap(),
            [vec![Duration::from_millis(1); 4], vec![Duration::from_millis(10); 2]]
        );
    }

    #[test]
    fn a_shuffle_keeps_all_items_and_changes_the_order() {
        let mut shuffle = Shuffle(1);
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let mut items = [0, 1, 2, 3];
            shuffle.apply(&mut items);
            orders.insert(items);
            items.sort_unstable();
            assert_eq!(items, [0, 1, 2, 3]);
        }
        assert!(orders.len() > 12, "only {} orders", orders.len());
    }
}
