//! Claude Code.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fixtures::{Finished, run_within};
use serde_json::Value;
use tempfile::TempDir;

use super::install;
use crate::ModelServer;

/// The version that the tests are written against.
pub const CLAUDE_VERSION: &str = "2.1.325";

/// Long enough for a slow machine under load; a session of a few steps takes some seconds.
const LIMIT: Duration = Duration::from_mins(2);

/// The program, installed if it is not there yet.
///
/// This is the native binary out of the package for this platform. It needs neither node nor the
/// install script, without which the launcher in `node_modules/.bin` does not work.
///
/// # Panics
/// If npm is missing or fails, or brings no binary for this platform.
pub fn claude() -> PathBuf {
    let dir = install::npm("claude", "@anthropic-ai/claude-code", CLAUDE_VERSION);
    let packages = dir.join("node_modules/@anthropic-ai");
    let packages = fs::read_dir(&packages).expect("npm installed the package");
    packages
        .map(|package| package.expect("a readable directory").path().join("claude"))
        .find(|program| program.is_file())
        .expect("a package for this platform")
}

/// One headless session of the real client against a [`ModelServer`].
///
/// The process gets an environment built from nothing, a HOME of its own, and the server as its
/// model and its proxy. HOME lives as long as this value, so that a test can fill it before and look
/// at it after.
pub struct ClaudeRun {
    project: PathBuf,
    home: TempDir,
    environment: Vec<(OsString, OsString)>,
    arguments: Vec<OsString>,
    permission_mode: String,
    prompt: String,
}

impl ClaudeRun {
    /// A session in `project`, in the mode that asks nobody.
    ///
    /// # Panics
    /// If no HOME can be made.
    pub fn new(server: &ModelServer, project: impl Into<PathBuf>) -> Self {
        let home = tempfile::Builder::new().prefix("claude-home-").tempdir().expect("a HOME");
        let run = Self {
            project: project.into(),
            environment: Vec::new(),
            arguments: Vec::new(),
            permission_mode: "bypassPermissions".into(),
            prompt: "Follow the script.".into(),
            home,
        };
        run.with_base_environment(&server.url())
    }

    /// What the session is asked to do. The script decides what is really done.
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// The permission mode: `default`, `acceptEdits`, `plan`, `bypassPermissions` …
    #[must_use]
    pub fn permission_mode(mut self, mode: impl Into<String>) -> Self {
        self.permission_mode = mode.into();
        self
    }

    /// The user's settings, `~/.claude/settings.json`.
    ///
    /// # Panics
    /// If the file cannot be written.
    #[must_use]
    pub fn user_settings(self, settings: &Value) -> Self {
        let dir = self.home().join(".claude");
        fs::create_dir_all(&dir).expect("HOME can be written");
        fs::write(dir.join("settings.json"), settings.to_string()).expect("HOME can be written");
        self
    }

    /// One more variable. A name given twice keeps the last value.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The session's HOME.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs the session to its end.
    ///
    /// # Panics
    /// If the client cannot be installed or started, or is not done after two minutes.
    pub fn run(&self) -> Finished {
        let output = tempfile::tempdir().expect("a directory for the output");
        let mut command = Command::new(claude());
        command
            .args(["--output-format", "stream-json", "--verbose", "--permission-mode"])
            .arg(&self.permission_mode)
            .args(&self.arguments)
            .args(["--print", "--", &self.prompt])
            .current_dir(&self.project)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        run_within(LIMIT, &mut command, output.path())
    }

    fn with_base_environment(self, server: &str) -> Self {
        let home = self.home().to_owned();
        // Its sockets and the output of its tasks go under TMPDIR, and would stay there.
        let temporary = home.join("tmp");
        fs::create_dir(&temporary).expect("HOME can be written");
        let run = self
            .env("PATH", env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .env("HOME", home)
            .env("TMPDIR", temporary)
            .env("ANTHROPIC_BASE_URL", server)
            .env("ANTHROPIC_API_KEY", "dummy-not-a-key")
            .env("HTTPS_PROXY", server)
            .env("HTTP_PROXY", server)
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("DISABLE_ERROR_REPORTING", "1")
            .env("DISABLE_TELEMETRY", "1")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        // Claude Code refuses to skip permissions as root unless it is told that it is contained.
        if rustix::process::geteuid().is_root() { run.env("IS_SANDBOX", "1") } else { run }
    }
}
