//! Tests the sandbox from the inside: this program runs itself in it and tries forbidden actions.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, ExitCode, Stdio};

use rustix::io::FdFlags;
use sandbox::{Act, Targets};
use serde_json::Value;

use super::{Check, State, check};
use crate::failure::Failure;
use crate::setup::Setup;
use crate::terminal;

/// An environment variable that must not be visible in the sandbox.
const VARIABLE: &str = "RINGWALL_DOCTOR_CANARY";

/// Tries the actions and prints the results as JSON, for the process that started this one.
pub(crate) fn try_acts(targets: &str) -> Result<ExitCode, Failure> {
    let targets: Targets = serde_json::from_str(targets).map_err(Failure::usage)?;
    let acts = sandbox::try_all(&targets);
    terminal::print(&serde_json::to_string(&acts).unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn checks(setup: &Setup) -> Vec<Check> {
    match prove(setup) {
        Ok(checks) => checks,
        Err(why) => {
            vec![check("sandbox", State::Bad, why, Some("`ringwall run -- true` shows more"))]
        }
    }
}

fn prove(setup: &Setup) -> Result<Vec<Check>, String> {
    let scratch = Scratch::new(setup)?;
    let targets = serde_json::to_string(&scratch.targets).map_err(|error| error.to_string())?;
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(&exe)
        .arg("run")
        .arg("--config")
        .arg(scratch.dir.path().join("ringwall.toml"))
        .arg("--workspace")
        .arg(scratch.dir.path().join("workspace"))
        .arg("--events")
        .arg(scratch.dir.path().join("events"))
        // Whether the sandbox works does not depend on the user's own level.
        .args(["--level", "readwrite"])
        .arg("--allow-read")
        .arg(&exe)
        .arg("--")
        .arg(&exe)
        .args(["try-acts", &targets])
        .env(VARIABLE, "canary")
        // The acts are meant to be denied: they are recorded beside the scratch files, not in the
        // user's log. The run has a configuration of its own, so it needs nothing of the user's state.
        .env("XDG_STATE_HOME", scratch.dir.path().join("state"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let acts: Vec<Act> = serde_json::from_slice(&output.stdout).map_err(|_| {
        String::from_utf8_lossy(&output.stderr).lines().take(6).collect::<Vec<_>>().join("; ")
    })?;
    let events = std::fs::read_to_string(scratch.dir.path().join("events")).unwrap_or_default();
    let started = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|event| event["event"] == "started")
        .unwrap_or_default();
    let mut checks = vec![kind(&started)];
    checks.extend(missing(&started));
    let contained = acts.iter().filter(|act| act.contained).count();
    let text = format!("{contained} of {} forbidden actions were contained", acts.len());
    let state = if contained == acts.len() { State::Good } else { State::Bad };
    checks.push(check("sandbox", state, text, None));
    checks.extend(acts.iter().map(|act| {
        let state = if act.contained { State::Good } else { State::Bad };
        check("  action", state, format!("{}: {}", act.name, act.detail), None)
    }));
    Ok(checks)
}

fn kind(started: &Value) -> Check {
    // Events call the sandbox `wall`.
    let sandbox = &started["wall"];
    let word = |key: &str| sandbox[key].as_str().unwrap_or("nothing").to_owned();
    let landlock = &sandbox["landlock"];
    let text = format!(
        "enforced by {}, denied paths found by {}, Landlock ABI {landlock}",
        word("enforcement"),
        word("attribution")
    );
    check("sandbox", State::Good, text, None)
}

fn missing(started: &Value) -> Vec<Check> {
    let missing = started.pointer("/wall/lacking").and_then(Value::as_array);
    let missing = missing.cloned().unwrap_or_default();
    let note = |part: &Value| {
        let text = part["what"].as_str().unwrap_or_default();
        check("sandbox", State::Note, text, part["remedy"].as_str())
    };
    missing.iter().map(note).collect()
}

/// Files and sockets that the actions are tried on. All of them are removed afterwards.
struct Scratch {
    dir: tempfile::TempDir,
    targets: Targets,
    _port: TcpListener,
    _socket: UnixListener,
    _abstract: UnixListener,
    _open: std::fs::File,
}

impl Scratch {
    fn new(setup: &Setup) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let state = &setup.places.state_dir;
        std::fs::create_dir_all(state).map_err(text)?;
        let dir = tempfile::Builder::new().prefix("doctor-").tempdir_in(state).map_err(text)?;
        std::fs::create_dir(dir.path().join("workspace")).map_err(text)?;
        let config = "version = 1\n[violation]\naction = \"deny\"\n";
        std::fs::write(dir.path().join("ringwall.toml"), config).map_err(text)?;
        let directory = dir.path().join("outside");
        std::fs::create_dir(&directory).map_err(text)?;
        let file = directory.join("secret");
        std::fs::write(&file, "canary").map_err(text)?;
        let port = TcpListener::bind("127.0.0.1:0").map_err(text)?;
        let socket_path = dir.path().join("socket");
        let socket = UnixListener::bind(&socket_path).map_err(text)?;
        let name = format!("ringwall-doctor-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).map_err(text)?;
        let abstract_socket = UnixListener::bind_addr(&address).map_err(text)?;
        let open = std::fs::File::open(&file).map_err(text)?;
        // Inherited on purpose, as by a careless caller.
        rustix::io::fcntl_setfd(&open, FdFlags::empty()).map_err(|error| error.to_string())?;
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&open);
        let targets = Targets {
            file,
            directory,
            port: port.local_addr().map_err(text)?.port(),
            socket: socket_path,
            abstract_socket: name,
            pid: std::process::id(),
            variable: VARIABLE.into(),
            descriptor,
        };
        Ok(Self {
            dir,
            targets,
            _port: port,
            _socket: socket,
            _abstract: abstract_socket,
            _open: open,
        })
    }
}
