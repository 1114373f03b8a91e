//! Asks an agent's own program for its version, and whether it accepts its settings.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use agents::{Agent, SelfCheck};

use crate::child;

/// Far longer than any of these calls takes.
const LIMIT: Duration = Duration::from_secs(10);

/// Whether the program accepts a settings file.
pub(crate) enum Opinion {
    /// It uses all of it.
    Accepts,
    /// It reports errors, and may ignore all of it.
    Rejects(Vec<String>),
    /// It could not be asked.
    Unknown(String),
}

/// The version that the agent's program reports.
pub(crate) fn version_of(agent: &Agent) -> Option<(String, [u32; 3])> {
    let output = child::run(Command::new(agent.program).arg("--version"), b"", LIMIT).ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let word = text.split_whitespace().next()?.to_owned();
    let mut numbers = word.split('.').map(|part| part.parse().ok());
    let version = [numbers.next()??, numbers.next()??, numbers.next()??];
    Some((word, version))
}

/// Asks the program about user settings with this text, in a temporary home directory.
///
/// A second settings file is broken on purpose. If the program does not report that one, its silence
/// about the first proves nothing.
pub(crate) fn opinion(agent: &Agent, text: &str) -> Opinion {
    let unknown = |why: &dyn std::fmt::Display| Opinion::Unknown(why.to_string());
    let Some(self_check) = &agent.self_check else { return unknown(&"it has no command for that") };
    match complaints(agent, self_check, text) {
        Ok(Some(complaints)) if complaints.is_empty() => Opinion::Accepts,
        Ok(Some(complaints)) => Opinion::Rejects(complaints),
        Ok(None) => {
            let args = self_check.args.join(" ");
            unknown(&format!("`{} {args}` does not report broken settings", agent.program))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            unknown(&format!("`{}` is not on PATH", agent.program))
        }
        Err(error) => unknown(&error),
    }
}

/// What the program reports about the settings, or `None` where it does not report broken ones.
fn complaints(
    agent: &Agent,
    self_check: &SelfCheck,
    text: &str,
) -> std::io::Result<Option<Vec<String>>> {
    let scratch = tempfile::Builder::new().prefix("ringwall-").tempdir()?;
    let root = scratch.path().canonicalize()?;
    let (home, project) = (root.join("home"), root.join("project"));
    let settings = home.join(agent.settings.config_dir).join(agent.settings.user);
    let broken = project.join(agent.settings.local);
    for (path, text) in [(&settings, text), (&broken, "{")] {
        std::fs::create_dir_all(path.parent().unwrap_or(&root))?;
        std::fs::write(path, text)?;
    }
    let mut command = Command::new(agent.program);
    command
        .args(self_check.args)
        .current_dir(&project)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &home)
        .env("TMPDIR", &root)
        .envs(self_check.environment.iter().copied());
    let output = child::run(&mut command, b"", LIMIT)?;
    let said = String::from_utf8_lossy(&output.stdout);
    let about = |path: &Path| -> Vec<String> {
        let path = path.display().to_string();
        let lines = said.lines().filter_map(|line| line.split_once(&path));
        lines.map(|(_, text)| text.trim_start_matches([' ', ':', '›']).to_owned()).collect()
    };
    Ok((!about(&broken).is_empty()).then(|| about(&settings)))
}
