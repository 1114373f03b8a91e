//! `ringwall trust [FILE]`.

use std::path::PathBuf;
use std::process::ExitCode;

use config::{PROJECT_FILE, Trust};
use facts::Places;
use model::FileText;

use super::refuse_agents;
use crate::args::TrustArgs;
use crate::failure::Failure;
use crate::terminal;

pub(super) fn run(args: &TrustArgs) -> Result<ExitCode, Failure> {
    refuse_agents("trust")?;
    let places = Places::from_environment().map_err(Failure::new)?;
    let named = match &args.file {
        Some(file) => places.cwd.join(file),
        None => {
            facts::git_root(&places.cwd).unwrap_or_else(|| places.cwd.clone()).join(PROJECT_FILE)
        }
    };
    let file: PathBuf = named
        .canonicalize()
        .map_err(|error| Failure::config(format!("cannot read {}: {error}", named.display())))?;
    let text = match facts::read_small(&file) {
        FileText::Text(text) => text,
        FileText::Missing => return Err(Failure::config(format!("{} is gone", file.display()))),
        FileText::Unreadable(why) => {
            return Err(Failure::config(format!("cannot read {}: {why}", file.display())));
        }
    };
    let widening = config::widening_of(&places, &file, &text).map_err(Failure::config)?;
    Trust::at(&places.state_dir).add(&file, &text).map_err(Failure::new)?;
    let mut shown = format!("trusted {} as it is now\n", file.display());
    if widening.is_empty() {
        shown.push_str("it widens nothing\n");
    }
    for line in widening {
        shown.push_str(&format!("  now counts: {line}\n"));
    }
    shown.push_str("any change to the file ends the trust\n");
    terminal::print(&shown);
    Ok(ExitCode::SUCCESS)
}
