//! Counts what Rust's test harness prints.

use std::process::ExitStatus;

use super::Outcome;

/// The tests seen so far, of all test programs.
#[derive(Debug, Default)]
pub(super) struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    notes: Vec<String>,
    /// The test whose output follows.
    shown: String,
    /// Tests that passed and reported that they skipped a part.
    partial: u64,
}

impl Tally {
    /// Takes one line of output.
    pub(super) fn line(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(result) = line.strip_prefix("test result: ") {
            self.passed += count(result, "passed");
            self.failed += count(result, "failed");
            self.ignored += count(result, "ignored");
        } else if let Some((name, result)) = named_result(line) {
            if result == "FAILED" {
                self.notes.push(format!("FAILED: {name}"));
            } else if let Some(reason) = result.strip_prefix("ignored") {
                self.notes.push(format!("SKIPPED: {name}{reason}"));
            }
        } else if let Some(heading) = line.strip_prefix("---- ") {
            heading.strip_suffix(" stdout ----").unwrap_or(heading).clone_into(&mut self.shown);
        } else if let Some(reason) = line.strip_prefix("skipped: ") {
            let note = format!("SKIPPED: {}, {reason}", self.shown);
            // For every user that a test is run as.
            if !self.notes.contains(&note) {
                self.notes.push(note);
                self.partial += 1;
            }
        }
    }

    /// The sum, given how `cargo test` ended.
    pub(super) fn outcome(mut self, ended: ExitStatus) -> Outcome {
        // A crate that does not build and a test program that dies name no failed test.
        if !ended.success() && self.failed == 0 {
            self.failed = 1;
            self.notes.push(format!("FAILED: `cargo test` failed: {ended}"));
        }
        if ended.success() && self.passed == 0 {
            self.failed = 1;
            self.notes.push("FAILED: no tests were run".into());
        }
        let Self { passed, failed, ignored, partial, notes, .. } = self;
        Outcome { passed, failed, skipped: ignored + partial, notes }
    }
}

/// The number before a word, as in `ok. 3 passed; 0 failed; 1 ignored; …`.
fn count(result: &str, word: &str) -> u64 {
    let words: Vec<_> = result.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    let found = words.windows(2).find_map(|pair| match pair {
        [number, after] if *after == word => number.parse().ok(),
        _ => None,
    });
    found.unwrap_or(0)
}

/// The name and the result of a line such as `test pattern::a_star_stops ... ok`.
fn named_result(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("test ")?.rsplit_once(" ... ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn tally(text: &str, code: i32) -> Outcome {
        let mut tally = Tally::default();
        text.lines().for_each(|line| tally.line(line));
        tally.outcome(ExitStatus::from_raw(code << 8))
    }

    #[test]
    fn every_test_program_is_summed() {
        let text = "running 3 tests\n\
            test a::works ... ok\n\
            test a::breaks - should panic ... FAILED\n\
            test a::waits ... ignored, needs a network\n\
            test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s\n\
            test crates/x/src/lib.rs - x (line 3) ... ok\n\
            test result: ok. 20 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";
        let outcome = tally(text, 101);
        assert_eq!((outcome.passed, outcome.failed, outcome.skipped), (21, 1, 1));
        assert_eq!(
            outcome.notes,
            ["FAILED: a::breaks - should panic", "SKIPPED: a::waits, needs a network"]
        );
    }

    /// A test that cannot run here, or only in part, reports that in its output.
    #[test]
    fn what_a_test_leaves_out_is_counted() {
        let text = "test a::walks ... ok\n\
            successes:\n\
            ---- a::walks stdout ----\n\
            skipped: there is no strace\n\
            something else\n\
            skipped: there is no strace\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let outcome = tally(text, 0);
        assert_eq!((outcome.passed, outcome.failed, outcome.skipped), (1, 0, 1));
        assert_eq!(outcome.notes, ["SKIPPED: a::walks, there is no strace"]);
    }

    #[test]
    fn a_run_that_dies_or_counts_nothing_has_failed() {
        let passed = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(tally(passed, 0).failed, 0);
        assert_eq!(tally(passed, 101).failed, 1);
        assert_eq!(tally("", 101).failed, 1);
        assert_eq!(tally("", 0).failed, 1);
    }
}
