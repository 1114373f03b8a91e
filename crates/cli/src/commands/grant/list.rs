//! `ringwall grant --list`: every grant, with the file and the line that it is in.

use std::process::ExitCode;

use crate::commands::setup_failed;
use crate::failure::Failure;
use crate::setup::{Options, Setup};
use crate::terminal::{self, plain};

/// The keys that grant something, and the kind that `grant` and `revoke` call it.
const KEYS: &[(&str, &str)] = &[
    ("filesystem.allow_read", "read"),
    ("filesystem.allow_write", "write"),
    ("network.allowed_domains", "domain"),
    ("network.private_domains", "private domain"),
    ("network.allow_local_ports", "port"),
    ("network.allow_unix", "unix"),
    ("environment.pass", "env"),
];

pub(super) fn run() -> Result<ExitCode, Failure> {
    let agent = agents::ALL.first().ok_or_else(|| Failure::new("no agent is known"))?;
    let setup = Setup::prepare(agent, &Options::default(), "").map_err(setup_failed)?;
    let rows = config::rows(&setup.loaded.policy);
    let row = |row: &config::Row| {
        let (_, kind) = KEYS.iter().find(|(key, _)| row.key == *key)?;
        let value = match row.value.as_ref()? {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some(vec![(*kind).to_owned(), plain(&value), plain(&row.origin.to_string())])
    };
    let rows: Vec<_> = rows.iter().filter_map(row).collect();
    if rows.is_empty() {
        terminal::print("nothing is granted besides the workspace and the built-in rules\n");
    } else {
        terminal::print(&terminal::table(&rows));
    }
    for ignored in setup.loaded.untrusted() {
        let line = plain(&ignored.to_string());
        terminal::note(&format!("{line} has no effect until you run `ringwall trust`"));
    }
    Ok(ExitCode::SUCCESS)
}
