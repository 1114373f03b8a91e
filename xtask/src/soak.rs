//! `cargo xtask soak`: the test of the same name, for as long as one likes and from a seed of one's own.

use std::process::ExitCode;

use crate::failure::Failure;
use crate::workspace::{Workspace, status};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many runs, as each user
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// The seed of the first run; the next one has the next number. Without it, a random one
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode, Failure> {
    let mut command = workspace.cargo();
    let words = ["test", "--locked", "--package=ringwall", "--features=ringwall/test-hooks"];
    command.args(words).args(["--test=sandbox", "--", "--nocapture", "soak::"]);
    command.env("RINGWALL_SOAK_RUNS", args.runs.to_string());
    if let Some(seed) = args.seed {
        command.env("RINGWALL_SOAK_SEED", seed.to_string());
    }
    Ok(if status(&mut command)?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
