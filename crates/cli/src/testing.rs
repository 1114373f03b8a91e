//! The pipeline and the configuration parser as plain functions, for fuzz targets.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use config::Request;
use facts::Places;
use model::{AbsPath, Decision, Event, EventKind, Mode, Sourced, ToolCall};
use policy::{Context, PathRule, Policy, SettingsContext};

use crate::pipeline;
use crate::setup::Setup;

/// Decodes, judges and answers a hook call, with built-in rules and the workspace `/tmp`.
pub fn answer(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let agent = agents::find("claude").ok_or("unknown agent")?;
    let event = (agent.decode)(bytes).map_err(|error| error.to_string())?;
    let setup = setup(agent)?;
    let judged = pipeline::judge(&setup, &event);
    Ok((agent.encode)(&event, &judged.decision, &[]).stdout)
}

/// The verdict of an allowed call.
pub const ALLOW: model::Verdict = model::Verdict::Allow;

/// Judges a shell command by built-in rules, with a quarantine, in a workspace that does not exist.
pub fn decide(command: &str) -> Result<Decision, String> {
    let agent = agents::find("claude").ok_or("unknown agent")?;
    let mut setup = setup(agent)?;
    let home = setup.context.home.clone();
    setup.context.workspace = absolute("/nonexistent/home/proj")?;
    let quarantine = PathRule::parse("~/quarantine", Path::new("/"), &home);
    let quarantine = Sourced::built_in(quarantine.map_err(|error| error.to_string())?);
    setup.loaded.policy.quarantine.dir = Some(quarantine);
    let input = serde_json::Map::from_iter([("command".to_owned(), command.into())]);
    let kind = EventKind::BeforeTool(ToolCall { tool: "Bash".into(), input });
    let event = Event { session: String::new(), cwd: None, mode: Mode::Asks, kind };
    Ok(pipeline::judge(&setup, &event).decision)
}

/// Parses a shell command, and counts the commands and the unknown parts in it.
pub fn parse(command: &str) -> (usize, usize) {
    let (dir, home) = (Path::new("/nonexistent/home/proj"), Path::new("/nonexistent/home"));
    let surroundings = shell::Surroundings { dir, home, top: Some(dir) };
    let analysis = shell::analyse(command, &surroundings);
    (analysis.commands.len(), analysis.unknown.len())
}

/// Reads a text as if it were a configuration file named on the command line.
pub fn config(text: &str) -> Result<(), String> {
    let places = places()?;
    config::load_text(
        &Request {
            places: &places,
            workspace: &absolute("/tmp")?,
            project: &config::Project::around(Path::new("/tmp"), &places.home),
            explicit: None,
            aliases: config::Aliases::default(),
            selection: config::Selection::default(),
        },
        Path::new("/tmp/ringwall.toml"),
        text,
    )
    .map(|_| ())
    .map_err(|error| error.to_string())
}

fn places() -> Result<Places, String> {
    Ok(Places {
        home: absolute("/nonexistent/home")?,
        cwd: PathBuf::from("/tmp"),
        system_config: PathBuf::from("/nonexistent/system.toml"),
        config_dir: PathBuf::from("/nonexistent/config"),
        state_dir: PathBuf::from("/nonexistent/state"),
    })
}

fn setup(agent: &'static agents::Agent) -> Result<Setup, String> {
    let places = places()?;
    let context = Context {
        workspace: absolute("/tmp")?,
        home: places.home.clone(),
        closed: Vec::new(),
        unfit: None,
        agent_files: Vec::new(),
        own_files: Vec::new(),
        grant_file: PathBuf::from("/tmp/ringwall.toml"),
        settings: SettingsContext { rules: agent.settings_rules, ..SettingsContext::default() },
    };
    let loaded = config::Loaded {
        policy: Policy::built_in(),
        files: Vec::new(),
        warnings: Vec::new(),
        ignored: Vec::new(),
        fingerprint: String::new(),
    };
    Ok(Setup { agent, places, loaded, context, resolver: RefCell::default() })
}

fn absolute(path: &str) -> Result<AbsPath, String> {
    AbsPath::lexical(Path::new(path)).map_err(|error| error.to_string())
}
