//! A workspace, the files beside it, and the environment that everything runs in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Failure};
use crate::workspace::{fresh_dir, output};

/// The variables of the user that git, cargo and node need.
const PASSED: &[&str] = &["PATH", "HOME", "USER", "LANG", "CARGO_HOME", "RUSTUP_HOME"];

/// Everything that one benchmark writes.
pub(super) struct Scene {
    dir: PathBuf,
    /// The binary that is measured.
    pub(super) ringwall: PathBuf,
    /// The git repository that commands run in.
    pub(super) workspace: PathBuf,
}

impl Scene {
    pub(super) fn set(dir: &Path, ringwall: PathBuf) -> Result<Self, Failure> {
        fresh_dir(dir)?;
        let dir = dir.canonicalize().context(|| format!("cannot find `{}`", dir.display()))?;
        let mut scene = Self { workspace: PathBuf::new(), dir, ringwall };
        scene.workspace = scene.repository("workspace")?;
        Ok(scene)
    }

    /// An empty git repository.
    pub(super) fn repository(&self, name: &str) -> Result<PathBuf, Failure> {
        let dir = self.dir.join(name);
        fresh_dir(&dir)?;
        output(self.command(Path::new("git")).current_dir(&dir).args(["init", "--quiet"]))?;
        Ok(dir)
    }

    /// A file beside the workspace.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.dir.join(name);
        write(&path, text)?;
        Ok(path)
    }

    /// A command in the workspace. Ringwall's own files go into the scene.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear();
        for name in PASSED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for (name, dir) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(name, self.dir.join(dir));
        }
        if self.workspace.is_dir() {
            command.current_dir(&self.workspace);
        }
        command
    }
}

/// Writes a file, and the directories on the way to it.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let what = || format!("cannot write `{}`", path.display());
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).context(what)?;
    }
    fs::write(path, text).context(what)
}
