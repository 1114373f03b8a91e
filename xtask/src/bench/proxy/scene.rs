//! [`Scene`]: the programs, the project that they run in, and their sandboxes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use super::place::Place;
use crate::bench::peers::SandboxRuntime;
use crate::failure::{Context, Failure};
use crate::workspace::{Workspace, fresh_dir, succeed};

/// The server and the client: one program.
pub(super) const PROGRAM: &str = "ends";
const SOURCE: &str = "xtask/src/bench/proxy/ends.rs";
/// A name that only this benchmark knows.
const NAME: &str = "files.example.org";
/// The release build, with the names for tests: of all crates, only the one that reads them.
const PROFILE: &str = "release-with-test-names";

/// A home with a project in it, and a server that runs as long as this value exists.
pub(super) struct Scene {
    pub(super) server: Place,
    port: String,
    dir: TempDir,
    ringwall: PathBuf,
}

impl Scene {
    pub(super) fn set(workspace: &Workspace) -> Result<Self, Failure> {
        let dir = tempfile::tempdir().context(|| "cannot create a temporary directory".into())?;
        fresh_dir(&dir.path().join("home/project"))?;
        let program = dir.path().join("home/project").join(PROGRAM);
        let mut rustc = workspace.rustc();
        rustc.args(["--edition=2024", "-Copt-level=3", "-o"]).arg(&program).arg(SOURCE);
        succeed(&mut rustc)?;
        let ringwall = build(workspace)?;
        let mut server = Place::start("the server", command(&program, &dir, &["serve"]))?;
        let port = server.line()?;
        Ok(Self { server, port, dir, ringwall })
    }

    /// A client without a sandbox.
    pub(super) fn outside(&self) -> Result<Place, Failure> {
        let words = ["fetch", "127.0.0.1", &self.port];
        Place::start("the client", command(&self.program(), &self.dir, &words))
    }

    /// A client in our sandbox.
    pub(super) fn inside(&self) -> Result<Place, Failure> {
        let granted = format!("[\"{NAME}:{}\"]", self.port);
        let config = format!(
            "version = 1\n[network]\nallowed_domains = {granted}\nprivate_domains = {granted}\n"
        );
        let config = self.write("home/ringwall.toml", &config)?;
        let mut command = command(&self.ringwall, &self.dir, &["run", "--config"]);
        command.arg(config).arg("--").arg(self.program()).args(["fetch", NAME, &self.port]);
        command.env("RINGWALL_TEST_HOSTS", format!("{NAME}=127.0.0.1"));
        proved(
            Place::start("ringwall run", command)?,
            &["plain", "connect", "tunnel", "http", "socks"],
        )
    }

    /// A client in sandbox-runtime.
    pub(super) fn inside_peer(&self, runtime: &SandboxRuntime) -> Result<Place, Failure> {
        let settings = json!({
            "network": {
                "allowedDomains": [format!("127.0.0.1:{}", self.port)],
                "deniedDomains": [],
            },
            "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
        });
        let settings = self.write("home/settings.json", &settings.to_string())?;
        let mut command = command(&runtime.program, &self.dir, &["--settings"]);
        command.arg(settings).arg(self.program()).args(["fetch", "127.0.0.1", &self.port]);
        command.envs(runtime.variables()?);
        proved(Place::start("sandbox-runtime", command)?, &["connect", "http", "socks"])
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("home/project")
    }

    fn program(&self) -> PathBuf {
        self.project().join(PROGRAM)
    }

    fn write(&self, path: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.dir.path().join(path);
        fs::write(&path, text).context(|| format!("cannot write `{}`", path.display()))?;
        Ok(path)
    }
}

/// Checks that every route leads to the server.
fn proved(mut place: Place, ways: &[&str]) -> Result<Place, Failure> {
    for way in ways {
        place.queue(way, 1, 1)?;
    }
    Ok(place)
}

/// A command in the project with an empty environment and the largest possible descriptor limit: a
/// thousand connections need more than the default.
fn command(program: &Path, dir: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "ulimit -n \"$(ulimit -H -n)\"; exec \"$@\"", "sh"])
        .arg(program)
        .args(words)
        .current_dir(dir.path().join("home/project"))
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", dir.path().join("home"));
    command
}

fn build(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--locked", "--package=ringwall", "--features=test-hooks"]);
    // In a directory of its own: what is in `release` has no hooks.
    cargo.args(["--profile", PROFILE, "--config"]);
    cargo.arg(format!("profile.{PROFILE}.inherits=\"release\""));
    succeed(&mut cargo)?;
    Ok(workspace.target.join(PROFILE).join("ringwall"))
}
