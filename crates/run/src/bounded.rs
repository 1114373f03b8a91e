//! [`Bounded`]: a set with an end, for what a run can fill at will.

use std::collections::BTreeSet;

/// How many entries one set keeps, and how many bytes of text.
const MOST_ENTRIES: usize = 1000;
const MOST_BYTES: usize = 256 << 10;

/// A set that keeps its first entries and counts the rest.
#[derive(Debug)]
pub(crate) struct Bounded<T> {
    entries: BTreeSet<T>,
    bytes: usize,
    left_out: u64,
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self { entries: BTreeSet::new(), bytes: 0, left_out: 0 }
    }
}

impl<T: Ord> Bounded<T> {
    /// Adds an entry of this many bytes, if there is room.
    pub(crate) fn insert(&mut self, entry: T, bytes: usize) {
        let room = self.entries.len() < MOST_ENTRIES && self.bytes + bytes <= MOST_BYTES;
        if self.entries.contains(&entry) {
            return;
        }
        if room {
            self.entries.insert(entry);
            self.bytes += bytes;
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    pub(crate) fn entries(&self) -> &BTreeSet<T> {
        &self.entries
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }
}
