//! One file per verb.

mod audit;
mod doctor;
mod explain;
mod grant;
pub(crate) mod hook;
mod init;
mod install;
mod policy;
mod prompt;
mod run;
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
        Verb::Run(args) => run::run(args),
        Verb::Explain(args) => explain::run(args),
        Verb::Init(args) => init::run(&args),
        Verb::Install(args) => install::install(&args),
        Verb::Uninstall(args) => install::uninstall(&args),
        Verb::Doctor(args) => doctor::run(args),
        Verb::Policy(verb) => policy::run(verb),
        Verb::Grant(verb) => grant::run(verb),
        Verb::Trust(args) => trust::run(&args),
        Verb::Audit(verb) => audit::run(verb),
        Verb::Prompt(args) => prompt::run(args),
        Verb::TryActs { targets } => doctor::try_acts(&targets),
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

/// A file that cannot be used. What it says of itself must not look like what we say.
fn unusable(error: impl ToString) -> Failure {
    Failure::config(terminal::plain(&error.to_string()))
}

fn setup_failed(error: SetupError) -> Failure {
    match error {
        SetupError::Config(error) => {
            let problem = |problem: &config::Problem| {
                format!("\n  {}", terminal::plain(&problem.to_string()))
            };
            let problems = error.problems.iter().map(problem);
            Failure::config(format!(
                "the configuration cannot be used{}",
                problems.collect::<String>()
            ))
            .hint("until this is mended, every call of an agent is refused")
        }
        SetupError::Workspace(_) => Failure::usage(error),
        SetupError::Places(_) => Failure::unavailable(error)
            .hint("set HOME to your home directory, and start in a directory that is there"),
    }
}

/// An action in a few words, for people.
fn describe(action: &Action) -> String {
    match action {
        Action::Path { access, path, by } => {
            let by = by.as_ref().map_or_else(String::new, |by| format!("{by}: "));
            format!("{by}{access} {}", path.at.display())
        }
        Action::Place { path, by } => format!("{by}: move or remove all of {}", path.at.display()),
        Action::Enter { path, by } => format!("{by}: work in {}", path.at.display()),
        Action::Fetch(fetch) => format!("{}: fetch to {}", fetch.by, fetch.to.at.display()),
        Action::RunFetched { part } => format!("run what was fetched: {part}"),
        Action::Opaque { part, why } => format!("not known: {part} ({why})"),
        Action::Run { command, .. } => format!("run {command}"),
        Action::Connect { target } => format!("connect to {target}"),
        Action::LeaveSandbox { field } => format!("leave the sandbox ({field})"),
        Action::AskPerson { tool } => format!("wait for a person ({tool})"),
        Action::ChangeSettings { path } => format!("change settings {}", path.display()),
        Action::NoEffect { .. } => "none that the policy governs".to_owned(),
        Action::Invalid { field, problem } => format!("unclear: `{field}`, {problem}"),
    }
}
