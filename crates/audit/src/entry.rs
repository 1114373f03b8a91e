//! What one line of the log holds.

use model::{Digest, Record};
use serde::{Deserialize, Serialize};

/// One line: its place in the chain, and what it remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The number of the record, from one.
    pub seq: u64,
    /// The hash of the line before, or zeros.
    pub prev: Digest,
    /// What is remembered.
    #[serde(flatten)]
    pub entry: Entry,
}

/// What is remembered: a decision, or something that happened to the log itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A decision.
    Decision(Record),
    /// A writer died within a line, and the torn bytes were cut off.
    Repaired {
        /// When the next writer came.
        time: String,
        /// How many bytes were cut off.
        bytes: u64,
        /// The hash of these bytes.
        sha256: Digest,
    },
    /// The head was gone, so the chain was continued from the last line that was there.
    ///
    /// No crash does this. Records may have been cut off before this one, which is why
    /// verification reports it for as long as the log exists.
    HeadLost {
        /// When a writer found out.
        time: String,
        /// What was found in place of the head.
        found: HeadLoss,
    },
}

impl Entry {
    /// When this was written, as RFC 3339 in UTC.
    pub fn time(&self) -> &str {
        match self {
            Self::Decision(record) => &record.time,
            Self::Repaired { time, .. } | Self::HeadLost { time, .. } => time,
        }
    }
}

/// What was found in place of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadLoss {
    /// No file, or an empty one.
    Missing,
    /// Bytes that are no head.
    Unreadable,
}

impl HeadLoss {
    /// The word used in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_flat_object() {
        let line = Line {
            seq: 7,
            prev: Digest::ZERO,
            entry: Entry::Repaired { time: "t".into(), bytes: 3, sha256: Digest::ZERO },
        };
        let text = serde_json::to_string(&line).unwrap();
        let zeros = "0".repeat(64);
        assert_eq!(
            text,
            format!(
                r#"{{"seq":7,"prev":"{zeros}","kind":"repaired","time":"t","bytes":3,"sha256":"{zeros}"}}"#
            )
        );
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }
}
