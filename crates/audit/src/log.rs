//! The log as its users see it.

use std::path::PathBuf;

use model::Record;

use crate::append::{self, AppendError, Appended};
use crate::directory::LOG;
use crate::query::{self, Filter, Found};
use crate::snapshot::ReadError;
use crate::verify::{self, Report};

/// The audit log in one directory.
///
/// This type holds no open file. Every operation opens, locks, works and unlocks, so that any number
/// of processes can share the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    directory: PathBuf,
}

impl Log {
    /// The log in `directory`. Touches nothing yet.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The file that holds the records, one JSON object per line.
    pub fn path(&self) -> PathBuf {
        self.directory.join(LOG)
    }

    /// Adds one record at the end of the chain, without its secrets (see
    /// [`redact_record`](crate::redact_record)).
    ///
    /// Creates the directory and its files if they are missing.
    pub fn append(&self, record: &Record) -> Result<Appended, AppendError> {
        append::append(&self.directory, record)
    }

    /// Checks every line against the chain, and the chain against the head.
    ///
    /// `expected_head` is a [`Report::head`] that was stored elsewhere: its record must still be
    /// in the log. A missing directory is an empty log.
    pub fn verify(&self, expected_head: Option<&str>) -> Result<Report, ReadError> {
        verify::verify(&self.directory, expected_head)
    }

    /// The entries that match a filter, oldest first.
    pub fn query(&self, filter: &Filter) -> Result<Found, ReadError> {
        query::query(&self.directory, filter)
    }
}
