//! `ringwall grant read|write|unix|domain|env|port X`, `--list` and `--last`.

mod last;
mod list;
pub(super) mod revoke;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use config::{Grant, Granted, Project, Trust};
use facts::Places;
use model::{DomainRule, shell_word};
use policy::PathRule;

use super::{refuse_agents, unusable};
use crate::args::{GrantArgs, GrantVerb};
use crate::failure::Failure;
use crate::files;
use crate::terminal::{self, plain};

pub(super) fn run(args: GrantArgs) -> Result<ExitCode, Failure> {
    if args.list {
        return list::run();
    }
    refuse_agents("grant")?;
    match args.verb {
        Some(verb) => add(verb),
        None => last::run(),
    }
}

/// Adds one grant to a file.
fn add(verb: GrantVerb) -> Result<ExitCode, Failure> {
    let places = Places::from_environment().map_err(Failure::new)?;
    let asked = |path: String, yes: bool| {
        consent(&path, &places, yes)?;
        rule(&path, &places)
    };
    let (grant, target) = match verb {
        GrantVerb::Read { path, yes, target } => (Grant::Read(asked(path, yes)?), target),
        GrantVerb::Write { path, yes, target } => {
            refuse_protected(&path, &places)?;
            (Grant::Write(asked(path, yes)?), target)
        }
        GrantVerb::Unix { path, yes, target } => {
            let path = ::run::socket_named(&path, places.home.as_path());
            let path = path.map_err(|error| Failure::from(&error))?;
            (Grant::Unix(asked(path, yes)?), target)
        }
        GrantVerb::Domain { name, target } => (domain(&name)?, target),
        GrantVerb::Env { name, target } => (variable(&name)?, target),
        GrantVerb::Port { number, target } => (port(&number)?, target),
    };
    // Held from reading to writing, or one of two simultaneous grants would be lost.
    let _lock = files::lock(&places.state_dir).map_err(Failure::new)?;
    let file = file(&places, target.user);
    if !target.user {
        refuse_untrusted(&places, &file)?;
    }
    let shown = plain(&format!("{grant}"));
    let name = plain(&file.display().to_string());
    match config::grant(&file, &grant).map_err(unusable)? {
        Granted::AlreadyThere => terminal::print(&format!("{shown} is already in {name}\n")),
        Granted::Added(text) => {
            write(&places, &file, &text, target.user)?;
            terminal::print(&format!("added {shown} to {name}\n"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The file that grants are added to.
fn file(places: &Places, user: bool) -> PathBuf {
    if user {
        places.user_config()
    } else {
        Project::around(&places.cwd, &places.home).grant_file()
    }
}

/// Writes a new version of a file, and trusts it: the user made the change.
fn write(places: &Places, file: &Path, text: &str, user: bool) -> Result<(), Failure> {
    let failed = |error| Failure::new(format!("cannot write {}: {error}", file.display()));
    files::replace(file, text).map_err(failed)?;
    if !user {
        Trust::at(&places.state_dir).add(file, text).map_err(Failure::new)?;
    }
    Ok(())
}

fn domain(name: &str) -> Result<Grant, Failure> {
    DomainRule::parse(name).map(Grant::Domain).map_err(Failure::usage)
}

fn port(number: &str) -> Result<Grant, Failure> {
    let port = number.parse().ok().filter(|port| *port != 0).map(Grant::Port);
    port.ok_or_else(|| {
        Failure::usage(format!("`{number}` is not a port; expected a number from 1 to 65535"))
    })
}

fn variable(name: &str) -> Result<Grant, Failure> {
    let plain = name.strip_suffix('*').unwrap_or(name);
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if plain.is_empty() || !plain.chars().all(word) {
        let failure = Failure::usage(format!("`{name}` is not the name of a variable"));
        return Err(match name.split_once('=') {
            Some((name, _)) => failure.hint(format!(
                "`ringwall grant env {name}` passes the value that the variable has; `ringwall run \
                 -e` also sets one"
            )),
            None => failure,
        });
    }
    Ok(Grant::Variable(name.into()))
}

/// No grant opens a protected name for writing, so one that seems to is an error.
fn refuse_protected(typed: &str, places: &Places) -> Result<(), Failure> {
    let at = model::absolute(typed, &places.cwd, &places.home).map_err(Failure::usage)?;
    let at = model::AbsPath::lexical(&at).map_err(Failure::usage)?;
    let Some(name) = policy::protected::protecting(&at) else { return Ok(()) };
    let shown = plain(&at.to_string());
    Err(Failure::usage(format!("{shown} is not granted: it is protected, because {}", name.why))
        .hint("no grant allows a run to write it; change it yourself, outside a run"))
}

/// Some grants give away more than they seem to: they want a person, or `--yes`.
fn consent(typed: &str, places: &Places, yes: bool) -> Result<(), Failure> {
    let at = model::absolute(typed, &places.cwd, &places.home).map_err(Failure::usage)?;
    // A link to such a place is one, too.
    let real = at.canonicalize().unwrap_or_else(|_| at.clone());
    let judge = |path: &Path| {
        let why = policy::gives_away(path).map(|what| format!("is a socket: {what}"));
        let path = model::AbsPath::lexical(path).ok()?;
        why.or_else(|| policy::gives_too_much(&path, &places.home))
    };
    let Some(what) = judge(&real).or_else(|| judge(&at)) else { return Ok(()) };
    let shown = plain(&real.display().to_string());
    let question = format!("{shown} {what}. Allow it?");
    if yes || (terminal::is_attended() && terminal::confirm(&question)) {
        return Ok(());
    }
    Err(Failure::usage(format!("{shown} is not granted: it {what}"))
        .hint("pass `--yes` if that is what you want"))
}

/// The entry for a path as the user typed it. The shell has already expanded wildcards, so any that
/// are left belong to the name.
fn rule(typed: &str, places: &Places) -> Result<String, Failure> {
    let at = model::absolute(typed, &places.cwd, &places.home)
        .map_err(|error| Failure::usage(format!("`{typed}`: {error}")))?;
    let clean = model::AbsPath::lexical(&at).map_err(Failure::usage)?;
    if !clean.as_path().exists() {
        let file = !typed.ends_with('/');
        let hint = if file { "; end it with `/` if it will be a directory" } else { "" };
        terminal::error_line(&format!("warning: {clean} does not exist yet{hint}"));
    }
    let text = match clean.as_path().strip_prefix(places.home.as_path()) {
        Ok(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Ok(below) => format!("~/{}", PathRule::quote(&below.to_string_lossy())),
        Err(_) => PathRule::quote(&clean.to_string()),
    };
    // The slash marks a path that does not exist yet as a directory.
    let slash = typed.ends_with('/') && !text.ends_with('/');
    Ok(if slash { text + "/" } else { text })
}

/// Writing a file makes its content trusted, so it must not hold lines that the user has never seen.
fn refuse_untrusted(places: &Places, file: &Path) -> Result<(), Failure> {
    let text = config::read_project_file(file).map_err(unusable)?;
    let Some(text) = text.filter(|text| !Trust::at(&places.state_dir).holds(file, text)) else {
        return Ok(());
    };
    let widening = config::widening_of(places, file, &text).map_err(unusable)?;
    if widening.is_empty() {
        return Ok(());
    }
    let line = |line: &config::Widening| format!("\n  {}", plain(&line.to_string()));
    let lines: String = widening.iter().map(line).collect();
    let text = format!("{} already has lines that are not trusted:{lines}", file.display());
    let hint = format!(
        "check them, then run `ringwall trust {}`",
        shell_word(&file.display().to_string())
    );
    Err(Failure::config(text).hint(hint))
}
