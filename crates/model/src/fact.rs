//! Questions the pure core asks of the machine, and the answers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::AbsPath;

/// One question. All of them are asked before anything is decided.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Query {
    /// Where does this path really lead?
    Resolve(PathBuf),
    /// What does this small text file say?
    Text(PathBuf),
}

/// Why a path cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolvable {
    /// More links than any kernel follows, or links in a circle.
    #[error("too many symbolic links")]
    Loop,
    /// A component that no file system takes.
    #[error("the name is too long")]
    TooLong,
    /// A component below something that is not a directory.
    #[error("a component of the path is not a directory")]
    NotADirectory,
    /// `..` behind a component that does not exist.
    #[error("`..` follows a directory that does not exist")]
    ClimbsFromMissing,
    /// The operating system reported another error.
    #[error("{0}")]
    Refused(String),
}

/// What a text file turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileText {
    /// Its content.
    Text(String),
    /// There is no such file.
    Missing,
    /// It cannot be read as a small text file.
    Unreadable(String),
}

/// The answers. A question that was not asked has no answer, which is an error.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    resolved: HashMap<PathBuf, Result<AbsPath, Unresolvable>>,
    texts: HashMap<PathBuf, FileText>,
}

impl Facts {
    /// Notes where a path leads.
    pub fn set_resolved(&mut self, path: PathBuf, answer: Result<AbsPath, Unresolvable>) {
        self.resolved.insert(path, answer);
    }

    /// Notes what a file says.
    pub fn set_text(&mut self, path: PathBuf, answer: FileText) {
        self.texts.insert(path, answer);
    }

    /// Where a path leads.
    pub fn resolved(&self, path: &Path) -> Result<&AbsPath, Unresolvable> {
        match self.resolved.get(path) {
            Some(Ok(path)) => Ok(path),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Unresolvable::Refused("it was never looked up".into())),
        }
    }

    /// What a file says.
    pub fn text(&self, path: &Path) -> FileText {
        let unasked = || FileText::Unreadable("it was never looked up".into());
        self.texts.get(path).cloned().unwrap_or_else(unasked)
    }
}
