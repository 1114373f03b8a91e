//! `ringwall grant read|write|unix|domain X`.

use std::path::Path;
use std::process::ExitCode;

use config::{Grant, Granted, Project, Trust};
use facts::Places;
use model::{DomainRule, shell_word};
use policy::PathRule;

use super::{refuse_agents, unusable};
use crate::args::GrantVerb;
use crate::failure::Failure;
use crate::files;
use crate::terminal::{self, plain};

pub(super) fn run(verb: GrantVerb) -> Result<ExitCode, Failure> {
    refuse_agents("grant")?;
    let places = Places::from_environment().map_err(Failure::new)?;
    let (grant, target) = match verb {
        GrantVerb::Read { path, target } => (Grant::Read(rule(&path, &places)?), target),
        GrantVerb::Write { path, target } => (Grant::Write(rule(&path, &places)?), target),
        GrantVerb::Unix { path, yes, target } => {
            let rule = rule(&path, &places)?;
            consent(&path, &places, yes)?;
            (Grant::Unix(rule), target)
        }
        GrantVerb::Domain { name, target } => {
            let rule = DomainRule::parse(&name).map_err(Failure::usage)?;
            (Grant::Domain(rule), target)
        }
    };
    // Held from reading to writing, or one of two simultaneous grants would be lost.
    let _lock = files::lock(&places.state_dir).map_err(Failure::new)?;
    let file = if target.user {
        places.user_config()
    } else {
        Project::around(&places.cwd, &places.home).grant_file()
    };
    if !target.user {
        refuse_untrusted(&places, &file)?;
    }
    let shown = plain(&format!("{grant}"));
    let name = plain(&file.display().to_string());
    match config::grant(&file, &grant).map_err(unusable)? {
        Granted::AlreadyThere => terminal::print(&format!("{shown} is already in {name}\n")),
        Granted::Added(text) => {
            let failed = |error| Failure::new(format!("cannot write {}: {error}", file.display()));
            files::replace(&file, &text).map_err(failed)?;
            if !target.user {
                Trust::at(&places.state_dir).add(&file, &text).map_err(Failure::new)?;
            }
            terminal::print(&format!("added {shown} to {name}\n"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Some sockets give away more than any file: their grant wants a person, or `--yes`.
fn consent(typed: &str, places: &Places, yes: bool) -> Result<(), Failure> {
    let at = model::absolute(typed, &places.cwd, &places.home).map_err(Failure::usage)?;
    // A link to such a socket is one, too.
    let real = at.canonicalize().unwrap_or_else(|_| at.clone());
    let Some(what) = policy::gives_away(&real).or_else(|| policy::gives_away(&at)) else {
        return Ok(());
    };
    let shown = plain(&real.display().to_string());
    let question = format!("{shown}: {what}. Allow connections to it?");
    if yes || (terminal::is_attended() && terminal::confirm(&question)) {
        return Ok(());
    }
    Err(Failure::usage(format!("{shown} is not granted: {what}"))
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
