//! The file `head`: where the chain ends, in a fixed number of bytes.
//!
//! The file is overwritten in place by a single small write, so a reader under the lock finds the
//! old head or the new one. The check at its end distinguishes a head from other bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use model::Digest;

use crate::chain::Tip;
use crate::entry::HeadLoss;

/// Where the chain ended when the last writer finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last record.
    pub(crate) tip: Tip,
    /// The length of the log, in bytes.
    pub(crate) length: u64,
}

/// What the file `head` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadState {
    /// A head.
    Known(Head),
    /// No head.
    Lost(HeadLoss),
}

impl Head {
    /// Two numbers of 20 digits, a hash, 16 digits of check, and the separators.
    pub(crate) const SIZE: usize = 20 + 1 + 64 + 1 + 20 + 1 + 16 + 1;

    /// The head of an empty log.
    pub(crate) const START: Self = Self { tip: Tip::START, length: 0 };

    /// Overwrites the file with this head.
    pub(crate) fn write(&self, file: &File) -> io::Result<()> {
        file.write_all_at(self.encode().as_bytes(), 0)
    }

    fn encode(&self) -> String {
        let text = format!("{:020} {} {:020}", self.tip.seq, self.tip.hash, self.length);
        let check = check(&text);
        format!("{text} {check}\n")
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let (text, check_found) = text.strip_suffix('\n')?.rsplit_once(' ')?;
        let mut words = text.split(' ');
        let seq = words.next()?.parse().ok()?;
        let hash = words.next()?.parse().ok()?;
        let length = words.next()?.parse().ok()?;
        let head = Self { tip: Tip { seq, hash }, length };
        // Encoding it again excludes a second spelling of the same head.
        (check(text) == check_found && head.encode().as_bytes() == bytes).then_some(head)
    }
}

impl HeadState {
    /// Reads the file.
    pub(crate) fn read(file: &File) -> io::Result<Self> {
        // One byte more than a head has, to detect that something follows.
        let mut bytes = [0; Head::SIZE + 1];
        let length = file.read_at(&mut bytes, 0)?;
        let bytes = bytes.get(..length).unwrap_or_default();
        Ok(match Head::decode(bytes) {
            Some(head) => Self::Known(head),
            None if bytes.is_empty() => Self::Lost(HeadLoss::Missing),
            None => Self::Lost(HeadLoss::Unreadable),
        })
    }
}

fn check(text: &str) -> String {
    let mut check = Digest::of(text.as_bytes()).to_string();
    check.truncate(16);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head { tip: Tip { seq: 12, hash: Digest::of(b"line") }, length: 4096 }
    }

    #[test]
    fn a_head_reads_back_and_always_has_the_same_size() {
        let largest = Head { tip: Tip { seq: u64::MAX, hash: Digest::ZERO }, length: u64::MAX };
        for head in [Head::START, head(), largest] {
            let text = head.encode();
            assert_eq!(text.len(), Head::SIZE);
            assert_eq!(Head::decode(text.as_bytes()), Some(head));
        }
    }

    #[test]
    fn every_changed_byte_makes_it_unreadable() {
        let text = head().encode();
        for at in 0..text.len() {
            for flip in [1, 0x20, 0x80] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= flip;
                assert_eq!(Head::decode(&bytes), None, "byte {at}");
            }
        }
    }

    #[test]
    fn a_torn_or_longer_head_is_unreadable() {
        let text = head().encode();
        for length in 0..text.len() {
            assert_eq!(Head::decode(&text.as_bytes()[..length]), None);
        }
        assert_eq!(Head::decode(format!("{text}\n").as_bytes()), None);
    }
}
