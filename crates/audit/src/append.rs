//! Adding one record to the log.
//!
//! The order of the writes makes every crash repairable: first the line, by a single write at the
//! end of the log, then the head, by a single write in place.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use model::{Digest, Record};

use crate::chain::Tip;
use crate::directory::{Directory, HEAD, LOG, OpenError, Writing};
use crate::entry::{Entry, HeadLoss, Line};
use crate::head::{Head, HeadState};
use crate::record::redact_record;
use crate::resume::{Start, resume};

/// A record that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The number it got.
    pub seq: u64,
    /// What was wrong with the log, and what was done about it.
    pub notices: Vec<String>,
}

/// Why a record was not written.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The directory or one of its files cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The record has no JSON form.
    #[error("cannot encode the record: {0}")]
    Encode(#[from] serde_json::Error),
    /// Reading a file failed.
    #[error("cannot read `{}`: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        reason: io::Error,
    },
    /// Writing a file failed. The log is as it was, or the next append will repair it.
    #[error("cannot write `{}`: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        reason: io::Error,
    },
}

/// Adds one record to the log in `directory`.
pub(crate) fn append(directory: &Path, record: &Record) -> Result<Appended, AppendError> {
    let record = redact_record(record.clone());
    let read_error = |name: &str| {
        let path = directory.join(name);
        |reason| AppendError::Read { path, reason }
    };
    let write_error = |name: &str| {
        let path = directory.join(name);
        |reason| AppendError::Write { path, reason }
    };

    let locked = Directory::for_writing(directory)?;
    let (log, length) = locked.writable(LOG, Writing::Append)?;
    let (head_file, head_length) = locked.writable(HEAD, Writing::InPlace)?;
    let head = HeadState::read(&head_file).map_err(read_error(HEAD))?;
    let start = resume(&log, length, head, &record.time).map_err(read_error(LOG))?;

    if length == 0 && head == HeadState::Lost(HeadLoss::Missing) {
        // Before the first line, so that a crash can never leave a log without a head.
        Head::START.write(&head_file).map_err(write_error(HEAD))?;
    }
    let (bytes, tip) = encode(&start, record)?;
    let length = start.cut_to.unwrap_or(length);
    if start.cut_to.is_some() {
        // A writer that dies between this and the next write leaves a valid log without a mark of
        // the torn bytes. They were no record: no writer had reported them as written.
        log.set_len(length).map_err(write_error(LOG))?;
    }
    write_whole(&log, length, &bytes).map_err(write_error(LOG))?;

    let mut notices = start.notices;
    let head = Head { tip, length: length + bytes.len() as u64 };
    if let Err(reason) = replace_head(&head_file, head_length, head) {
        // The record is in the log, and the next append catches up.
        notices.push(format!("the head of the log could not be written: {reason}"));
    }
    Ok(Appended { seq: tip.seq, notices })
}

/// The bytes to add, and the tip of the chain after them.
fn encode(start: &Start, record: Record) -> Result<(Vec<u8>, Tip), serde_json::Error> {
    let mut bytes = Vec::with_capacity(1024);
    if start.ends_open {
        bytes.push(b'\n');
    }
    let mut tip = start.tip;
    for entry in start.mark.clone().into_iter().chain([Entry::Decision(record)]) {
        let line = Line { seq: tip.next(), prev: tip.hash, entry };
        let text = serde_json::to_vec(&line)?;
        tip = Tip { seq: line.seq, hash: Digest::of(&text) };
        bytes.extend(text);
        bytes.push(b'\n');
    }
    Ok((bytes, tip))
}

/// Writes all the bytes at the end of the log, or none of them.
fn write_whole(mut log: &File, length: u64, bytes: &[u8]) -> io::Result<()> {
    let reason = loop {
        match log.write(bytes) {
            Ok(written) if written == bytes.len() => return Ok(()),
            Ok(written) => {
                let text = format!("only {written} of {} bytes were written", bytes.len());
                break io::Error::new(io::ErrorKind::WriteZero, text);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break error,
        }
    };
    // If this fails too, the next append finds a torn line and repairs it.
    let _ = log.set_len(length);
    Err(reason)
}

/// Overwrites the head, whatever the file holds.
fn replace_head(file: &File, found_length: u64, head: Head) -> io::Result<()> {
    if found_length > Head::SIZE as u64 {
        file.set_len(Head::SIZE as u64)?;
    }
    head.write(file)
}
