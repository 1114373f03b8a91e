//! Checks a log from its first line to its head.

use std::path::Path;

use model::Digest;
use serde::Serialize;

use crate::chain::Link;
use crate::lines::{LONGEST_LINE, Text};
use crate::snapshot::{ReadError, Snapshot};
use crate::trace::{Seen, Trace};

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How many records the log holds.
    pub records: u64,
    /// The hash of the last record's line. Store it elsewhere, and a later verification can prove that
    /// nothing before it was changed.
    pub head: Option<String>,
    /// What is wrong, in the order of the lines. Empty for a valid log.
    pub faults: Vec<Fault>,
}

/// One thing that is wrong with the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The line, counted from one; zero where the log has none.
    pub line: usize,
    /// What is wrong, as one sentence.
    pub problem: String,
}

/// Checks the log in `directory`.
pub(crate) fn verify(directory: &Path, expected_head: Option<&str>) -> Result<Report, ReadError> {
    let mut snapshot = Snapshot::of(directory)?;
    let mut trace = Trace::new(snapshot.head);
    let mut expected = expected_head.map(Expected::new);
    let mut records = 0;
    while let Some(line) = snapshot.next_line()? {
        let number = line.number;
        match line.text {
            Text::Whole(text) => match Link::parse(text) {
                Some(link) => {
                    let tip = link.tip(text);
                    records += 1;
                    trace.entry(Seen { line: number, end: line.end, tip }, &link);
                    if let Some(expected) = &mut expected {
                        expected.compare(tip.hash);
                    }
                }
                None => trace.unreadable(number, format!("line {number} is not a record")),
            },
            Text::Torn(text) => {
                let bytes = text.len();
                let text = format!("line {number} is torn: {bytes} bytes and no end of line");
                trace.unreadable(number, text);
            }
            Text::TooLong => {
                let text = format!("line {number} is longer than {LONGEST_LINE} bytes");
                trace.unreadable(number, text);
            }
        }
    }
    let last = trace.last();
    let mut faults = trace.finish(snapshot.length);
    if let Some(expected) = expected.filter(|expected| !expected.found) {
        let problem = format!("no record has the expected hash `{}`", expected.text);
        faults.push(Fault { line: last.line, problem });
    }
    let head = (records > 0).then(|| last.tip.hash.to_string());
    Ok(Report { records, head, faults })
}

/// A head that was stored elsewhere.
struct Expected<'a> {
    text: &'a str,
    hash: Option<Digest>,
    found: bool,
}

impl<'a> Expected<'a> {
    fn new(text: &'a str) -> Self {
        let hash = text.trim().to_ascii_lowercase().parse().ok();
        Self { text, hash, found: hash == Some(Digest::ZERO) }
    }

    fn compare(&mut self, hash: Digest) {
        self.found |= self.hash == Some(hash);
    }
}
