//! The files that make up a configuration, in order.

use std::path::{Path, PathBuf};

use facts::{Places, Resolver};
use model::{Digest, FileText, Origin};

use crate::Trust;
use crate::diagnose::diagnose;
use crate::file::File;
use crate::load::Problem;
use crate::project::{Project, is_brought, read_project_file};

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
    pub(crate) standing: Standing,
}

/// How far a file is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All of it applies.
    Trusted,
    /// What it widens is ignored and reported.
    Untrusted,
    /// It belongs to a checkout around this one. It can only narrow; trusting it changes nothing.
    Around,
}

impl Layer {
    pub(crate) fn origin(&self, span: &std::ops::Range<usize>) -> Origin {
        Origin::File { path: self.path.clone(), line: line_of(&self.text, span.start) }
    }

    /// The directory that relative paths start at.
    pub(crate) fn base(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    pub(crate) fn parse(
        path: &Path,
        text: String,
        standing: Standing,
    ) -> Result<Self, Vec<Problem>> {
        let file = toml::from_str(&text).map_err(|error| diagnose(path, &text, &error))?;
        Ok(Self { path: path.to_path_buf(), text, file, standing })
    }
}

/// Reads every file that exists, except `but`. A file that cannot be read is a problem; it never
/// counts as an empty one.
pub(crate) fn read_layers(
    places: &Places,
    project: &Project,
    explicit: Option<&Explicit>,
    but: Option<&Path>,
) -> Result<Vec<Layer>, Vec<Problem>> {
    let mut stack = Stack { layers: Vec::new(), problems: Vec::new() };
    // A trust store that came with the project would trust the project.
    let trust = Trust::at(&places.state_dir);
    let trust = Some(trust).filter(|_| !is_brought(project, places, &places.state_dir));
    let earned = |path: &Path, text: &str| match &trust {
        Some(trust) if trust.holds(path, text) => Standing::Trusted,
        _ => Standing::Untrusted,
    };
    stack.read(&places.system_config, Need::Optional, |_| Standing::Trusted);
    let user = places.user_config();
    let brought = is_brought(project, places, &places.config_dir);
    stack.read(&user, Need::Optional, |text| {
        if brought { earned(&user, text) } else { Standing::Trusted }
    });
    for path in project.files_around() {
        stack.project(&path, |_| Standing::Around);
    }
    for path in project.files().iter().filter(|path| Some(path.as_path()) != but) {
        stack.project(path, |text| earned(path, text));
    }
    match explicit {
        Some(Explicit::Flag(path)) => stack.read(path, Need::Required, |_| Standing::Trusted),
        Some(Explicit::Environment(path)) => match Resolver::default().resolve(path) {
            // The real file is read and named, because the link could be changed meanwhile.
            Ok(real) => {
                let through_proc = real.as_path().starts_with("/proc");
                let brought = project.could_bring(path);
                stack.read(real.as_path(), Need::Required, |text| match brought {
                    true if through_proc => Standing::Untrusted,
                    true => earned(real.as_path(), text),
                    false => Standing::Trusted,
                });
            }
            Err(error) => {
                stack.problems.push(Problem::new(path, 0, error.to_string(), None));
            }
        },
        None => {}
    }
    if stack.problems.is_empty() { Ok(stack.layers) } else { Err(stack.problems) }
}

#[derive(Clone, Copy)]
enum Need {
    Required,
    Optional,
}

/// The layers so far, and what is wrong with them.
struct Stack {
    layers: Vec<Layer>,
    problems: Vec<Problem>,
}

impl Stack {
    fn read(&mut self, path: &Path, need: Need, standing: impl FnOnce(&str) -> Standing) {
        match (facts::read_small(path), need) {
            (FileText::Text(text), _) => self.add(path, text, standing),
            (FileText::Missing, Need::Optional) => {}
            (FileText::Missing, Need::Required) => {
                let hint = Some("name an existing file, or remove the setting".into());
                self.problems.push(Problem::new(path, 0, "no such file".into(), hint));
            }
            (FileText::Unreadable(why), _) => {
                self.problems.push(Problem::new(path, 0, why, None));
            }
        }
    }

    fn project(&mut self, path: &Path, standing: impl FnOnce(&str) -> Standing) {
        match read_project_file(path) {
            Ok(Some(text)) => self.add(path, text, standing),
            Ok(None) => {}
            Err(problem) => self.problems.push(problem),
        }
    }

    fn add(&mut self, path: &Path, text: String, standing: impl FnOnce(&str) -> Standing) {
        let standing = standing(&text);
        match Layer::parse(path, text, standing) {
            Ok(layer) => self.layers.push(layer),
            Err(found) => self.problems.extend(found),
        }
    }
}

/// A short fingerprint of everything that was read.
pub(crate) fn fingerprint(layers: &[Layer]) -> String {
    let mut read = Vec::new();
    for layer in layers {
        read.extend(layer.path.as_os_str().as_encoded_bytes());
        read.extend([0, layer.standing as u8]);
        read.extend(layer.text.as_bytes());
        read.push(0);
    }
    Digest::of(&read).to_string().chars().take(16).collect()
}

/// The line of a byte offset, counted from one.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
