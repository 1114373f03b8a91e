//! The seam between the script and the wire formats of the model vendors.
//!
//! Owns what every API has in common: a history goes in, a reply comes out. An API is one file with
//! one [`Api`] value, and one row in [`APIS`].

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::anthropic;
use crate::script::Reply;

/// Every API the server speaks.
pub(crate) const APIS: &[Api] = &[anthropic::API];

/// One vendor's wire format.
pub(crate) struct Api {
    /// What a `POST` to a path asks for; `None` where the path is not of this API.
    pub(crate) route: fn(path: &str) -> Option<Ask>,
    /// Reads the conversation out of a request. Some APIs keep part of the request in the path.
    pub(crate) decode: fn(path: &str, body: &Value) -> History,
    /// The reply as one JSON document.
    pub(crate) encode: fn(&Reply, &History) -> Value,
    /// The reply as the text of an event stream.
    pub(crate) stream: fn(&Reply, &History) -> String,
    /// The answer to a request to count tokens.
    pub(crate) token_count: fn() -> Value,
}

/// What a request wants from the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Reply,
    TokenCount,
}

/// What a request says about its conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct History {
    /// The assistant turns so far, which is the index of the next step.
    pub(crate) turns: usize,
    /// The text of the first user message.
    pub(crate) opening: String,
    /// Every tool result, oldest first.
    pub(crate) results: Vec<ToolResult>,
    /// Whether the model may call tools.
    pub(crate) offers_tools: bool,
    /// Whether the agent wants an event stream.
    pub(crate) streaming: bool,
    /// The model's name, which the reply has to repeat.
    pub(crate) model: String,
}

/// What the agent told the model about a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Whether the agent marked the call as failed or refused.
    pub is_error: bool,
    /// The result as text.
    pub text: String,
}

/// A fresh id. Claude Code merges assistant messages that share one, so none is ever used twice.
pub(crate) fn fresh_id(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{prefix}_{:012}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The API that a path belongs to, and what it asks for.
pub(crate) fn route(path: &str) -> Option<(&'static Api, Ask)> {
    APIS.iter().find_map(|api| (api.route)(path).map(|ask| (api, ask)))
}
