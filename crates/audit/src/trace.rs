//! Follows a chain line by line, and describes where it breaks.
//!
//! A line is confirmed by the next line, which has its hash; the last line is confirmed by the head.
//! If two lines do not fit together, the one that is confirmed is unchanged.

use crate::chain::{Link, Tip};
use crate::entry::HeadLoss;
use crate::head::{Head, HeadState};
use crate::verify::Fault;

/// Faults listed one by one; the rest are counted, so that memory stays bounded.
const MOST_FAULTS: usize = 1000;

/// A chain as far as it was read.
#[derive(Debug)]
pub(crate) struct Trace {
    head: HeadState,
    /// The last line that links to the ones before it.
    chain: Seen,
    /// The last line, where it does not.
    stray: Option<Seen>,
    /// Lines since the last one of these that could not be read.
    unreadable: u64,
    suspect: Suspect,
    /// The end of the line that the head names, once it was read.
    head_end: Option<u64>,
    faults: Vec<Fault>,
    unlisted: usize,
}

/// A line, and what the next one must link to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Its number, from one; zero is the start of the log.
    pub(crate) line: usize,
    /// Where it ends in the file.
    pub(crate) end: u64,
    /// The tip of a chain that ends with it.
    pub(crate) tip: Tip,
}

impl Seen {
    const START: Self = Self { line: 0, end: 0, tip: Tip::START };
}

/// Which line may have caused the latest break.
#[derive(Debug, Clone, Copy)]
enum Suspect {
    Unknown,
    /// This line is known to be changed, so that the next one cannot fit.
    Named(usize),
    /// One of two lines that do not fit; the fault at this index names both.
    OneOf {
        fault: usize,
        first: usize,
        second: usize,
    },
}

impl Trace {
    /// Begins before the first line of a log with this head.
    pub(crate) fn new(head: HeadState) -> Self {
        Self {
            head,
            chain: Seen::START,
            stray: None,
            unreadable: 0,
            suspect: Suspect::Unknown,
            head_end: None,
            faults: Vec::new(),
            unlisted: 0,
        }
    }

    /// The last line that could be read, or the start.
    pub(crate) fn last(&self) -> Seen {
        self.stray.unwrap_or(self.chain)
    }

    /// Adds a line that is not an entry.
    pub(crate) fn unreadable(&mut self, line: usize, problem: String) {
        self.unreadable += 1;
        self.fault(line, problem);
    }

    /// Adds an entry, and what it claims about its place.
    pub(crate) fn entry(&mut self, here: Seen, claim: &Link<'_>) {
        let line = here.line;
        if matches!(self.head, HeadState::Known(head) if head.tip == here.tip) {
            self.head_end = Some(here.end);
        }
        if let Some(stray) = self.stray.filter(|stray| stray.tip.is_followed_by(claim)) {
            self.confirm(stray.line);
            self.accept(here);
        } else if self.chain.tip.is_followed_by(claim) {
            self.disown_stray(line);
            self.accept(here);
        } else if self.is_behind_unreadable(claim.seq) {
            self.suspect = Suspect::Unknown;
            self.accept(here);
        } else {
            self.blame(here, claim);
        }
        if claim.says_head_lost() {
            let seq = claim.seq;
            self.fault(
                line,
                format!("the head was lost before record {seq}: older records may have been cut"),
            );
        }
    }

    /// Compares the end of a log that has so many bytes with its head.
    pub(crate) fn finish(mut self, length: u64) -> Vec<Fault> {
        let last = self.last();
        match self.head {
            HeadState::Known(head) => self.compare(head, last, length),
            HeadState::Lost(HeadLoss::Missing) if length == 0 => {}
            HeadState::Lost(found) => self.fault(
                last.line,
                format!(
                    "the head is {found}: nothing shows whether records after line {} were cut",
                    last.line
                ),
            ),
        }
        if self.unlisted > 0 {
            let problem = format!("{} more faults are not listed", self.unlisted);
            self.faults.push(Fault { line: last.line, problem });
        }
        self.faults
    }

    fn compare(&mut self, head: Head, last: Seen, length: u64) {
        let (line, seq) = (last.line, last.tip.seq);
        if last.tip == head.tip {
            self.confirm(line);
        }
        let end = if head.tip == Tip::START { Some(0) } else { self.head_end };
        if let Some(end) = end {
            // Inserted or removed lines move the end too, but they also break the chain.
            if self.faults.is_empty() && end != head.length {
                let text = format!(
                    "the head says {} bytes, but record {} ends at {end}",
                    head.length, head.tip.seq
                );
                self.fault(line, text);
            }
        } else if seq == head.tip.seq {
            self.contradicted(line);
        } else if seq > head.tip.seq {
            let text = format!("the head says record {}, which is not in the log", head.tip.seq);
            self.fault(line, text);
        } else if length == 0 {
            let text = format!("the log is empty but the head says record {}", head.tip.seq);
            self.fault(line, text);
        } else if seq.saturating_add(self.unreadable) < head.tip.seq {
            let text = format!(
                "the log ends at line {line} (record {seq}) but the head says record {}",
                head.tip.seq
            );
            self.fault(line, text);
        }
    }

