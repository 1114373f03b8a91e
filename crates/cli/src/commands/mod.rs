//! One file per verb.

mod audit;
mod doctor;
mod explain;
mod grant;
pub(crate) mod hook;
mod init;
mod install;
mod policy;
mod trust;

use std::process::ExitCode;

use model::Action;

use crate::args::{self, Args, Verb};
use crate::failure::Failure;
use crate::setup::SetupError;
use crate::terminal;

/// Runs the verb.
pub(crate) fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.verb {
        // Started by an agent; `main` takes the short way, this one serves odd spellings.
        Verb::Hook(args) => Ok(hook::run(&args.agent, &args.common.into())),
        Verb::Explain(args) => explain::run(args),
        Verb::Init(args) => init::run(&args),
        Verb::Install(args) => install::install(&args),
        Verb::Uninstall(args) => install::uninstall(&args),
        Verb::Doctor(args) => doctor::run(args),
        Verb::Policy(verb) => policy::run(verb),
        Verb::Grant(verb) => grant::run(verb),
        Verb::Trust(args) => trust::run(&args),
        Verb::Audit(verb) => audit::run(verb),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut args::command(), "ringwall", &mut script);
            terminal::print(&String::from_utf8_lossy(&script));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What changes an agent's ground is for the user to type, not for the agent.
fn refuse_agents(verb: &str) -> Result<(), Failure> {
    let inside = agents::ALL.iter().find(|agent| std::env::var_os(agent.shell_marker).is_some());
    match inside {
        Some(agent) => Err(Failure::not_permitted(format!(
            "`ringwall {verb}` was started by {}; it changes what an agent may do, so only the \
             user can run it",
            agent.title
        ))
        .hint(format!("run it yourself, in a terminal of your own (${})", agent.shell_marker))),
        None => Ok(()),
    }
}

fn setup_failed(error: SetupError) -> Failure {
    match error {
        SetupError::Config(error) => {
            let problems = error.problems.iter().map(|problem| format!("\n  {problem}"));
            Failure::config(format!(
                "the configuration cannot be used{}",
                problems.collect::<String>()
            ))
            .hint("until this is mended, every call of an agent is refused")
        }
        error => Failure::new(error),
    }
}

/// An action in a few words, for people.
fn describe(action: &Action) -> String {
    match action {
        Action::Path { access, path } => format!("{access} {}", path.at.display()),
        Action::Run { command } => format!("run {command}"),
        Action::Connect { target } => format!("connect to {target}"),
        Action::LeaveSandbox { field } => format!("leave the sandbox ({field})"),
        Action::AskPerson { tool } => format!("wait for a person ({tool})"),
        Action::ChangeSettings { path } => format!("change settings {}", path.display()),
        Action::NoEffect { .. } => "none that the policy governs".to_owned(),
        Action::Invalid { field, problem } => format!("unclear: `{field}`, {problem}"),
    }
}
