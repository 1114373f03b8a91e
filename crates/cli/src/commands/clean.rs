//! `ringwall clean`: removes the private caches that runs have left.

use std::path::PathBuf;
use std::process::ExitCode;

use ::run::{Removed, Which, remove_layers};
use facts::Places;
use model::{AbsPath, ByteSize};

use super::{refuse_agents, setup_failed};
use crate::args::CleanArgs;
use crate::failure::Failure;
use crate::setup::{Options, Setup};
use crate::terminal::{self, plain};

pub(super) fn run(args: &CleanArgs) -> Result<ExitCode, Failure> {
    refuse_agents("clean")?;
    let places = Places::from_environment().map_err(Failure::new)?;
    let workspace = if args.all { None } else { Some(workspace(args)?) };
    let unused_for = args.older_than;
    let which = Which { workspace, unused_for, dry_run: args.dry_run };
    let found = remove_layers(&places.state_dir, &which).map_err(Failure::new)?;
    if args.json {
        let text = serde_json::to_string_pretty(&found).map_err(Failure::new)?;
        terminal::print(&(text + "\n"));
    } else {
        terminal::print(&text(&found, args.dry_run));
    }
    let failed = found.iter().any(|layer| !layer.removed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The workspace that is named, also one that does not exist any more, or that of this directory.
fn workspace(args: &CleanArgs) -> Result<AbsPath, Failure> {
    if let Some(named) = &args.workspace {
        let absolute = std::path::absolute(named).map_err(Failure::new)?;
        let real = absolute.canonicalize().unwrap_or(absolute);
        return AbsPath::lexical(&real).map_err(Failure::usage);
    }
    let agent = agents::ALL.first().ok_or_else(|| Failure::usage("no agent is known"))?;
    let setup = Setup::prepare(agent, &Options::default(), "").map_err(setup_failed)?;
    Ok(setup.context.workspace)
}

fn text(found: &[Removed], dry_run: bool) -> String {
    let row = |layer: &Removed| {
        let done = match (&layer.kept, dry_run) {
            (Some(why), _) => format!("left: {why}"),
            (None, true) => "would be removed".into(),
            (None, false) => "removed".into(),
        };
        let used = layer.used.map(|used| humantime::format_rfc3339_seconds(used).to_string());
        let workspace = layer.workspace.clone().unwrap_or_else(|| PathBuf::from("unknown"));
        vec![
            plain(&workspace.display().to_string()),
            ByteSize(layer.bytes).rounded().to_string(),
            used.map_or_else(|| "never used".into(), |used| format!("used {used}")),
            plain(&done),
        ]
    };
    if found.is_empty() {
        return "no private caches to remove\n".into();
    }
    terminal::table(&found.iter().map(row).collect::<Vec<_>>())
}
