//! The links between lines: the fields that link a line to the one before, and the tip of a chain.

use std::borrow::Cow;

use model::Digest;
use serde::Deserialize;

/// The end of a chain, to which the next line must link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tip {
    /// The number of the last record.
    pub(crate) seq: u64,
    /// The hash of its line.
    pub(crate) hash: Digest,
}

impl Tip {
    /// Before the first line.
    pub(crate) const START: Self = Self { seq: 0, hash: Digest::ZERO };

    /// The number of the record that comes next.
    pub(crate) fn next(self) -> u64 {
        self.seq.saturating_add(1)
    }

    /// Whether a line with this link comes next.
    pub(crate) fn is_followed_by(self, link: &Link<'_>) -> bool {
        link.seq == self.next() && link.prev == self.hash
    }
}

/// The fields that link a line to the one before.
#[derive(Debug, Deserialize)]
pub(crate) struct Link<'a> {
    /// The number of the record.
    pub(crate) seq: u64,
    /// The hash of the line before.
    pub(crate) prev: Digest,
    /// What the line remembers.
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
}

impl<'a> Link<'a> {
    /// Reads a line without its newline. The other fields can be anything, so that a log with entries
    /// from a later version can still be verified.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The tip of a chain that ends with this line.
    pub(crate) fn tip(&self, line: &[u8]) -> Tip {
        Tip { seq: self.seq, hash: Digest::of(line) }
    }

    /// Whether this line says that the head was lost before it.
    pub(crate) fn says_head_lost(&self) -> bool {
        self.kind == "head_lost"
    }
}
