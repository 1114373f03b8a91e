//! Which project files the user has trusted, by path and content.
//!
//! One empty-handed file per trusted content, named by its hash: adding is atomic, checking is one
//! look, and any edit of the project file ends the trust.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::layer::hex;

/// The store of trusted files.
#[derive(Debug, Clone)]
pub struct Trust {
    dir: PathBuf,
}

/// Why trust could not be stored.
#[derive(Debug, thiserror::Error)]
#[error("cannot store trust in {}: {error}", .dir.display())]
pub struct TrustError {
    dir: PathBuf,
    error: io::Error,
}

impl Trust {
    /// The store below a state directory.
    pub fn at(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("trust") }
    }

    /// Whether this content at this path was trusted.
    pub fn holds(&self, path: &Path, text: &str) -> bool {
        self.dir.join(mark(path, text)).symlink_metadata().is_ok_and(|entry| entry.is_file())
    }

    /// Trusts this content at this path. The entry says which file it stands for.
    pub fn add(&self, path: &Path, text: &str) -> Result<(), TrustError> {
        let store = || {
            create_private(&self.dir)?;
            std::fs::write(self.dir.join(mark(path, text)), path.display().to_string() + "\n")
        };
        store().map_err(|error| TrustError { dir: self.dir.clone(), error })
    }
}

fn mark(path: &Path, text: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_encoded_bytes());
    hash.update([0]);
    hash.update(text.as_bytes());
    hex(&hash.finalize())
}

fn create_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
