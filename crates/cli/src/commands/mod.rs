//! One file per verb.

mod audit;
mod clean;
mod doctor;
mod explain;
mod grant;
pub(crate) mod hook;
mod init;
mod install;
mod kept;
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
        // `main` handles the usual command line of an agent before it gets here.
        Verb::Hook(args) => Ok(hook::run(&args.agent, &args.common.into())),
        Verb::Run(args) => run::run(args),
        Verb::Explain(args) => explain::run(args),
        Verb::Init(args) => init::run(&args),
        Verb::Install(args) => install::install(&args),
        Verb::Uninstall(args) => install::uninstall(&args),
        Verb::Doctor(args) => doctor::run(args),
        Verb::Policy(verb) => policy::run(verb),
        Verb::Grant(args) => grant::run(args),
        Verb::Revoke(args) => grant::revoke::run(&args),
        Verb::Trust(args) => trust::run(&args),
        Verb::Kept(args) => kept::run(args),
        Verb::Audit(verb) => audit::run(verb),
        Verb::Clean(args) => clean::run(&args),
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

/// Commands that change what an agent is allowed to do are for the user, not for the agent.
fn refuse_agents(verb: &str) -> Result<(), Failure> {
    if std::env::var_os("RINGWALL").is_some() {
        let text = format!("`ringwall {verb}` was started inside `ringwall run`");
        return Err(Failure::not_permitted(text)
            .hint("it changes what is allowed, so only the user can run it, in another terminal"));
    }
    let inside = agents::ALL.iter().find(|agent| std::env::var_os(agent.shell_marker).is_some());
    match inside {
        Some(agent) => Err(Failure::not_permitted(format!(
            "`ringwall {verb}` was started by {}, but it changes what agents are allowed to do, so \
             only the user can run it",
            agent.title
        ))
        .hint(format!(
            "run it in a terminal outside the agent, where ${} is not set",
            agent.shell_marker
        ))),
        None => Ok(()),
    }
}

/// A file that cannot be used. Its text is escaped, so that it cannot imitate our own messages.
fn unusable(error: impl ToString) -> Failure {
    Failure::config(terminal::plain(&error.to_string()))
}

fn setup_failed(error: SetupError) -> Failure {
    Failure::from(&::run::Error::from(error))
}

/// An action in a few words.
fn describe(action: &Action) -> String {
    match action {
        Action::Path { access, path, by } => {
            let by = by.as_ref().map_or_else(String::new, |by| format!("{by}: "));
            format!("{by}{access} {}", path.at.display())
        }
        Action::Place { path, by } => format!("{by}: move or remove all of {}", path.at.display()),
        Action::Enter { path, by } => format!("{by}: work in {}", path.at.display()),
        Action::Fetch(fetch) => format!("{}: download to {}", fetch.by, fetch.to.at.display()),
        Action::RunFetched { part } => format!("run downloaded content: {part}"),
        Action::Opaque { part, why } => format!("unknown: {part} ({why})"),
        Action::Run { command, .. } => format!("run {command}"),
        Action::Connect { target } => format!("connect to {target}"),
        Action::LeaveSandbox { field } => format!("leave the sandbox ({field})"),
        Action::AskPerson { tool } => format!("wait for the user ({tool})"),
        Action::ChangeSettings { path } => format!("change settings {}", path.display()),
        Action::NoEffect { .. } => "nothing that the policy covers".to_owned(),
        Action::Invalid { field, problem } => format!("invalid: `{field}`, {problem}"),
    }
}
