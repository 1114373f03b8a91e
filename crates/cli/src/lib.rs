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
mod setup;
mod start;
mod terminal;
#[doc(hidden)]
pub mod testing;
mod wall;

use std::process::ExitCode;

use clap::Parser;

pub use args::command;

/// Runs one command.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "hook") {
        return commands::hook::from_command_line();
    }
    let parsed = match args::Args::try_parse() {
        Ok(parsed) => parsed,
        Err(error) => return args::report(&error),
    };
    match commands::run(parsed) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
