//! `ringwall trust [FILE]`: shows what a project's files would allow, and trusts them on request.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use config::{Project, Trust, Widening};
use facts::Places;
use model::shell_word;

use super::{refuse_agents, unusable};
use crate::args::TrustArgs;
use crate::failure::Failure;
use crate::files;
use crate::terminal::{self, plain};

pub(super) fn run(args: &TrustArgs) -> Result<ExitCode, Failure> {
    refuse_agents("trust")?;
    let places = Places::from_environment().map_err(Failure::new)?;
    let trust = Trust::at(&places.state_dir);
    let files = match &args.file {
        Some(file) => vec![real(&places.cwd.join(file))?],
        None => Project::around(&places.cwd, &places.home).files(),
    };
    if args.forget {
        return forget(&trust, &files);
    }
    let wanted = wanted(&places, &trust, &files)?;
    if wanted.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !terminal::is_attended() {
        let named = args.file.as_ref().map(|file| shell_word(&file.display().to_string()));
        let command = named.map_or_else(String::new, |file| format!(" {file}"));
        return Err(Failure::config("no terminal to ask on, so nothing was trusted")
            .hint(format!("check the lines, then run `ringwall trust --yes{command}`")));
    }
    if !args.yes && !terminal::confirm("Trust these lines?") {
        terminal::print("nothing was trusted\n");
        return Ok(ExitCode::FAILURE);
    }
    add(&places, &trust, &wanted)
}

/// A file that the user may want to trust.
struct Wanted {
    path: PathBuf,
    text: String,
    widening: Vec<Widening>,
}

/// Shows every file, and returns those that need the user's consent.
fn wanted(places: &Places, trust: &Trust, files: &[PathBuf]) -> Result<Vec<Wanted>, Failure> {
    let mut wanted = Vec::new();
    let mut shown = String::new();
    for path in files {
        let Some(text) = config::read_project_file(path).map_err(unusable)? else {
            continue;
        };
        let name = plain(&path.display().to_string());
        let widening = config::widening_of(places, path, &text).map_err(unusable)?;
        if trust.holds(path, &text) {
            shown.push_str(&format!("{name} is trusted already\n"));
        } else if widening.is_empty() {
            // Content that was trusted earlier must not become trusted again without consent.
            trust.forget(path).map_err(Failure::new)?;
            shown.push_str(&format!("{name} allows nothing more, so it needs no trust\n"));
        } else {
            shown.push_str(&format!("{name} would allow more:\n"));
            let lines = widening.iter().map(|line| format!("  {}\n", plain(&line.to_string())));
            shown.push_str(&lines.collect::<String>());
            wanted.push(Wanted { path: path.clone(), text, widening });
        }
    }
    if shown.is_empty() {
        let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        return Err(Failure::config(format!("no project file; looked for {}", names.join(", "))));
    }
    terminal::print(&shown);
    Ok(wanted)
}

fn add(places: &Places, trust: &Trust, wanted: &[Wanted]) -> Result<ExitCode, Failure> {
    let _lock = files::lock(&places.state_dir).map_err(Failure::new)?;
    for Wanted { path, text, widening } in wanted {
        let now = config::read_project_file(path).map_err(unusable)?;
        if now.as_deref() != Some(text) {
            let text =
                format!("{} was changed while you were asked; it is not trusted", path.display());
            return Err(Failure::config(text).hint("run `ringwall trust` again"));
        }
        trust.add(path, text).map_err(Failure::new)?;
        let mut shown = format!("trusted {}\n", plain(&path.display().to_string()));
        for line in widening {
            shown.push_str(&format!("  now applies: {}\n", plain(&line.to_string())));
        }
        terminal::print(&shown);
    }
    terminal::print(
        "a changed file is not trusted any more, unless its content is the same again\n",
    );
    Ok(ExitCode::SUCCESS)
}

fn forget(trust: &Trust, files: &[PathBuf]) -> Result<ExitCode, Failure> {
    let mut shown = String::new();
    for path in files {
        if trust.forget(path).map_err(Failure::new)? {
            let name = plain(&path.display().to_string());
            shown.push_str(&format!("{name} is no longer trusted\n"));
        }
    }
    if shown.is_empty() {
        shown.push_str("no file here was trusted\n");
    }
    terminal::print(&shown);
    Ok(ExitCode::SUCCESS)
}

/// The file as the configuration names it: with its directory resolved. The file itself is not
/// resolved, because a project file may not be a link.
fn real(named: &Path) -> Result<PathBuf, Failure> {
    let cannot = |why: &str| Failure::config(format!("cannot read {}: {why}", named.display()));
    let (Some(dir), Some(name)) = (named.parent(), named.file_name()) else {
        return Err(cannot("it is not a file"));
    };
    let dir = dir.canonicalize().map_err(|error| cannot(&error.to_string()))?;
    Ok(dir.join(name))
}
