//! `ringwall prompt`: the rules of a session, for an agent to read.

use std::process::ExitCode;

use super::setup_failed;
use crate::args::PromptArgs;
use crate::failure::Failure;
use crate::setup::Setup;
use crate::start;
use crate::terminal;

pub(super) fn run(args: PromptArgs) -> Result<ExitCode, Failure> {
    let agent = agents::find(&args.agent)
        .ok_or_else(|| Failure::usage(format!("unknown agent `{}`", args.agent)))?;
    let setup = Setup::prepare(agent, &args.common.into(), "").map_err(setup_failed)?;
    terminal::print(&terminal::plain_lines(&start::rules(&setup)));
    Ok(ExitCode::SUCCESS)
}
