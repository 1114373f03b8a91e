//! `cargo xtask bench`: measured ratios and their limits.
//!
//! A figure is a ratio between programs that ran in turn on one machine in one run, never a time.
//! A new benchmark is one file and one row in [`Bench`].

mod hook;
mod measure;
mod peers;
mod proxy;
mod run;
mod shell;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::{Context, Failure};
use crate::workspace::{Workspace, succeed};

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// The whole hook process, against an empty program and the same hook in node and Python
    Hook(hook::Args),
    /// Downloads through the proxy, against none and against sandbox-runtime's
    Proxy(proxy::Args),
    /// The sandbox: its start-up against other sandboxes, and work inside against outside
    Run(run::Args),
    /// Parsing and judging shell text, over the corpus
    Shell(shell::Args),
}

pub(crate) fn run(workspace: &Workspace, bench: &Bench) -> Result<ExitCode, Failure> {
    match bench {
        Bench::Hook(args) => hook::run(workspace, args),
        Bench::Proxy(args) => proxy::run(workspace, args),
        Bench::Run(args) => run::run(workspace, args),
        Bench::Shell(args) => shell::run(workspace, args),
    }
}

/// Options of every benchmark.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// How often each program runs
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only measure: exit with 0 even if a limit is exceeded
    #[arg(long)]
    no_check: bool,
}

/// Builds Ringwall and copies it, as `cargo install` does. The file that the linker wrote is in
/// the page cache in small parts and starts more slowly than a copy of it.
fn build_ringwall(workspace: &Workspace) -> Result<PathBuf, Failure> {
    succeed(workspace.cargo().args(["build", "--release", "--locked", "--package=ringwall"]))?;
    let installed = workspace.target.join("bench-run/ringwall");
    std::fs::create_dir_all(workspace.target.join("bench-run"))
        .and_then(|()| std::fs::copy(workspace.target.join("release/ringwall"), &installed))
        .context(|| format!("cannot write `{}`", installed.display()))?;
    Ok(installed)
}