    fn accept(&mut self, here: Seen) {
        self.chain = here;
        self.stray = None;
        self.unreadable = 0;
    }

    /// Whether the unreadable lines account for all the records before this one.
    fn is_behind_unreadable(&self, seq: u64) -> bool {
        let next = self.last().tip.next();
        next < seq && seq <= next.saturating_add(self.unreadable)
    }

    /// Describes a line that links to no line before it.
    fn blame(&mut self, here: Seen, claim: &Link<'_>) {
        let before = self.stray.filter(|stray| stray.tip.seq < claim.seq).unwrap_or(self.chain);
        let (line, seq) = (here.line, claim.seq);
        let next = before.tip.next();
        if claim.prev == before.tip.hash {
            let text = format!("line {line} was changed: it says record {seq}, expected {next}");
            self.fault(line, text);
            self.suspect = Suspect::Named(line);
            let tip = Tip { seq: next, hash: here.tip.hash };
            return self.accept(Seen { tip, ..here });
        }
        if seq == next {
            self.misfit(before.line, line);
        } else if seq > next {
            let missing = match seq - 1 {
                last if last == next => format!("record {next} is missing"),
                last => format!("records {next} to {last} are missing"),
            };
            self.fault(
                line,
                match before.line {
                    0 => format!("{missing} before line {line}"),
                    first => format!("{missing} between line {first} and line {line}"),
                },
            );
        } else if here.tip == before.tip {
            self.fault(line, format!("line {line} repeats line {} (record {seq})", before.line));
        } else if seq == before.tip.seq {
            let first = before.line;
            let text = format!(
                "line {line} holds record {seq} and so does line {first}: one was inserted"
            );
            self.fault(line, text);
        } else {
            let text = format!(
                "line {line} holds record {seq} but comes after record {}: it was moved, \
                 repeated or inserted",
                before.tip.seq
            );
            self.fault(line, text);
        }
        self.stray = Some(here);
        self.unreadable = 0;
    }

    /// Two lines follow each other by number, but the second has a different hash for the first.
    fn misfit(&mut self, first: usize, second: usize) {
        match self.suspect {
            Suspect::Named(line) if line == first => self.suspect = Suspect::Unknown,
            Suspect::OneOf { second: line, .. } if line == first => self.contradicted(line),
            _ if first == 0 => {
                let text = format!("line {second} was changed: it does not start a chain");
                self.fault(second, text);
                self.suspect = Suspect::Named(second);
            }
            _ => {
                let text = format!(
                    "line {first} or line {second} was changed: line {second} has a different \
                     hash for the line before it"
                );
                let fault = self.faults.len();
                self.fault(first, text);
                self.suspect = Suspect::OneOf { fault, first, second };
            }
        }
    }

    /// What follows `line` has a different hash for it.
    fn contradicted(&mut self, line: usize) {
        let text = format!("line {line} was changed: what follows has a different hash for it");
        match self.suspect {
            Suspect::Named(named) if named == line => {}
            Suspect::OneOf { fault, second, .. } if second == line => {
                self.rewrite(fault, line, text);
            }
            _ => self.fault(line, text),
        }
        self.suspect = Suspect::Unknown;
    }

    /// What follows `line` has its hash, so it is unchanged.
    fn confirm(&mut self, line: usize) {
        if let Suspect::OneOf { fault, first, second } = self.suspect
            && second == line
        {
            let text =
                format!("line {first} was changed: line {second} has a different hash for it");
            self.rewrite(fault, first, text);
        }
        self.suspect = Suspect::Unknown;
    }

    /// `line` continues the chain past a stray that followed by number.
    fn disown_stray(&mut self, line: usize) {
        if let Suspect::OneOf { fault, first, second } = self.suspect {
            let text = format!(
                "line {second} does not belong here: line {line} continues from line {first}"
            );
            self.rewrite(fault, second, text);
        }
        self.suspect = Suspect::Unknown;
    }

    fn fault(&mut self, line: usize, problem: String) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(Fault { line, problem });
        } else {
            self.unlisted += 1;
        }
    }

    fn rewrite(&mut self, fault: usize, line: usize, problem: String) {
        if let Some(fault) = self.faults.get_mut(fault) {
            *fault = Fault { line, problem };
        }
    }
}
