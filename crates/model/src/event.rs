//! What an agent's hook reports, in one shape for all agents.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// One hook call.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The agent's session, for the audit.
    pub session: String,
    /// The agent's current directory. Relative paths start here.
    pub cwd: Option<PathBuf>,
    /// Whether a person can be asked.
    pub mode: Mode,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    /// An event that could not be read.
    pub fn unknown() -> Self {
        let kind = EventKind::Other("unreadable call".into());
        Self { session: String::new(), cwd: None, mode: Mode::NeverAsks, kind }
    }
}

/// The kinds of hook call that Ringwall answers.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// A tool is about to run.
    BeforeTool(ToolCall),
    /// A session or a subagent starts, and can be given the rules. Holds the event's own name.
    Started(String),
    /// A settings file changed while the agent runs; `None` where the agent names no file.
    SettingsChanged(Option<PathBuf>),
    /// Anything else: nothing to decide.
    Other(String),
}

/// A tool and its input, as the agent sent them.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool's name on the wire.
    pub tool: String,
    /// The whole input. A rewrite has to echo all of it.
    pub input: Map<String, Value>,
}

/// Whether a person can be asked in the agent's current permission mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The agent shows a prompt, or denies the call where there is no terminal.
    Asks,
    /// The agent runs in a mode in which it never asks.
    NeverAsks,
}
