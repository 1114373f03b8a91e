//! `ringwall init`: from nothing to a guarded project in one command.

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

/// The file a project starts with. It narrows only, so it needs no trust.
const TEMPLATE: &str = r#"# What coding agents may do in this project.
# `ringwall policy show` prints the effective values; `ringwall grant …` adds to the lists.
version = 1

[filesystem]
# Neither readable nor writable, at any depth.
deny_read = ["**/.env", "**/*.pem"]
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
        terminal::print(&format!("{} is kept as it is\n", file.display()));
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
            "no agent was found; once there is one: ringwall install {}\n",
            names.join("|")
        ));
    }
    doctor::run_with(&crate::setup::Options::default(), false)
}
