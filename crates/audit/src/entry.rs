//! One line of the log.

use std::fmt;

use model::{Digest, Record};
use serde::{Deserialize, Serialize};

/// One line: its place in the chain, and its entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The number of the record, from one.
    pub seq: u64,
    /// The hash of the line before, or zeros.
    pub prev: Digest,
    /// The entry.
    #[serde(flatten)]
    pub entry: Entry,
}

/// A decision, or something that happened to the log itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A decision.
    Decision(Record),
    /// A writer died in the middle of a line, and the torn bytes were removed.
    Repaired {
        /// When the next writer repaired it.
        time: String,
        /// How many bytes were removed.
        bytes: u64,
        /// The hash of these bytes.
        sha256: Digest,
    },
    /// The head was lost, so the chain was continued from the last line that could be read.
    ///
    /// A crash cannot cause this. Records may have been cut off before this one, so verification
    /// reports it for as long as the log exists.
    HeadLost {
        /// When a writer noticed it.
        time: String,
        /// What was found instead of the head.
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

/// What was found instead of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadLoss {
    /// No file, or an empty one.
    Missing,
    /// Bytes that are not a head.
    Unreadable,
}

impl fmt::Display for HeadLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
        })
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
