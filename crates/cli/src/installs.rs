//! The list of settings files that we edited, so that an install can be undone exactly and a removed
//! hook is noticed.
//!
//! The old contents are kept beside the list, in files named by the hash of their content.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use agents::{Agent, Form, HookCommand};
use model::{FileText, HookGroup};
use policy::HookedSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::files;
use crate::setup::Setup;

/// The list of installs, kept in the state directory.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Installs {
    installs: Vec<Install>,
    #[serde(skip)]
    state_dir: PathBuf,
}

/// Notes how the agent's settings must call us; needed only when they change.
pub(crate) fn look_up(setup: &mut Setup) {
    let installs = Installs::read(&setup.places.state_dir).unwrap_or_default();
    setup.context.settings.hooked = installs.hooked(setup.agent.name);
    setup.context.settings.calls = calls_of_this_process(setup.agent);
}

/// One settings file that we edited.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Install {
    pub(crate) agent: String,
    pub(crate) path: PathBuf,
    /// The program that our entries start.
    pub(crate) program: String,
    /// Our entries, as they were written.
    pub(crate) groups: Vec<HookGroup>,
    /// The hash of the file without our hook; `None` where there was no file.
    pub(crate) before: Option<String>,
    /// The hash of the file as we wrote it.
    pub(crate) after: String,
}

impl Install {
    /// Whether the file is unchanged since we wrote it.
    pub(crate) fn left_as(&self, text: &str) -> bool {
        self.after == hash(text)
    }
}

impl Installs {
    pub(crate) fn read(state_dir: &Path) -> io::Result<Self> {
        let list: Self = match facts::read_small(&list_file(state_dir)) {
            FileText::Missing => Self::default(),
            FileText::Text(text) => serde_json::from_str(&text)?,
            FileText::Unreadable(why) => return Err(io::Error::other(why)),
        };
        Ok(Self { state_dir: state_dir.into(), ..list })
    }

    /// Every program that was installed for an agent, and this one.
    pub(crate) fn programs(&self, agent: &str) -> Vec<String> {
        let own =
            std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
        let ours = self.installs.iter().filter(|install| install.agent == agent);
        ours.map(|install| install.program.clone()).chain(own).collect()
    }

    /// The install in one file.
    pub(crate) fn find(&self, agent: &str, path: &Path) -> Option<&Install> {
        self.installs.iter().find(|install| install.agent == agent && install.path == path)
    }

    /// The files that must keep calling our hook.
    pub(crate) fn hooked(&self, agent: &str) -> Vec<HookedSettings> {
        let ours = self.installs.iter().filter(|install| install.agent == agent);
        let hooked = ours.map(|install| HookedSettings {
            path: install.path.clone(),
            groups: install.groups.clone(),
            accepted: self.settings(&install.after),
        });
        hooked.collect()
    }

    /// The kept text with this hash.
    pub(crate) fn backup(&self, hash: &str) -> io::Result<String> {
        match facts::read_small(&backup_dir(&self.state_dir).join(hash)) {
            FileText::Text(text) => Ok(text),
            FileText::Missing => Err(io::ErrorKind::NotFound.into()),
            FileText::Unreadable(why) => Err(io::Error::other(why)),
        }
    }

    fn settings(&self, hash: &str) -> Value {
        let text = self.backup(hash).unwrap_or_default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        serde_json::from_str(text).unwrap_or_default()
    }
}

/// The list, locked against other processes.
pub(crate) struct LockedInstalls {
    pub(crate) list: Installs,
    _lock: File,
}

impl LockedInstalls {
    /// Waits until no other process holds the list.
    pub(crate) fn open(state_dir: &Path) -> io::Result<Self> {
        let lock = files::lock(state_dir)?;
        files::private_dir(&backup_dir(state_dir))?;
        Ok(Self { list: Installs::read(state_dir)?, _lock: lock })
    }

    /// Keeps a text, and returns its hash.
    pub(crate) fn keep(&self, text: &str) -> io::Result<String> {
        let hash = hash(text);
        files::replace(&backup_dir(&self.list.state_dir).join(&hash), text)?;
        Ok(hash)
    }

    /// Adds an install, and removes an earlier one in the same file.
    pub(crate) fn add(&mut self, install: Install) {
        self.take(&install.agent, &install.path);
        self.list.installs.push(install);
    }

    /// Removes an install from the list.
    pub(crate) fn take(&mut self, agent: &str, path: &Path) -> Option<Install> {
        let installs = &mut self.list.installs;
        let at = installs.iter().position(|i| i.agent == agent && i.path == path)?;
        Some(installs.remove(at))
    }

    /// Writes the list, and removes the kept texts that it no longer refers to.
    pub(crate) fn write(&self) -> io::Result<()> {
        let state_dir = &self.list.state_dir;
        files::replace(&list_file(state_dir), &serde_json::to_string(&self.list)?)?;
        let named = |name: &str| {
            self.list.installs.iter().any(|i| i.after == name || i.before.as_deref() == Some(name))
        };
        for entry in std::fs::read_dir(backup_dir(state_dir))? {
            let entry = entry?;
            if !entry.file_name().to_str().is_some_and(named) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// The settings entries that start this process as it was started: by the name it was called with or
/// by its path, with a shell or without.
pub(crate) fn calls_of_this_process(agent: &Agent) -> Vec<Vec<HookGroup>> {
    let mut words = std::env::args_os().filter_map(|word| word.into_string().ok());
    let called = words.next();
    let args: Vec<_> = words.collect();
    let own =
        std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let programs = called.into_iter().chain(own);
    let hooks = programs.flat_map(|program| {
        [Form::Exec, Form::Shell].map(|form| HookCommand {
            program: program.clone(),
            args: args.clone(),
            form,
        })
    });
    hooks.map(|hook| agents::groups(agent, &hook)).collect()
}

fn list_file(state_dir: &Path) -> PathBuf {
    state_dir.join("installs.json")
}

fn backup_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("backups")
}

fn hash(text: &str) -> String {
    model::Digest::of(text.as_bytes()).to_string()
}
