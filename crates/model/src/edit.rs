//! Edits of a text by byte span: everything outside the spans stays as it is.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// One replacement. An empty span inserts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Edit {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The new text.
    pub text: String,
}

impl Edit {
    /// Replaces a span.
    pub fn replace(span: Range<usize>, text: impl Into<String>) -> Self {
        Self { start: span.start, end: span.end, text: text.into() }
    }

    /// Inserts at a place.
    pub fn insert(at: usize, text: impl Into<String>) -> Self {
        Self { start: at, end: at, text: text.into() }
    }

    /// The text with all edits made, or `None` where two of them disagree about the same bytes.
    pub fn apply(text: &str, edits: &[Self]) -> Option<String> {
        let mut edits = edits.to_vec();
        edits.sort();
        edits.dedup();
        let mut edited = String::with_capacity(text.len() + 64);
        let mut at = 0;
        for edit in &edits {
            edited.push_str(text.get(at..edit.start)?);
            edited.push_str(&edit.text);
            at = edit.end;
        }
        edited.push_str(text.get(at..)?);
        Some(edited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_outside_the_spans_stay() {
        let edits = [Edit::insert(1, "+"), Edit::replace(2..3, "C"), Edit::insert(1, "+")];
        assert_eq!(Edit::apply("abcd", &edits).as_deref(), Some("a+bCd"));
        let clash = [Edit::replace(0..2, "x"), Edit::replace(1..3, "y")];
        assert_eq!(Edit::apply("abcd", &clash), None);
        assert_eq!(Edit::apply("ü", &[Edit::insert(1, "x")]), None);
    }
}
