//! Composition: parses the command line and hands over to one file per verb.
//!
//! Everything that decides lives in the crates below; here are the terminal, the exit statuses
//! and the order in which things happen.

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

use std::process::ExitCode;

use clap::Parser;
use config::setup;

pub use args::command;

/// Runs one command.
pub fn main() -> ExitCode {
    let verb = std::env::args_os().nth(1).unwrap_or_default();
    if verb == "hook" {
        return commands::hook::from_command_line();
    }
    let run = (verb == "run").then(args::run).flatten();
    let parsed = match run.map_or_else(args::Args::try_parse, Ok) {
        Ok(parsed) => parsed,
        Err(error) => return args::report(&error),
    };
    match commands::run(parsed) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
