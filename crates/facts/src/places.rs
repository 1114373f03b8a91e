//! The places that follow from the environment: home, configuration, state.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use model::AbsPath;

/// Where configuration and state are below home, unless a variable says otherwise.
const CONFIG_HOME: &str = ".config";
const STATE_HOME: &str = ".local/state";
const OURS: &str = "ringwall";

/// Where Ringwall finds and keeps things on this machine.
#[derive(Debug, Clone)]
pub struct Places {
    /// The user's home directory.
    pub home: AbsPath,
    /// The current directory.
    pub cwd: PathBuf,
    /// The system-wide configuration file.
    pub system_config: PathBuf,
    /// The user's configuration directory.
    pub config_dir: PathBuf,
    /// The user's state directory: audit log, trust, what was installed where.
    pub state_dir: PathBuf,
}

/// Why the places cannot be known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacesError {
    /// Without a home, `~` and the user's configuration mean nothing.
    #[error("HOME is not set to an absolute path")]
    NoHome,
    /// The current directory was removed or cannot be read.
    #[error("cannot determine the current directory: {0}")]
    NoCwd(String),
}

impl Places {
    /// Reads them from the environment.
    pub fn from_environment() -> Result<Self, PlacesError> {
        let home = std::env::var_os("HOME")
            .and_then(|home| AbsPath::lexical(Path::new(&home)).ok())
            .ok_or(PlacesError::NoHome)?;
        let cwd = std::env::current_dir().map_err(|error| PlacesError::NoCwd(error.to_string()))?;
        let base = |variable: &str, fallback: &str| {
            absolute_variable(variable).unwrap_or_else(|| home.as_path().join(fallback)).join(OURS)
        };
        Ok(Self {
            system_config: PathBuf::from("/etc/ringwall/ringwall.toml"),
            config_dir: base("XDG_CONFIG_HOME", CONFIG_HOME),
            state_dir: base("XDG_STATE_HOME", STATE_HOME),
            home,
            cwd,
        })
    }

    /// The user's configuration file.
    pub fn user_config(&self) -> PathBuf {
        self.config_dir.join("ringwall.toml")
    }

    /// The places that are Ringwall's own: configuration, state and the program itself.
    pub fn own(&self) -> Vec<PathBuf> {
        [self.config_dir.clone(), self.state_dir.clone()]
            .into_iter()
            .chain(self.system_config.parent().map(Path::to_path_buf))
            .chain(std::env::current_exe())
            .collect()
    }

    /// Whether a directory of ours is at its default path, whatever the variables say.
    pub fn is_usual(&self, dir: &Path) -> bool {
        [CONFIG_HOME, STATE_HOME]
            .iter()
            .any(|base| dir == self.home.as_path().join(base).join(OURS))
    }

    /// Where the audit log is.
    pub fn audit_dir(&self) -> PathBuf {
        self.state_dir.join("audit")
    }
}

/// The XDG specification says that a relative value counts as unset.
fn absolute_variable(name: &str) -> Option<PathBuf> {
    let value: OsString = std::env::var_os(name)?;
    Some(PathBuf::from(value)).filter(|path| path.is_absolute())
}
