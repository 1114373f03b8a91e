//! Commands inside `find`.

use crate::command::{Value, Word};

/// A command inside `find`.
pub(super) struct Found {
    pub(super) words: Vec<Word>,
    pub(super) start: Value,
    /// Whether it runs in the directory of each match.
    pub(super) in_place: bool,
}

/// The commands that `find` runs on what it finds.
pub(super) fn find_commands(arguments: &[Word]) -> Vec<Found> {
    let start = arguments
        .iter()
        .find(|word| !word.value.known().is_some_and(|text| text.starts_with(['-', '(', '!'])))
        .map_or_else(|| Value::text("."), |word| word.value.clone());
    let mut found = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(text @ ("-exec" | "-execdir" | "-ok" | "-okdir")) = word.value.known() else {
            continue;
        };
        let in_place = text.ends_with("dir");
        let ends = |word: &&Word| matches!(word.value.known(), Some(";" | "+"));
        let words: Vec<_> = rest
            .by_ref()
            .take_while(|word| !ends(word))
            .map(|word| match word.value.known() {
                Some(text) if text.contains("{}") => Word {
                    value: match &start {
                        Value::Known { text, tilde } if !in_place => {
                            Value::Pattern { prefix: format!("{text}/"), tilde: *tilde }
                        }
                        _ => Value::Unknown { prefix: String::new(), why: "find fills it in" },
                    },
                    ..word.clone()
                },
                _ => word.clone(),
            })
            .collect();
        if !words.is_empty() {
            found.push(Found { words, start: start.clone(), in_place });
        }
    }
    found
}
