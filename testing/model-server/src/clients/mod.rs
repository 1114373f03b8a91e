//! The pinned real clients: install once, run headless.
//!
//! Owns where a client comes from and what its process sees. A client is one file here.

mod claude;
mod install;

pub use claude::{CLAUDE_VERSION, ClaudeRun, claude};
