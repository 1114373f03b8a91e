//! Where the next line goes: the tip of the chain, also after a crash or a manipulation.
//!
//! A crash can leave bytes after the head. It cannot leave fewer bytes than the head says, nor a log
//! without a head, because the first writer writes a head before its line. So only bytes after a
//! valid head are repaired. Everything else is left in place, and verification reports it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use model::Digest;
use serde::de::IgnoredAny;

use crate::chain::{Link, Tip};
use crate::entry::{Entry, HeadLoss};
use crate::head::{Head, HeadState};
use crate::lines::{LONGEST_LINE, Lines, Text};

/// How many bytes after the head are read. A crash leaves a line or two. Another process can leave any
/// amount, and reading that would take longer than a caller can wait for a decision.
const MOST_AFTER_HEAD: u64 = 4 << 20;

/// How a writer continues an existing log.
#[derive(Debug)]
pub(crate) struct Start {
    /// What the next line links to.
    pub(crate) tip: Tip,
    /// The length to cut the log to, where its end is torn.
    pub(crate) cut_to: Option<u64>,
    /// Whether the last line lacks its newline and stays.
    pub(crate) ends_open: bool,
    /// An entry to write before anything else.
    pub(crate) mark: Option<Entry>,
    /// What to report to the caller.
    pub(crate) notices: Vec<String>,
}

impl Start {
    fn at(tip: Tip) -> Self {
        Self { tip, cut_to: None, ends_open: false, mark: None, notices: Vec::new() }
    }
}

/// Compares the log with its head. `time` is for the entry that a repair leaves.
pub(crate) fn resume(log: &File, length: u64, head: HeadState, time: &str) -> io::Result<Start> {
    match head {
        HeadState::Known(head) if head.length == length => Ok(Start::at(head.tip)),
        HeadState::Known(head) if length.saturating_sub(head.length) > MOST_AFTER_HEAD => {
            far_after_head(log, length, head)
        }
        HeadState::Known(head) if head.length < length => after_head(log, length, head, time),
        HeadState::Known(head) => cut_before_head(log, length, head),
        HeadState::Lost(HeadLoss::Missing) if length == 0 => Ok(Start::at(Tip::START)),
        HeadState::Lost(found) => without_head(log, length, found, time),
    }
}

/// Accepts the lines after the head that continue the chain, and finds a torn end.
fn after_head(log: &File, length: u64, head: Head, time: &str) -> io::Result<Start> {
    let mut start = Start::at(head.tip);
    let mut foreign = usize::from(head.length > 0 && ends_open(log, head.length)?);
    let mut torn = None;
    let mut from = log;
    from.seek(SeekFrom::Start(head.length))?;
    let mut lines = Lines::new(BufReader::new(from.take(length - head.length)));
    while let Some(line) = lines.next()? {
        // Only the very last bytes can be torn.
        foreign += usize::from(torn.take().is_some());
        let at = head.length + line.start;
        match line.text {
            Text::Whole(text) => match Link::parse(text) {
                Some(link) if start.tip.is_followed_by(&link) => start.tip = link.tip(text),
                None if serde_json::from_slice::<IgnoredAny>(text).is_err() => {
                    torn = Some((at, Digest::of(&[text, b"\n"].concat())));
                }
                _ => foreign += 1,
            },
            Text::Torn(text) => torn = Some((at, Digest::of(text))),
            Text::TooLong => foreign += 1,
        }
    }
    match torn {
        Some((at, sha256)) if foreign == 0 => {
            let bytes = length - at;
            start.cut_to = Some(at);
            start.mark = Some(Entry::Repaired { time: time.into(), bytes, sha256 });
            start.notices.push(format!(
                "a writer died in the middle of a record: its {bytes} bytes were removed from the log"
            ));
        }
        _ => foreign += usize::from(torn.is_some()),
    }
    if foreign > 0 {
        start.ends_open = ends_open(log, length)?;
        start.notices.push(format!(
            "lines at the end of the log do not continue the chain ({foreign}); they were left in place"
        ));
    }
    Ok(start)
}

/// Continues from the head without reading what follows: a crash cannot leave that much.
fn far_after_head(log: &File, length: u64, head: Head) -> io::Result<Start> {
    Ok(Start {
        ends_open: ends_open(log, length)?,
        notices: vec![format!(
            "the log has {} bytes after its head (record {}), more than a crash leaves; they \
             were left in place",
            length - head.length,
            head.tip.seq
        )],
        ..Start::at(head.tip)
    })
}

/// Continues from the head, so that verification finds the gap.
fn cut_before_head(log: &File, length: u64, head: Head) -> io::Result<Start> {
    Ok(Start {
        ends_open: ends_open(log, length)?,
        notices: vec![format!(
            "the log was cut: it has {length} bytes, but its head says {} (record {})",
            head.length, head.tip.seq
        )],
        ..Start::at(head.tip)
    })
}

/// Continues from the last line that can be read, and records that the head was lost.
fn without_head(log: &File, length: u64, found: HeadLoss, time: &str) -> io::Result<Start> {
    Ok(Start {
        ends_open: ends_open(log, length)?,
        mark: Some(Entry::HeadLost { time: time.into(), found }),
        notices: vec![format!("the head of the log was {found}: records may have been cut off")],
        ..Start::at(last_readable(log, length)?)
    })
}

/// The last line that can be read. Reads no further back than two lines can reach.
fn last_readable(log: &File, length: u64) -> io::Result<Tip> {
    let from = length.saturating_sub(2 * LONGEST_LINE as u64);
    let mut end = Vec::new();
    let mut source = log;
    source.seek(SeekFrom::Start(from))?;
    source.take(length - from).read_to_end(&mut end)?;
    let readable = end
        .rsplit(|byte| *byte == b'\n')
        .skip(1) // What follows the last newline is empty, or torn.
        .find_map(|line| Some(Link::parse(line)?.tip(line)));
    Ok(readable.unwrap_or(Tip::START))
}

/// Whether the byte before `end` is not a newline.
fn ends_open(log: &File, end: u64) -> io::Result<bool> {
    let Some(last) = end.checked_sub(1) else {
        return Ok(false);
    };
    let mut byte = [0];
    log.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}
