//! What the agent sent, kept for the test to look at.
//!
//! Headers and query strings are never kept: that is where agents put their credentials.

use serde_json::Value;

use crate::api::{History, ToolResult};
use crate::script::Script;

/// One request that reached the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The path, without its query.
    pub path: String,
    /// The body. One that is no JSON is kept as a string; an absent one is null.
    pub body: Value,
}

/// Every request so far, oldest first, and the connections that were refused.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) requests: Vec<Request>,
    pub(crate) histories: Vec<History>,
    pub(crate) refused: Vec<String>,
    /// How many requests had a body that could not be read.
    pub(crate) unreadable: usize,
}

impl Log {
    /// The tool results in the longest history of the main conversation.
    pub(crate) fn main_results(&self, script: &Script) -> Vec<ToolResult> {
        self.longest(|history| script.is_main(history))
    }

    /// The tool results in the longest history that opens with a message containing `opening`.
    pub(crate) fn results_of(&self, opening: &str) -> Vec<ToolResult> {
        self.longest(|history| history.opening.contains(opening))
    }

    /// Whether `text` occurs in a body, in any key or string.
    pub(crate) fn saw(&self, text: &str) -> bool {
        assert_eq!(self.unreadable, 0, "a request body could not be read, so nothing is proved");
        self.requests.iter().any(|request| mentions(&request.body, text))
    }

    fn longest(&self, wanted: impl Fn(&History) -> bool) -> Vec<ToolResult> {
        let histories = self.histories.iter().filter(|it| it.offers_tools && wanted(it));
        histories.max_by_key(|it| it.turns).map(|it| it.results.clone()).unwrap_or_default()
    }
}

/// Looks at decoded strings, so that JSON escapes cannot hide the text.
fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| key.contains(text) || mentions(value, text))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().contains(text),
    }
}
