//! What the model says, written down before the agent starts.
//!
//! Owns the choice of the next step. The choice depends on the request alone, never on what was
//! asked before, so retries, side calls and parallel subagents cannot use up each other's steps.

use serde_json::Value;

use crate::api::History;

/// The model's side of a session: one step per assistant turn, then a closing text.
pub struct Script {
    steps: Vec<Step>,
    conversations: Vec<Conversation>,
    closing: String,
}

/// One assistant turn.
pub struct Step(Kind);

/// One tool call that the model asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool's name on the wire.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
}

/// A step after everything in it is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Text(String),
    Calls(Vec<Call>),
}

enum Kind {
    Fixed(Reply),
    FromResult(Box<dyn Fn(&str) -> Step + Send + Sync>),
}

/// Steps of their own for conversations that open with a given text, such as a subagent's.
struct Conversation {
    opening: String,
    steps: Vec<Step>,
}

impl Script {
    /// A script for the main conversation. It ends with the text `done`.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            conversations: Vec::new(),
            closing: "done".into(),
        }
    }

    /// Gives every conversation whose first user message contains `opening` its own steps.
    /// The first that fits is taken.
    #[must_use]
    pub fn conversation(
        mut self,
        opening: impl Into<String>,
        steps: impl IntoIterator<Item = Step>,
    ) -> Self {
        let steps = steps.into_iter().collect();
        self.conversations.push(Conversation { opening: opening.into(), steps });
        self
    }

    /// The text for side calls, and for every turn after the last step.
    #[must_use]
    pub fn closing(mut self, text: impl Into<String>) -> Self {
        self.closing = text.into();
        self
    }

    /// Whether this history belongs to the main conversation.
    pub(crate) fn is_main(&self, history: &History) -> bool {
        self.conversation_of(history).is_none()
    }

    /// The reply to a request with this history.
    ///
    /// A request that offers no tools is a side call of the agent (a title, a summary); its history
    /// says nothing about where the session is, so it gets the closing text.
    pub(crate) fn reply(&self, history: &History) -> Reply {
        let steps = self.conversation_of(history).map_or(&self.steps, |it| &it.steps);
        match steps.get(history.turns) {
            Some(step) if history.offers_tools => step.resolve(history),
            _ => Reply::Text(self.closing.clone()),
        }
    }

    fn conversation_of(&self, history: &History) -> Option<&Conversation> {
        self.conversations.iter().find(|it| history.opening.contains(&it.opening))
    }
}

impl Step {
    /// The model asks for one tool call.
    pub fn call(tool: impl Into<String>, input: Value) -> Self {
        Self::calls([Call::new(tool, input)])
    }

    /// The model asks for several tool calls in one turn.
    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Self {
        Self(Kind::Fixed(Reply::Calls(calls.into_iter().collect())))
    }

    /// The model says something and asks for nothing, which ends the agent's turn.
    pub fn text(text: impl Into<String>) -> Self {
        Self(Kind::Fixed(Reply::Text(text.into())))
    }

    /// The step depends on the text of the newest tool result, such as a path named in it.
    pub fn from_result(step: impl Fn(&str) -> Self + Send + Sync + 'static) -> Self {
        Self(Kind::FromResult(Box::new(step)))
    }

    fn resolve(&self, history: &History) -> Reply {
        match &self.0 {
            Kind::Fixed(reply) => reply.clone(),
            Kind::FromResult(step) => {
                step(history.results.last().map_or("", |result| &result.text)).resolve(history)
            }
        }
    }
}

impl Call {
    /// A call of `tool` with `input`.
    pub fn new(tool: impl Into<String>, input: Value) -> Self {
        Self { tool: tool.into(), input }
    }
}
