//! The `ringwall` program: parses the command line and calls one file per verb.
//!
//! Decisions are made in the crates below. This crate owns the terminal, the exit statuses and the
//! order in which things happen.

mod args;
mod child;
mod client;
mod commands;
mod failure;
mod files;
mod installs;
mod pipeline;
mod start;
mod terminal;
#[doc(hidden)]
pub mod testing;
mod usage;

use std::process::ExitCode;

use config::setup;

pub use args::command;

/// Runs one command.
pub fn main() -> ExitCode {
    // Agents wait for the hook, so it skips the parser where it can.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "hook") {
        return commands::hook::from_command_line();
    }
    let parsed = match usage::parse() {
        Ok(parsed) => parsed,
        Err(error) => return usage::report(&error),
    };
    match commands::run(parsed) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
