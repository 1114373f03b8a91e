//! The files that make up a configuration, in order.

use std::path::{Path, PathBuf};

use facts::Places;
use model::{FileText, Origin};
use sha2::{Digest, Sha256};

use crate::Trust;
use crate::diagnose::diagnose;
use crate::file::File;
use crate::load::Problem;

/// The project's own configuration file, in the workspace.
pub const PROJECT_FILE: &str = "ringwall.toml";

/// A file named by the user.
#[derive(Debug, Clone)]
pub enum Explicit {
    /// With `--config`.
    Flag(PathBuf),
    /// With `RINGWALL_CONFIG`.
    Environment(PathBuf),
}

/// One file that was read.
pub(crate) struct Layer {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) file: File,
    /// Whether what it widens counts.
    pub(crate) trusted: bool,
}

impl Layer {
    pub(crate) fn origin(&self, span: &std::ops::Range<usize>) -> Origin {
        Origin::File { path: self.path.clone(), line: line_of(&self.text, span.start) }
    }

    /// The directory that relative paths start at.
    pub(crate) fn base(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    pub(crate) fn parse(path: &Path, text: String, trusted: bool) -> Result<Self, Vec<Problem>> {
        let file = toml::from_str(&text).map_err(|error| diagnose(path, &text, &error))?;
        Ok(Self { path: path.to_path_buf(), text, file, trusted })
    }
}

/// Reads every file that is there. A file that cannot be read is a problem, never an empty one.
pub(crate) fn read_layers(
    places: &Places,
    workspace: &Path,
    explicit: Option<&Explicit>,
) -> Result<Vec<Layer>, Vec<Problem>> {
    let trust = Trust::at(&places.state_dir);
    let project = workspace.join(PROJECT_FILE);
    let mut layers = Vec::new();
    let mut problems = Vec::new();
    let mut read = |path: &Path, need: Need, always_trusted: bool| {
        let text = match (facts::read_small(path), need) {
            (FileText::Text(text), _) => text,
            (FileText::Missing, Need::Optional) => return,
            (FileText::Missing, Need::Required) => {
                let hint = Some("name an existing file, or leave the setting out".into());
                return problems.push(Problem::new(path, 0, "there is no such file".into(), hint));
            }
            (FileText::Unreadable(why), _) => {
                return problems.push(Problem::new(path, 0, why, None));
            }
        };
        let trusted = always_trusted || trust.holds(path, &text);
        match Layer::parse(path, text, trusted) {
            Ok(layer) => layers.push(layer),
            Err(found) => problems.extend(found),
        }
    };
    read(&places.system_config, Need::Optional, true);
    read(&places.user_config(), Need::Optional, true);
    read(&project, Need::Optional, false);
    match explicit {
        Some(Explicit::Flag(path)) => read(path, Need::Required, true),
        // A project can bring settings that set variables, so a file that the variable names
        // inside the workspace is trusted no more than the project's own.
        Some(Explicit::Environment(path)) => {
            read(path, Need::Required, !path.starts_with(workspace));
        }
        None => {}
    }
    if problems.is_empty() { Ok(layers) } else { Err(problems) }
}

#[derive(Clone, Copy)]
enum Need {
    Required,
    Optional,
}

/// A short fingerprint of everything that was read.
pub(crate) fn fingerprint(layers: &[Layer]) -> String {
    let mut hash = Sha256::new();
    for layer in layers {
        hash.update(layer.path.as_os_str().as_encoded_bytes());
        hash.update([0, u8::from(layer.trusted)]);
        hash.update(layer.text.as_bytes());
        hash.update([0]);
    }
    hex(&hash.finalize()).chars().take(16).collect()
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The line of a byte offset, counted from one.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
