//! [`Kept`]: what runs left under protected names and what was taken away from there, until the user
//! has looked at it.
//!
//! Each run that leaves something has a directory with a number in the state directory, which no run
//! can reach: a list, and the content of each file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::Digest;
use serde::{Deserialize, Serialize};

use crate::lossless;
use crate::place::Place;

/// The directory of all sets, in the state directory.
const PLACE: &str = "kept";
const LIST: &str = "list.json";
/// The most that is kept of one run: files, and bytes.
const MOST: usize = 5_000;
const MOST_BYTES: usize = 256 << 20;
/// The largest file that is kept.
pub(crate) const LARGEST: usize = 64 << 20;

/// What was kept of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    /// By which number the user names it.
    pub number: u64,
    /// The run.
    pub run: String,
    /// The directory that the run worked in.
    #[serde(with = "lossless")]
    pub workspace: PathBuf,
    /// When it was kept.
    pub time: SystemTime,
    /// What it is.
    pub files: Vec<KeptFile>,
}

/// A file that was kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptFile {
    /// Where the run left it.
    #[serde(with = "lossless")]
    pub path: PathBuf,
    /// Who would act on it.
    pub acts: String,
    /// Its permissions.
    pub mode: u32,
    /// What it says.
    pub digest: Digest,
    /// What was there before the run, and is there again.
    pub before: Option<Digest>,
}

impl Kept {
    /// Everything that is kept, the oldest first.
    pub fn all(state: &Path) -> Vec<Self> {
        let entries = state.join(PLACE).read_dir().into_iter().flatten().flatten();
        let mut all: Vec<_> = entries.filter_map(|entry| Self::read(&entry.path())).collect();
        all.sort_by_key(|kept| kept.number);
        all
    }

    /// What was kept under a number.
    pub fn numbered(state: &Path, number: u64) -> Option<Self> {
        Self::read(&state.join(PLACE).join(number.to_string()))
    }

    fn read(dir: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(dir.join(LIST)).ok()?).ok()
    }

    /// The content of one of its files.
    pub fn content(&self, state: &Path, file: &KeptFile) -> io::Result<Vec<u8>> {
        let number = self.files.iter().position(|it| it.path == file.path);
        let number = number.ok_or(io::ErrorKind::NotFound)?;
        std::fs::read(self.place(state).join(number.to_string()))
    }

    /// Puts a file where the run left it. Fails if something else is there by now.
    pub fn take(&self, state: &Path, file: &KeptFile) -> io::Result<()> {
        let content = self.content(state, file)?;
        let place = Place::create(&file.path)?;
        let there = place.read(LARGEST)?.map(|found| Digest::of(&found.content));
        if there == Some(file.digest) {
            return Ok(());
        }
        if there != file.before {
            let text = "something else is there by now";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        place.replace(&content, file.mode)
    }

    /// Forgets all of it.
    pub fn forget(self, state: &Path) -> io::Result<()> {
        std::fs::remove_dir_all(self.place(state))
    }

    fn place(&self, state: &Path) -> PathBuf {
        state.join(PLACE).join(self.number.to_string())
    }
}

/// Keeps what a run left, as long as there is room.
pub(crate) struct Keeper<'a> {
    state: &'a Path,
    run: String,
    workspace: PathBuf,
    kept: Option<Kept>,
    bytes: usize,
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(state: &'a Path, run: &str, workspace: &Path) -> Self {
        let workspace = workspace.to_path_buf();
        Self { state, run: run.to_owned(), workspace, kept: None, bytes: 0 }
    }

    /// Keeps a file with this content.
    pub(crate) fn keep(&mut self, file: KeptFile, content: &[u8]) -> io::Result<()> {
        if self.kept.is_none() {
            self.kept = Some(self.begin()?);
        }
        let kept = self.kept.as_mut().ok_or(io::ErrorKind::NotFound)?;
        if kept.files.len() >= MOST || self.bytes + content.len() > MOST_BYTES {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let dir = kept.place(self.state);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let new = options.open(dir.join(kept.files.len().to_string()));
        new.and_then(|mut new| new.write_all(content))?;
        self.bytes += content.len();
        kept.files.push(file);
        Ok(())
    }

    /// Everything that was kept; the list of it is written now.
    pub(crate) fn finish(self) -> io::Result<Option<Kept>> {
        let Some(kept) = self.kept else { return Ok(None) };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut list = options.open(kept.place(self.state).join(LIST))?;
        list.write_all(&serde_json::to_vec(&kept)?)?;
        Ok(Some(kept))
    }

    /// Takes the next number.
    fn begin(&self) -> io::Result<Kept> {
        let all = self.state.join(PLACE);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&all)?;
        let names = all.read_dir()?.flatten().map(|entry| entry.file_name());
        let numbers = names.filter_map(|name| name.to_str()?.parse::<u64>().ok());
        let mut number = numbers.max().unwrap_or(0);
        loop {
            number += 1;
            match std::fs::DirBuilder::new().mode(0o700).create(all.join(number.to_string())) {
                // Another run took it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => break made?,
            }
        }
        let (run, workspace) = (self.run.clone(), self.workspace.clone());
        Ok(Kept { number, run, workspace, time: SystemTime::now(), files: Vec::new() })
    }
}

/// Reads at most so many bytes of a file.
pub(crate) fn read_some(file: File, most: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut content)?;
    if content.len() > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(content)
}
