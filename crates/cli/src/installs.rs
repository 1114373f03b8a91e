//! What was installed where, so that it can be undone exactly and missed when it is gone.

use std::io;
use std::path::{Path, PathBuf};

use model::FileText;
use policy::HookedSettings;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files;

/// The list of installs, kept in the state directory.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Installs {
    installs: Vec<Install>,
}

/// One settings file that we edited.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Install {
    pub(crate) agent: String,
    pub(crate) path: PathBuf,
    /// What our hook entry has in its `command` field.
    pub(crate) command: String,
    /// The file before we touched it; `None` where there was none. This is the backup.
    pub(crate) before: Option<String>,
    /// Hash of the file as we left it.
    after: String,
}

impl Install {
    pub(crate) fn new(
        agent: &str,
        path: &Path,
        command: String,
        before: Option<String>,
        after: &str,
    ) -> Self {
        Self { agent: agent.into(), path: path.into(), command, before, after: hash(after) }
    }

    /// Whether nobody edited the file since.
    pub(crate) fn left_as(&self, text: &str) -> bool {
        self.after == hash(text)
    }
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

fn list_file(state_dir: &Path) -> PathBuf {
    state_dir.join("installs.json")
}

impl Installs {
    pub(crate) fn read(state_dir: &Path) -> io::Result<Self> {
        match facts::read_small(&list_file(state_dir)) {
            FileText::Missing => Ok(Self::default()),
            FileText::Text(text) => Ok(serde_json::from_str(&text)?),
            FileText::Unreadable(why) => Err(io::Error::other(why)),
        }
    }

    pub(crate) fn write(&self, state_dir: &Path) -> io::Result<()> {
        files::private_dir(state_dir)?;
        files::replace(&list_file(state_dir), &serde_json::to_string_pretty(self)?)
    }

    /// Notes an install. Of a repeated one, the first backup is kept.
    pub(crate) fn add(&mut self, mut install: Install) {
        if let Some(known) = self.take(&install.agent, &install.path) {
            install.before = known.before;
        }
        self.installs.push(install);
    }

    /// Takes an install off the list.
    pub(crate) fn take(&mut self, agent: &str, path: &Path) -> Option<Install> {
        let at = self.installs.iter().position(|i| i.agent == agent && i.path == path)?;
        Some(self.installs.remove(at))
    }

    /// The files that must keep calling our hook.
    pub(crate) fn hooked(&self, agent: &str) -> Vec<HookedSettings> {
        let ours = self.installs.iter().filter(|install| install.agent == agent);
        ours.map(|i| HookedSettings { path: i.path.clone(), command: i.command.clone() }).collect()
    }
}
