//! A scripted model server, and the pinned real clients that tests drive against it.
//!
//! A test says what the model does, step by step, and runs a real coding agent against
//! [`ModelServer`]. What the agent sends back is kept, so the test can prove what reached the model
//! and what did not. The server listens on loopback only and opens no connection of its own; given
//! to the agent as its proxy as well, it refuses and names every other connection.
//!
//! Owns the model's side of the conversation and the start of a client. Does not know Ringwall: a
//! test brings the hooks and the settings.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test crate: a failed step should stop the test"
)]

mod anthropic;
mod api;
pub mod clients;
mod log;
mod script;
mod server;

pub use api::ToolResult;
pub use log::Request;
pub use script::{Call, Script, Step};
pub use server::ModelServer;
