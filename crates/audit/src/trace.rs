//! Following a chain line by line, and saying in words where it breaks.
//!
//! A line is vouched for by the one behind it, which carries its hash, and the last line by the
//! head. Of two lines that do not fit, the one that is vouched for is the one nobody changed.

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
    /// Where the line ends that the head names, if it came by.
    head_end: Option<u64>,
    faults: Vec<Fault>,
    unlisted: usize,
}

/// A line and what the next one should say of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Its number, from one; zero stands for the start of the log.
    pub(crate) line: usize,
    /// Where it ends in the file.
    pub(crate) end: u64,
    /// The tip of a chain that ends with it.
    pub(crate) tip: Tip,
}

impl Seen {
    const START: Self = Self { line: 0, end: 0, tip: Tip::START };
}

/// Whom the latest break may still be blamed on.
#[derive(Debug, Clone, Copy)]
enum Suspect {
    Nobody,
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
            suspect: Suspect::Nobody,
            head_end: None,
            faults: Vec::new(),
            unlisted: 0,
        }
    }

    /// The last line that could be read, or the start.
    pub(crate) fn last(&self) -> Seen {
        self.stray.unwrap_or(self.chain)
    }

    /// Takes a line that is no entry.
    pub(crate) fn unreadable(&mut self, line: usize, problem: String) {
        self.unreadable += 1;
        self.fault(line, problem);
    }

    /// Takes an entry, and what it claims about its place.
    pub(crate) fn entry(&mut self, here: Seen, claim: &Link<'_>) {
        let line = here.line;
        if matches!(self.head, HeadState::Known(head) if head.tip == here.tip) {
            self.head_end = Some(here.end);
        }
        if let Some(stray) = self.stray.filter(|stray| stray.tip.is_followed_by(claim)) {
            self.vouch_for(stray.line);
            self.accept(here);
        } else if self.chain.tip.is_followed_by(claim) {
            self.disown_stray(line);
            self.accept(here);
        } else if self.is_behind_unreadable(claim.seq) {
            self.suspect = Suspect::Nobody;
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
                    "the head is {}: nothing shows whether records after line {} were cut",
                    found.name(),
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
            self.vouch_for(line);
        }
        let end = if head.tip == Tip::START { Some(0) } else { self.head_end };
        if let Some(end) = end {
            // Lines that came or went have moved it too, but then they also broke the chain.
            if self.faults.is_empty() && end != head.length {
                let text = format!(
                    "the head says {} bytes, but record {} ends at {end}",
                    head.length, head.tip.seq
                );
                self.fault(line, text);
            }
        } else if seq == head.tip.seq {
            self.unvouched(line);
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

    /// Says what is wrong with a line that links to no line before it.
    fn blame(&mut self, here: Seen, claim: &Link<'_>) {
        let before = self.stray.filter(|stray| stray.tip.seq < claim.seq).unwrap_or(self.chain);
        let (line, seq) = (here.line, claim.seq);
        let next = before.tip.next();
        if claim.prev == before.tip.hash {
            let text =
                format!("line {line} was changed: it says record {seq} where {next} must follow");
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
                "line {line} holds record {seq} but stands behind record {}: it was moved, \
                 repeated or inserted",
                before.tip.seq
            );
            self.fault(line, text);
        }
        self.stray = Some(here);
        self.unreadable = 0;
    }

    /// Two lines follow each other by number, but the second carries another hash.
    fn misfit(&mut self, first: usize, second: usize) {
        match self.suspect {
            Suspect::Named(line) if line == first => self.suspect = Suspect::Nobody,
            Suspect::OneOf { second: line, .. } if line == first => self.unvouched(line),
            _ if first == 0 => {
                let text = format!("line {second} was changed: it does not begin a chain");
                self.fault(second, text);
                self.suspect = Suspect::Named(second);
            }
            _ => {
                let text = format!(
                    "line {first} or line {second} was changed: line {second} carries another \
                     hash of the line before it"
                );
                let fault = self.faults.len();
                self.fault(first, text);
                self.suspect = Suspect::OneOf { fault, first, second };
            }
        }
    }

    /// What comes behind `line` carries another hash of it.
    fn unvouched(&mut self, line: usize) {
        let text = format!("line {line} was changed: what follows carries another hash of it");
        match self.suspect {
            Suspect::Named(named) if named == line => {}
            Suspect::OneOf { fault, second, .. } if second == line => {
                self.rewrite(fault, line, text);
            }
            _ => self.fault(line, text),
        }
        self.suspect = Suspect::Nobody;
    }

    /// What comes behind `line` carries its hash, so nobody changed it.
    fn vouch_for(&mut self, line: usize) {
        if let Suspect::OneOf { fault, first, second } = self.suspect
            && second == line
        {
            let text =
                format!("line {first} was changed: line {second} carries another hash of it");
            self.rewrite(fault, first, text);
        }
        self.suspect = Suspect::Nobody;
    }

    /// `line` continues the chain past a stray that followed by number.
    fn disown_stray(&mut self, line: usize) {
        if let Suspect::OneOf { fault, first, second } = self.suspect {
            let text = format!(
                "line {second} does not belong here: line {line} continues from line {first}"
            );
            self.rewrite(fault, second, text);
        }
        self.suspect = Suspect::Nobody;
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
