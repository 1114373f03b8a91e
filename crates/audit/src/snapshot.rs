//! A consistent view of the log while other processes append to it.

use std::fs::File;
use std::io::{self, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use crate::directory::{Directory, HEAD, LOG, OpenError};
use crate::entry::HeadLoss;
use crate::head::HeadState;
use crate::lines::{Lines, RawLine};

/// Why the log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The directory or one of its files cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Reading a file failed.
    #[error("cannot read `{}`: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        reason: io::Error,
    },
}

/// The log and its head at one moment.
pub(crate) struct Snapshot {
    /// The head.
    pub(crate) head: HeadState,
    /// The length of the log, in bytes.
    pub(crate) length: u64,
    path: PathBuf,
    lines: Option<Lines<Take<BufReader<File>>>>,
    /// Held only if the next writer would cut off the end of what is to be read.
    lock: Option<Directory>,
}

impl Snapshot {
    /// Opens the log in `directory`. A missing file is an empty one.
    pub(crate) fn of(directory: &Path) -> Result<Self, ReadError> {
        let path = directory.join(LOG);
        let mut snapshot = Self {
            head: HeadState::Lost(HeadLoss::Missing),
            length: 0,
            path,
            lines: None,
            lock: None,
        };
        let Some(lock) = Directory::for_reading(directory)? else {
            return Ok(snapshot);
        };
        if let Some((file, _)) = lock.readable(HEAD)? {
            let path = directory.join(HEAD);
            snapshot.head =
                HeadState::read(&file).map_err(|reason| ReadError::Read { path, reason })?;
        }
        if let Some((file, length)) = lock.readable(LOG)? {
            snapshot.length = length;
            snapshot.lines = Some(Lines::new(BufReader::new(file).take(length)));
        }
        // Writers only add behind `length`, so the lock can go before the long reading starts,
        // unless a crash left an end that the next writer repairs.
        if matches!(snapshot.head, HeadState::Known(head) if head.length < snapshot.length) {
            snapshot.lock = Some(lock);
        }
        Ok(snapshot)
    }

    /// The next line, or nothing at the end.
    pub(crate) fn next_line(&mut self) -> Result<Option<RawLine<'_>>, ReadError> {
        match &mut self.lines {
            None => Ok(None),
            Some(lines) => {
                lines.next().map_err(|reason| ReadError::Read { path: self.path.clone(), reason })
            }
        }
    }
}
