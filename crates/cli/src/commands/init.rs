//! `ringwall init`: sets up a project in one command.

use std::process::ExitCode;

use config::Project;
use facts::Places;

use super::{doctor, install, refuse_agents};
use crate::args::InitArgs;
use crate::client;
use crate::failure::Failure;
use crate::files;
use crate::setup::settings_file;
use crate::terminal;

/// The file that a project starts with. It only denies, so it needs no trust.
const TEMPLATE: &str = r#"# What coding agents are allowed to do in this project.
# `ringwall policy show` prints the effective values; `ringwall grant` adds to the lists.
version = 1

[filesystem]
# Files that cannot be read or written, in any directory: where this project keeps its secrets.
# deny_read = ["**/.env"]
# allow_read = ["../shared-lib"]

[network]
# allowed_domains = ["registry.example.org"]
"#;

pub(super) fn run(args: &InitArgs) -> Result<ExitCode, Failure> {
    refuse_agents("init")?;
    let places = Places::from_environment().map_err(Failure::new)?;
    let root = facts::git_root(&places.cwd).unwrap_or_else(|| places.cwd.clone());
    let file = Project::around(&places.cwd, &places.home).grant_file();
    if file.symlink_metadata().is_ok() {
        terminal::print(&format!("kept {} unchanged\n", file.display()));
    } else {
        let failed = |error| Failure::new(format!("cannot write {}: {error}", file.display()));
        files::replace(&file, TEMPLATE).map_err(failed)?;
        terminal::print(&format!("wrote {}\n", file.display()));
    }
    let mut found = false;
    for agent in agents::ALL.iter().copied() {
        let user = settings_file(agent, &places, &root, agents::Scope::User);
        let has_settings = user.parent().is_some_and(std::path::Path::is_dir);
        if client::version_of(agent).is_some() || has_settings {
            found = true;
            terminal::print(&install::install_hook(agent, &places, args.scope)?);
        }
    }
    if !found {
        let names: Vec<_> = agents::ALL.iter().map(|agent| agent.name).collect();
        terminal::print(&format!(
            "found no agent; after you install one, run `ringwall install {}`\n",
            names.join("|")
        ));
    }
    doctor::run_with(&crate::setup::Options::default(), false)
}
