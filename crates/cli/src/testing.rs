//! The pipeline and the configuration parser behind plain functions, for fuzz targets.

use std::path::{Path, PathBuf};

use config::Request;
use facts::Places;
use model::AbsPath;
use policy::{Ground, HookedSettings, Policy};

use crate::pipeline;
use crate::setup::Setup;

/// Decodes, judges and answers a hook call, against built-in rules and a workspace in `/tmp`.
pub fn answer(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let agent = agents::find("claude").ok_or("the agent is gone")?;
    let event = (agent.decode)(bytes).map_err(|error| error.to_string())?;
    let setup = setup(agent)?;
    let judged = pipeline::judge(&setup, &event);
    Ok((agent.encode)(&event, &judged.decision, &[]).stdout)
}

/// Reads a text as if it were a configuration file named on the command line.
pub fn config(text: &str) -> Result<(), String> {
    let places = places()?;
    config::load_text(
        &Request {
            places: &places,
            workspace: Path::new("/tmp"),
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
    let ground = Ground {
        workspace: absolute("/tmp")?,
        home: places.home.clone(),
        unfit: None,
        agent_files: Vec::new(),
        own_files: Vec::new(),
        grant_file: PathBuf::from("/tmp/ringwall.toml"),
        hooked: vec![HookedSettings {
            path: PathBuf::from("/tmp/.claude/settings.json"),
            command: "/opt/ringwall".into(),
        }],
        off_switches: agent.off_switches,
    };
    let loaded = config::Loaded {
        policy: Policy::built_in(),
        files: Vec::new(),
        warnings: Vec::new(),
        ignored: Vec::new(),
        fingerprint: String::new(),
    };
    Ok(Setup { agent, places, loaded, ground })
}

fn absolute(path: &str) -> Result<AbsPath, String> {
    AbsPath::lexical(Path::new(path)).map_err(|error| error.to_string())
}
