//! [`load`]: reads every file and merges them into a policy.

use std::fmt;
use std::path::{Path, PathBuf};

use facts::Places;
use model::{AbsPath, Level, Origin};
use policy::Policy;

use crate::layer::{self, Explicit, Layer, Standing};
use crate::merge::{Merge, Widening};
use crate::project::Project;

/// What to load.
#[derive(Debug)]
pub struct Request<'a> {
    /// Where files are.
    pub places: &'a Places,
    /// The directory the agent works in, free of links.
    pub workspace: &'a AbsPath,
    /// The project whose files apply.
    pub project: &'a Project,
    /// A file the user named.
    pub explicit: Option<Explicit>,
    /// Variables of the older system.
    pub aliases: Aliases,
    /// What flags chose.
    pub selection: Selection,
}

/// Variables of the older content filter. They apply where no file sets the same key.
#[derive(Debug, Clone, Default)]
pub struct Aliases {
    /// The quarantine directory, with the variable's name.
    pub quarantine_dir: Option<(String, String)>,
    /// `rewrite` or `block`, with the variable's name.
    pub quarantine_mode: Option<(String, String)>,
}

impl Aliases {
    /// Reads the variables through `get`.
    pub fn from_environment(get: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| {
            let set = |name: &&str| {
                get(name).filter(|value| !value.is_empty()).map(|value| ((*name).to_owned(), value))
            };
            names.iter().find_map(set)
        };
        Self {
            quarantine_dir: first(&["CONTENT_FILTER_SANDBOX_DIR", "CONTENT_FILTER_SHARED_DIR"]),
            quarantine_mode: first(&["CONTENT_FILTER_ENFORCER_MODE"]),
        }
    }
}

/// What flags chose.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// A phase of the configuration.
    pub phase: Option<String>,
    /// A level, which beats the phase's.
    pub level: Option<Level>,
}

/// A policy, and what to report about it.
#[derive(Debug)]
pub struct Loaded {
    /// The effective rules.
    pub policy: Policy,
    /// The files that were read, in order.
    pub files: Vec<PathBuf>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    /// What would widen but is ignored: lines of untrusted files, and variables that name an unusable
    /// directory.
    pub ignored: Vec<Widening>,
    /// A short fingerprint of the files.
    pub fingerprint: String,
}

impl Loaded {
    /// The ignored lines that will apply after the user has trusted their file.
    pub fn untrusted(&self) -> impl Iterator<Item = &Widening> {
        self.ignored.iter().filter(|widening| widening.origin.file().is_some())
    }
}

/// Something the user should know about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub origin: Origin,
    /// What.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.text)
    }
}

/// Why the configuration cannot be used. Holds every problem, not only the first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct LoadError {
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, or the flag.
    pub origin: Origin,
    /// What is wrong.
    pub text: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(path: &Path, line: usize, text: String, hint: Option<String>) -> Self {
        Self { origin: Origin::File { path: path.to_path_buf(), line }, text, hint }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            // The problem is the whole file, not one line.
            Origin::File { path, line: 0 } => write!(f, "{}: {}", path.display(), self.text)?,
            origin => write!(f, "{origin}: {}", self.text)?,
        }
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// Reads and merges every layer.
pub fn load(request: &Request<'_>) -> Result<Loaded, LoadError> {
    layer::read_layers(request.places, request.project, request.explicit.as_ref(), None)
        .and_then(|layers| merge(request, &layers))
        .map_err(|problems| LoadError { problems })
}

/// Like [`load`], with one text instead of all files.
pub fn load_text(request: &Request<'_>, path: &Path, text: &str) -> Result<Loaded, LoadError> {
    Layer::parse(path, text.to_owned(), Standing::Trusted)
        .and_then(|layer| merge(request, &[layer]))
        .map_err(|problems| LoadError { problems })
}

fn merge(request: &Request<'_>, layers: &[Layer]) -> Result<Loaded, Vec<Problem>> {
    let mut merge = Merge::new(request.places);
    merge.aliases(&request.aliases, request.workspace);
    for layer in layers {
        merge.layer(layer);
    }
    merge.select(&request.selection);
    let merged = merge.finish()?;
    Ok(Loaded {
        policy: merged.policy,
        files: layers.iter().map(|layer| layer.path.clone()).collect(),
        warnings: merged.warnings,
        ignored: merged.ignored,
        fingerprint: layer::fingerprint(layers),
    })
}

/// The lines of a file that would widen the layers below it.
pub fn widening_of(places: &Places, path: &Path, text: &str) -> Result<Vec<Widening>, LoadError> {
    let failed = |problems| LoadError { problems };
    let mut merge = Merge::new(places);
    let project = Project::around(path.parent().unwrap_or(path), &places.home);
    for layer in layer::read_layers(places, &project, None, Some(path)).map_err(failed)? {
        merge.layer(&layer);
    }
    // Only this file's own lines are wanted.
    merge.forget_ignored();
    let layer = Layer::parse(path, text.to_owned(), Standing::Untrusted).map_err(failed)?;
    merge.layer(&layer);
    Ok(merge.finish().map_err(failed)?.ignored)
}
