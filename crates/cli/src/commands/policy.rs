//! `ringwall policy show|check|schema`.

use std::process::ExitCode;

use config::Row;
use serde_json::{Value, json};

use super::setup_failed;
use crate::args::{Common, PolicyVerb};
use crate::failure::Failure;
use crate::setup::Setup;
use crate::terminal::{self, Paint, plain};

pub(super) fn run(verb: PolicyVerb) -> Result<ExitCode, Failure> {
    match verb {
        PolicyVerb::Show { json, common } => show(json, common),
        PolicyVerb::Check { json, common } => check(json, common),
        PolicyVerb::Schema => {
            let schema = serde_json::to_string_pretty(&config::schema()).map_err(Failure::new)?;
            terminal::print(&format!("{schema}\n"));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The agent whose essentials are shown: the policy itself is the same for all.
fn prepare(common: Common) -> Result<Setup, Failure> {
    let agent = agents::ALL.first().ok_or_else(|| Failure::new("no agent is known"))?;
    Setup::prepare(agent, &common.into(), "").map_err(setup_failed)
}

fn show(as_json: bool, common: Common) -> Result<ExitCode, Failure> {
    let setup = prepare(common)?;
    let rows = config::rows(&setup.loaded.policy);
    if as_json {
        let values: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({"key": row.key, "value": row.value, "origin": row.origin.to_string(),
                              "file": row.origin.file(), "line": row.origin.line()})
            })
            .collect();
        let shown = json!({
            "workspace": setup.context.workspace,
            "files": setup.loaded.files,
            "fingerprint": setup.loaded.fingerprint,
            "values": values,
            "untrusted": setup.loaded.ignored.iter().map(ToString::to_string).collect::<Vec<_>>(),
        });
        terminal::print(&format!("{shown:#}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("# workspace {}\n", plain(&setup.context.workspace.to_string()));
    let cells = |row: &Row| {
        let value = row.value.as_ref().map_or_else(|| "(none)".to_owned(), Value::to_string);
        vec![plain(&row.key), plain(&value), plain(&row.origin.to_string())]
    };
    text.push_str(&terminal::table(&rows.iter().map(cells).collect::<Vec<_>>()));
    text.push_str(&untrusted(&setup));
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}

fn untrusted(setup: &Setup) -> String {
    let lines = setup.loaded.untrusted().map(|line| plain(&line.to_string()) + "\n");
    let lines: String = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    let heading = "\n# ignored until trusted with `ringwall trust`:\n";
    terminal::paint(heading, Paint::Yellow) + &lines
}

fn check(as_json: bool, common: Common) -> Result<ExitCode, Failure> {
    let setup = prepare(common)?;
    let mut warnings = setup.loaded.warnings.clone();
    warnings.extend(config::check(&setup.loaded.policy, &setup.context.workspace));
    if as_json {
        let shown = json!({
            "files": setup.loaded.files,
            "warnings": warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "untrusted": setup.loaded.ignored.iter().map(ToString::to_string).collect::<Vec<_>>(),
        });
        terminal::print(&format!("{shown:#}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for file in &setup.loaded.files {
        text.push_str(&format!("{} is valid\n", plain(&file.display().to_string())));
    }
    if setup.loaded.files.is_empty() {
        text.push_str("no configuration file; the built-in rules apply\n");
    }
    for warning in &warnings {
        let label = terminal::paint("warning:", Paint::Yellow);
        text.push_str(&format!("{label} {}\n", plain(&warning.to_string())));
    }
    text.push_str(&untrusted(&setup));
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}
