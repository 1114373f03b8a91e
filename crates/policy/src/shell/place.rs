//! From a word to the path it means.

use std::path::{Path, PathBuf};

use model::PathRef;
use shell::{Dir, Value};

/// The directory a command runs in.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) dir: &'a Dir,
    pub(super) home: &'a Path,
}

/// What a word means as a path.
pub(super) enum Target {
    /// This path.
    Path(PathRef),
    /// Some paths below this one.
    Below(PathRef),
    /// No file at all: standard streams and their like.
    NoFile,
    /// Cannot be known.
    Unknown(&'static str),
}

impl Place<'_> {
    pub(super) fn resolve(&self, value: &Value) -> Target {
        match value {
            Value::Known { text, tilde } => self.known(text, *tilde),
            Value::Pattern { prefix, tilde } => {
                // The first wildcard is in the last component at the earliest.
                let dir = prefix.rfind('/').map_or(".", |at| &prefix[..=at]);
                match self.known(dir, *tilde) {
                    Target::Path(path) => Target::Below(path),
                    other => other,
                }
            }
            Value::Unknown { why, .. } => Target::Unknown(why),
        }
    }

    /// The path of a text.
    pub(super) fn known(&self, text: &str, tilde: bool) -> Target {
        if is_no_file(text) {
            return Target::NoFile;
        }
        if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") {
            return Target::Unknown("it is a connection");
        }
        match self.absolute(text, tilde) {
            Ok(at) => Target::Path(PathRef { given: text.to_owned(), at }),
            Err(why) => Target::Unknown(why),
        }
    }

    fn absolute(&self, text: &str, tilde: bool) -> Result<PathBuf, &'static str> {
        if text.is_empty() || text.contains('\0') {
            return Err("it is not a valid path");
        }
        if tilde {
            let rest = text.strip_prefix('~').unwrap_or(text);
            return match rest.strip_prefix('/') {
                _ if rest.is_empty() => Ok(self.home.to_path_buf()),
                Some(below) => Ok(self.home.join(below.trim_start_matches('/'))),
                None => Err("it is another user's home"),
            };
        }
        if text.starts_with('/') {
            return Ok(PathBuf::from(text));
        }
        match self.dir {
            Dir::Known(dir) => Ok(dir.join(text)),
            Dir::Unknown(why) => Err(why),
        }
    }
}

/// Standard streams and devices that keep nothing.
fn is_no_file(text: &str) -> bool {
    matches!(
        text,
        "-" | "/dev/null"
            | "/dev/zero"
            | "/dev/full"
            | "/dev/tty"
            | "/dev/random"
            | "/dev/urandom"
            | "/dev/stdin"
            | "/dev/stdout"
            | "/dev/stderr"
    ) || text.strip_prefix("/dev/fd/").is_some_and(|fd| fd.bytes().all(|b| b.is_ascii_digit()))
}
