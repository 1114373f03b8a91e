//! `ringwall policy show|check|schema`.

use std::process::ExitCode;

use model::{Origin, Sourced};
use policy::Policy;
use serde::Serialize;
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
    let rows = rows(&setup.loaded.policy);
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

struct Row {
    key: String,
    /// `None` for an empty list or an unset value.
    value: Option<Value>,
    origin: Origin,
}

/// Every effective value: one row per single value, one per entry of a list.
fn rows(policy: &Policy) -> Vec<Row> {
    let mut rows = Rows(Vec::new());
    rows.one("level", &policy.level);
    for (name, phase) in &policy.phases {
        rows.one(&format!("phases.{name}.level"), &phase.level);
        rows.list(&format!("phases.{name}.allow_write"), &phase.allow_write);
    }
    rows.list("filesystem.allow_read", &policy.filesystem.allow_read);
    rows.list("filesystem.allow_write", &policy.filesystem.allow_write);
    rows.list("filesystem.deny_read", &policy.filesystem.deny_read);
    rows.list("filesystem.deny_write", &policy.filesystem.deny_write);
    rows.list("filesystem.quiet", &policy.filesystem.quiet);
    rows.list("network.allowed_domains", &policy.network.allowed_domains);
    rows.list("network.denied_domains", &policy.network.denied_domains);
    rows.list("network.private_domains", &policy.network.private_domains);
    rows.list("network.allow_local_ports", &policy.network.allow_local_ports);
    rows.one("network.allow_without_sni", &policy.network.allow_without_sni);
    rows.list("environment.pass", &policy.environment.pass);
    rows.maybe("quarantine.dir", policy.quarantine.dir.as_ref());
    rows.one("quarantine.mode", &policy.quarantine.mode);
    rows.one("guard.on_unknown", &policy.guard.on_unknown);
    rows.one("guard.on_error", &policy.guard.on_error);
    rows.one("violation.action", &policy.violation.action);
    rows.one("violation.lookups", &policy.violation.lookups);
    rows.maybe("limits.memory", policy.limits.memory.as_ref());
    rows.maybe("limits.processes", policy.limits.processes.as_ref());
    rows.maybe("limits.file_size", policy.limits.file_size.as_ref());
    rows.maybe("limits.wall_seconds", policy.limits.wall_seconds.as_ref());
    rows.maybe("limits.idle_seconds", policy.limits.idle_seconds.as_ref());
    rows.one("audit.on_failure", &policy.audit.on_failure);
    rows.one("git.pin_env", &policy.git.pin_env);
    rows.one("confinement.minimum", &policy.confinement.minimum);
    rows.0
}

struct Rows(Vec<Row>);

impl Rows {
    fn one<T: Serialize>(&mut self, key: &str, sourced: &Sourced<T>) {
        let value = serde_json::to_value(&sourced.value).ok();
        self.0.push(Row { key: key.into(), value, origin: sourced.origin.clone() });
    }

    fn maybe<T: Serialize>(&mut self, key: &str, sourced: Option<&Sourced<T>>) {
        match sourced {
            Some(sourced) => self.one(key, sourced),
            None => self.0.push(Row { key: key.into(), value: None, origin: Origin::BuiltIn }),
        }
    }

    fn list<T: Serialize>(&mut self, key: &str, entries: &[Sourced<T>]) {
        if entries.is_empty() {
            self.maybe::<T>(key, None);
        }
        for entry in entries {
            self.one(key, entry);
        }
    }
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
        text.push_str("there is no configuration file; the built-in rules hold\n");
    }
    for warning in &warnings {
        let label = terminal::paint("warning:", Paint::Yellow);
        text.push_str(&format!("{label} {}\n", plain(&warning.to_string())));
    }
    text.push_str(&untrusted(&setup));
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}
