//! `cargo xtask bench run`: what the sandbox costs, to start and to work in.
//!
//! Every sandbox must show that it confines before it is measured, and the audit log must be intact
//! afterwards.

mod inside;
mod scene;
mod startup;
mod works;

use std::process::ExitCode;

use self::scene::Scene;
use super::measure::{print_figures, skipped};
use super::peers::Peers;
use super::{Common, build_ringwall};
use crate::failure::Failure;
use crate::workspace::{Workspace, output};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Which part to measure [default: both]
    #[arg(long, value_enum)]
    only: Option<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// From the start of `run -- true` to its end
    Startup,
    /// CPU time of ordinary programs, inside and outside
    Inside,
}

pub(super) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode, Failure> {
    let ringwall = build_ringwall(workspace)?;
    let place = workspace.target.join("bench-run");
    let peers = Peers::fetch(&workspace.target.join("bench-peers"))?;
    let scene = Scene::set(&place.join("scene"), ringwall)?;
    let rounds = args.common.rounds;

    let mut figures = Vec::new();
    if args.only != Some(Part::Inside) {
        figures.extend(startup::measure(&scene, &peers, rounds)?);
    }
    if args.only != Some(Part::Startup) {
        figures.extend(inside::measure(&scene, &peers, rounds));
    }
    output(scene.command(&scene.ringwall).args(["audit", "verify"]))?;
    Ok(print_figures(&figures, args.common.no_check))
}
