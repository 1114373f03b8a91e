//! `ringwall kept list|show|take|drop`: what runs left under protected names.

use std::process::ExitCode;

use ::run::{Kept, KeptFile};
use facts::Places;
use serde_json::{Value, json};

use super::refuse_agents;
use crate::args::{KeptArgs, KeptVerb};
use crate::failure::Failure;
use crate::terminal::{self, plain};

pub(super) fn run(args: KeptArgs) -> Result<ExitCode, Failure> {
    let places = Places::from_environment().map_err(Failure::new)?;
    let state = places.state_dir.as_path();
    let found = |number| {
        Kept::numbered(state, number).ok_or_else(|| {
            Failure::usage(format!("nothing is kept under the number {number}"))
                .hint("`ringwall kept` lists what is kept")
        })
    };
    match args.verb.unwrap_or(KeptVerb::List { json: args.json }) {
        KeptVerb::List { json } => list(&Kept::all(state), json),
        KeptVerb::Show { number, json } => show(&found(number)?, state, json)?,
        KeptVerb::Take { number, paths } => {
            refuse_agents("kept take")?;
            take(&found(number)?, &paths, &places)?;
        }
        KeptVerb::Drop { number } => {
            refuse_agents("kept drop")?;
            found(number)?.forget(state).map_err(Failure::new)?;
            terminal::print(&format!("dropped {number}\n"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(all: &[Kept], json: bool) {
    if json {
        let all: Vec<_> = all.iter().map(described).collect();
        return terminal::print(&format!("{}\n", json!({ "kept": all })));
    }
    if all.is_empty() {
        return terminal::print("nothing is kept\n");
    }
    let row = |kept: &Kept| {
        let time = humantime::format_rfc3339_seconds(kept.time).to_string();
        let names: Vec<_> = kept.files.iter().take(3).map(|file| name(kept, file)).collect();
        let more = kept.files.len().saturating_sub(3);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let workspace = plain(&kept.workspace.display().to_string());
        vec![kept.number.to_string(), time, workspace, names.join(", ") + &more]
    };
    terminal::print(&terminal::table(&all.iter().map(row).collect::<Vec<_>>()));
}

/// A set as JSON.
fn described(kept: &Kept) -> Value {
    let file = |file: &KeptFile| {
        json!({
            "path": file.path.display().to_string(),
            "acts": file.acts,
            "mode": format!("{:o}", file.mode),
            "sha256": file.digest.to_string(),
        })
    };
    json!({
        "number": kept.number,
        "run": kept.run,
        "workspace": kept.workspace.display().to_string(),
        "time": humantime::format_rfc3339_seconds(kept.time).to_string(),
        "files": kept.files.iter().map(file).collect::<Vec<_>>(),
    })
}

/// The path of a file, as seen from the directory that the run worked in.
fn name(kept: &Kept, file: &KeptFile) -> String {
    let below = file.path.strip_prefix(&kept.workspace).unwrap_or(&file.path);
    plain(&below.display().to_string())
}

fn show(kept: &Kept, state: &std::path::Path, json: bool) -> Result<(), Failure> {
    let texts = kept.files.iter().map(|file| {
        let content = kept.content(state, file).map_err(Failure::new)?;
        Ok((file, String::from_utf8_lossy(&content).into_owned()))
    });
    let texts = texts.collect::<Result<Vec<_>, Failure>>()?;
    if json {
        let mut value = described(kept);
        let contents: Vec<_> = texts.into_iter().map(|(_, text)| Value::from(text)).collect();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("contents".into(), contents.into());
        }
        terminal::print(&format!("{value}\n"));
        return Ok(());
    }
    for (file, text) in texts {
        terminal::print(&format!("{} (mode {:o}; {})\n", name(kept, file), file.mode, file.acts));
        // Whatever is in it, it must not act on the terminal.
        for line in text.lines() {
            terminal::print(&format!("    {}\n", plain(line)));
        }
    }
    Ok(())
}

fn take(kept: &Kept, paths: &[std::path::PathBuf], places: &Places) -> Result<(), Failure> {
    let wanted: Vec<_> = paths.iter().map(|path| places.cwd.join(path)).collect();
    let unknown = wanted.iter().find(|path| !kept.files.iter().any(|file| file.path == **path));
    if let Some(path) = unknown {
        let text = format!("{} is not kept under the number {}", path.display(), kept.number);
        return Err(Failure::usage(plain(&text)));
    }
    let all = wanted.is_empty();
    for file in kept.files.iter().filter(|file| all || wanted.contains(&file.path)) {
        let shown = plain(&file.path.display().to_string());
        kept.take(&places.state_dir, file).map_err(|error| {
            Failure::new(format!("cannot write {shown}: {error}"))
                .hint(format!("`ringwall kept show {}` has the content", kept.number))
        })?;
        terminal::print(&format!("wrote {shown}\n"));
    }
    Ok(())
}
