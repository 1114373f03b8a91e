//! `ringwall grant read|write|domain X`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use config::{Grant, Granted, PROJECT_FILE, Trust};
use facts::Places;
use model::{DomainRule, FileText, shell_word};
use policy::PathRule;

use super::refuse_agents;
use crate::args::{GrantTarget, GrantVerb};
use crate::failure::Failure;
use crate::files;
use crate::terminal;

pub(super) fn run(verb: GrantVerb) -> Result<ExitCode, Failure> {
    refuse_agents("grant")?;
    let places = Places::from_environment().map_err(Failure::new)?;
    let (grant, target) = match verb {
        GrantVerb::Read { path, target } => (Grant::Read(rule(&path, &places)?), target),
        GrantVerb::Write { path, target } => (Grant::Write(rule(&path, &places)?), target),
        GrantVerb::Domain { name, target } => {
            let rule = DomainRule::parse(&name).map_err(Failure::usage)?;
            (Grant::Domain(rule), target)
        }
    };
    let file = file(&target, &places);
    refuse_untrusted(&places, &file, &target)?;
    match config::grant(&file, &grant).map_err(Failure::config)? {
        Granted::AlreadyThere => {
            terminal::print(&format!("{grant} is already in {}\n", file.display()));
        }
        Granted::Added(text) => {
            let failed = |error| Failure::new(format!("cannot write {}: {error}", file.display()));
            files::replace(&file, &text).map_err(failed)?;
            if !target.user {
                Trust::at(&places.state_dir).add(&file, &text).map_err(Failure::new)?;
            }
            terminal::print(&format!("added {grant} to {}\n", file.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The entry for a path as the user typed it. The shell has expanded wildcards already, so what
/// is left of them belongs to the name.
fn rule(typed: &str, places: &Places) -> Result<String, Failure> {
    let at = model::absolute(typed, &places.cwd, &places.home)
        .map_err(|error| Failure::usage(format!("`{typed}`: {error}")))?;
    let clean = model::AbsPath::lexical(&at).map_err(Failure::usage)?;
    if !clean.as_path().exists() {
        terminal::error_line(&format!("warning: {clean} does not exist yet"));
    }
    let text = match clean.as_path().strip_prefix(places.home.as_path()) {
        Ok(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Ok(below) => format!("~/{}", PathRule::quote(&below.to_string_lossy())),
        Err(_) => PathRule::quote(&clean.to_string()),
    };
    Ok(text)
}

fn file(target: &GrantTarget, places: &Places) -> PathBuf {
    if target.user {
        places.user_config()
    } else {
        let root = facts::git_root(&places.cwd).unwrap_or_else(|| places.cwd.clone());
        root.canonicalize().unwrap_or(root).join(PROJECT_FILE)
    }
}

/// Writing a file makes its content trusted, so nothing may ride along that the user never saw.
fn refuse_untrusted(places: &Places, file: &Path, target: &GrantTarget) -> Result<(), Failure> {
    let FileText::Text(text) = facts::read_small(file) else { return Ok(()) };
    if target.user || Trust::at(&places.state_dir).holds(file, &text) {
        return Ok(());
    }
    let widening = config::widening_of(places, file, &text).map_err(Failure::config)?;
    if widening.is_empty() {
        return Ok(());
    }
    let lines: String = widening.iter().map(|line| format!("\n  {line}")).collect();
    let text = format!("{} already has lines that are not trusted:{lines}", file.display());
    let hint = format!(
        "look at them, then run `ringwall trust {}`",
        shell_word(&file.display().to_string())
    );
    Err(Failure::config(text).hint(hint))
}
