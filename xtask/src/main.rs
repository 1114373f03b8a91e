//! `cargo xtask`: the full test command, the generators and the benchmarks.
//!
//! One file per verb. Nothing here is part of the product.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program talks to a terminal")]

mod bench;
mod coverage;
mod failure;
mod generate;
mod packages;
mod soak;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::workspace::Workspace;

/// Ringwall's commands for developers
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Runs every check that a change must pass; the last line counts them
    Test(test::Args),
    /// Writes the schema, the command reference, the manual pages and the completions
    Gen(generate::Args),
    /// Measures which lines the tests execute, and checks the crates that enforce something
    Coverage(coverage::Args),
    /// Runs the test suites of real packages outside and inside, and compares the results
    Packages(packages::Args),
    /// Runs a hostile program in the sandbox again and again, with random acts
    Soak(soak::Args),
    /// Measures speed against other programs in one run, and checks the results against their limits
    Bench {
        #[command(subcommand)]
        bench: bench::Bench,
    },
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<ExitCode, Failure> {
    let workspace = Workspace::find()?;
    match args.verb {
        Verb::Test(args) => Ok(test::run(&workspace, &args)),
        Verb::Coverage(args) => coverage::run(&workspace, &args),
        Verb::Gen(args) => generate::run(&workspace, &args),
        Verb::Packages(args) => packages::run(&workspace, &args),
        Verb::Soak(args) => soak::run(&workspace, &args),
        Verb::Bench { bench } => bench::run(&workspace, &bench),
    }
}
