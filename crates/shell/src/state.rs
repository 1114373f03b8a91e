//! What the shell remembers from one command to the next.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::command::{Dir, Value};

/// Directory, variables and functions at one point of the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) dir: Dir,
    pub(crate) home: PathBuf,
    /// Variables that were set in this text: a text, a pattern, or unknown.
    variables: HashMap<String, Value>,
    /// The commands whose output went into a variable.
    sources: HashMap<String, Vec<usize>>,
    /// Variables that reach the environment of commands.
    exported: HashSet<String>,
    /// Functions that change the directory.
    pub(crate) moving_functions: HashSet<String>,
}

impl State {
    pub(crate) fn new(dir: &Path, home: &Path) -> Self {
        Self {
            dir: Dir::Known(dir.to_path_buf()),
            home: home.to_path_buf(),
            variables: HashMap::new(),
            sources: HashMap::new(),
            exported: HashSet::new(),
            moving_functions: HashSet::new(),
        }
    }

    /// The same state in another directory.
    pub(crate) fn at(&self, dir: &Dir) -> Self {
        Self { dir: dir.clone(), ..self.clone() }
    }

    /// A variable's value.
    pub(crate) fn variable(&self, name: &str) -> Value {
        if let Some(value) = self.variables.get(name) {
            return value.clone();
        }
        match (name, &self.dir) {
            ("HOME", _) => Value::text(self.home.display().to_string()),
            ("PWD", Dir::Known(dir)) => Value::text(dir.display().to_string()),
            // Numbers, whichever they are.
            (
                "$" | "!" | "?" | "#" | "RANDOM" | "SECONDS" | "PPID" | "UID" | "EUID" | "LINENO",
                _,
            ) => Value::text("1"),
            _ => unset(),
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: &Value) {
        self.variables.insert(name.to_owned(), expanded(value, &self.home));
    }

    /// Notes which commands' output a variable holds.
    pub(crate) fn fill(&mut self, name: &str, commands: &[usize]) {
        if !commands.is_empty() {
            self.sources.entry(name.to_owned()).or_default().extend(commands);
        }
    }

    /// The commands whose output a variable holds.
    pub(crate) fn sources(&self, name: &str) -> &[usize] {
        self.sources.get(name).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.variables.insert(name.to_owned(), unset());
    }

    pub(crate) fn export(&mut self, name: &str) {
        self.exported.insert(name.to_owned());
    }

    /// Variables of git that later commands see. Set without `export` they may still be in the
    /// environment already, so that counts too.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&String, &Value)> {
        let reaches = |name: &str| {
            self.exported.contains(name) || name.starts_with("GIT_") || name == "CDPATH"
        };
        self.variables.iter().filter(move |(name, _)| reaches(name))
    }

    /// What holds whichever of two ways was taken.
    pub(crate) fn join(&mut self, other: &Self) {
        if self.dir != other.dir {
            self.dir = Dir::Unknown("it depends on which commands ran before");
        }
        for (name, value) in &other.variables {
            if self.variables.get(name) != Some(value) {
                self.variables.insert(name.clone(), unset());
            }
        }
        for name in self.variables.keys().cloned().collect::<Vec<_>>() {
            if !other.variables.contains_key(&name) {
                self.variables.insert(name, unset());
            }
        }
        for (name, commands) in &other.sources {
            self.fill(name, commands);
        }
        self.exported.extend(other.exported.iter().cloned());
        self.moving_functions.extend(other.moving_functions.iter().cloned());
    }

    /// The directory that a word means from here.
    pub(crate) fn directory(&self, value: &Value) -> Dir {
        match value {
            Value::Known { text, tilde: true } => match home_path(text, &self.home) {
                Some(path) => Dir::Known(path),
                None => Dir::Unknown("it is another user's home"),
            },
            Value::Known { text, .. } if text.starts_with('/') => Dir::Known(PathBuf::from(text)),
            Value::Known { text, .. } => match &self.dir {
                Dir::Known(dir) => Dir::Known(dir.join(text)),
                unknown @ Dir::Unknown(_) => unknown.clone(),
            },
            Value::Pattern { .. } => Dir::Unknown("it is a pattern"),
            Value::Unknown { why, .. } => Dir::Unknown(why),
        }
    }
}

fn unset() -> Value {
    Value::Unknown { prefix: String::new(), why: "it depends on a variable" }
}

/// A value with its `~` expanded, as an assignment does.
fn expanded(value: &Value, home: &Path) -> Value {
    let home = |text: &str| home_path(text, home).map(|path| path.display().to_string());
    match value {
        Value::Known { text, tilde: true } => home(text).map_or_else(unset, Value::text),
        Value::Pattern { prefix, tilde: true } => {
            home(prefix).map_or_else(unset, |prefix| Value::Pattern { prefix, tilde: false })
        }
        value => value.clone(),
    }
}

/// What `~` or `~/x` means.
fn home_path(text: &str, home: &Path) -> Option<PathBuf> {
    let rest = text.strip_prefix('~')?;
    if rest.is_empty() {
        return Some(home.to_path_buf());
    }
    rest.strip_prefix('/').map(|below| home.join(below.trim_start_matches('/')))
}
