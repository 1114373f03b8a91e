//! Which project files the user has trusted, by path and content.
//!
//! The store has one entry per path, named by the hash of the path. It holds the hash of the trusted
//! content. So trusting new content replaces the old, and a file that was edited is not trusted until
//! its content is the same again.

use std::io;
use std::path::{Path, PathBuf};

use model::{Digest, FileText};

/// The store of trusted files.
#[derive(Debug, Clone)]
pub struct Trust {
    dir: PathBuf,
}

/// Why trust could not be stored or forgotten.
#[derive(Debug, thiserror::Error)]
#[error("cannot change trust in {}: {error}", .dir.display())]
pub struct TrustError {
    dir: PathBuf,
    error: io::Error,
}

impl Trust {
    /// The store below a state directory.
    pub fn at(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("trust") }
    }

    /// Whether this content at this path is trusted.
    pub fn holds(&self, path: &Path, text: &str) -> bool {
        match facts::read_small(&self.entry(path)) {
            FileText::Text(entry) => entry.lines().next() == Some(&hash(text.as_bytes())),
            FileText::Missing | FileText::Unreadable(_) => false,
        }
    }

    /// Trusts this content at this path and no other. The entry also names the file, for people.
    pub fn add(&self, path: &Path, text: &str) -> Result<(), TrustError> {
        let entry = self.entry(path);
        let new = self.dir.join(format!(".new-{}", std::process::id()));
        let content = format!("{}\n{}\n", hash(text.as_bytes()), path.display());
        create_private(&self.dir)
            .and_then(|()| std::fs::write(&new, content))
            .and_then(|()| std::fs::rename(&new, entry))
            .map_err(|error| self.failed(error))
    }

    /// Ends the trust in a path. Returns whether there was any.
    pub fn forget(&self, path: &Path) -> Result<bool, TrustError> {
        match std::fs::remove_file(self.entry(path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn entry(&self, path: &Path) -> PathBuf {
        self.dir.join(hash(path.as_os_str().as_encoded_bytes()))
    }

    fn failed(&self, error: io::Error) -> TrustError {
        TrustError { dir: self.dir.clone(), error }
    }
}

fn hash(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

fn create_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
