//! Absolute paths without `.`, `..` or empty components.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The longest path a Linux system call takes, with its final NUL.
const PATH_MAX: usize = 4096;

/// An absolute path whose components are plain names.
///
/// Comparison is by component, so `/work/proj-evil` is never inside `/work/proj`.
#[derive(Debug, Clone, Eq)]
pub struct AbsPath(PathBuf);

// The text is clean, so that equal paths have equal bytes: no need to take them apart.
impl PartialEq for AbsPath {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_os_str() == other.0.as_os_str()
    }
}

// As by component: what is in a directory comes right after it, before names that are longer than
// the directory's own.
impl Ord for AbsPath {
    fn cmp(&self, other: &Self) -> Ordering {
        let (own, others) = (self.0.as_os_str().as_bytes(), other.0.as_os_str().as_bytes());
        match std::iter::zip(own, others).find(|(own, other)| own != other) {
            Some((b'/', _)) => Ordering::Less,
            Some((_, b'/')) => Ordering::Greater,
            Some((own, other)) => own.cmp(other),
            None => own.len().cmp(&others.len()),
        }
    }
}

impl PartialOrd for AbsPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::hash::Hash for AbsPath {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.as_os_str().hash(state);
    }
}

// A path that is not text is shown as nearly as text can; between processes it is exact.
impl Serialize for AbsPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&self.0.display())
        } else {
            self.0.as_os_str().serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for AbsPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = if deserializer.is_human_readable() {
            PathBuf::deserialize(deserializer)?
        } else {
            OsString::deserialize(deserializer)?.into()
        };
        Self::lexical(&path).map_err(serde::de::Error::custom)
    }
}

/// Why a text is not a usable path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing there.
    #[error("the path is empty")]
    Empty,
    /// System calls end a path at NUL, checks may not.
    #[error("the path contains a NUL byte")]
    Nul,
    /// Longer than the kernel takes.
    #[error("the path is too long")]
    TooLong,
    /// An absolute path is needed.
    #[error("the path is not absolute")]
    Relative,
    /// `~name` belongs to a user database that is not consulted.
    #[error("`~name` cannot be expanded; write the whole path")]
    OtherHome,
}

impl AbsPath {
    /// The file system's root.
    pub fn root() -> Self {
        Self(PathBuf::from("/"))
    }

    /// Cleans an absolute path by its text alone: `a/../b` becomes `b` whatever `a` is.
    ///
    /// This is what a path library does. What the kernel reaches can differ; that needs a
    /// [`Query::Resolve`](crate::Query::Resolve).
    pub fn lexical(path: &Path) -> Result<Self, PathError> {
        check(path.as_os_str())?;
        if !path.is_absolute() {
            return Err(PathError::Relative);
        }
        let mut clean = PathBuf::from("/");
        for component in path.components() {
            match component {
                Component::Normal(name) => clean.push(name),
                Component::ParentDir => {
                    clean.pop();
                }
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(Self(clean))
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether this is `ancestor` or a path below it.
    pub fn is_within(&self, ancestor: &Self) -> bool {
        let (own, above) = (self.0.as_os_str().as_bytes(), ancestor.0.as_os_str().as_bytes());
        // Lengths first: asked of a whole plan, the names themselves are seldom looked at.
        let ends_there = match own.get(above.len()) {
            Some(next) => *next == b'/' || above.len() == 1,
            None => own.len() == above.len(),
        };
        ends_there && own.starts_with(above)
    }

    /// The path of an entry in this directory.
    #[must_use]
    pub fn join(&self, name: &OsStr) -> Self {
        Self(self.0.join(name))
    }

    /// The directory above; the root is its own parent.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0.parent().unwrap_or(&self.0).to_path_buf())
    }

    /// This path, and every directory above it, up to the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        self.0.ancestors().map(|path| Self(path.to_path_buf()))
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// The absolute path a text means: `~` is `home`, anything relative starts at `base`.
///
/// `..` is kept, because only the file system knows what it reaches.
pub fn absolute(text: &str, base: &Path, home: &AbsPath) -> Result<PathBuf, PathError> {
    check(OsStr::new(text))?;
    let path = match text.strip_prefix('~') {
        Some("") => home.as_path().to_path_buf(),
        Some(rest) => match rest.strip_prefix('/') {
            // `~//x` must not turn into `/x`.
            Some(below) => home.as_path().join(below.trim_start_matches('/')),
            None => return Err(PathError::OtherHome),
        },
        None => base.join(text),
    };
    check(path.as_os_str())?;
    if path.is_absolute() { Ok(path) } else { Err(PathError::Relative) }
}

fn check(text: &OsStr) -> Result<(), PathError> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        Err(PathError::Empty)
    } else if bytes.contains(&0) {
        Err(PathError::Nul)
    } else if bytes.len() >= PATH_MAX {
        Err(PathError::TooLong)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(path: &str) -> String {
        AbsPath::lexical(Path::new(path)).unwrap().to_string()
    }

    #[test]
    fn lexical_cleaning_never_climbs_above_the_root() {
        assert_eq!(clean("/a/./b//c/../d/"), "/a/b/d");
        assert_eq!(clean("/../../etc"), "/etc");
        assert_eq!(clean("/"), "/");
    }

    #[test]
    fn a_sibling_with_the_same_prefix_is_outside() {
        let project = AbsPath::lexical(Path::new("/work/proj")).unwrap();
        let inside = |path| AbsPath::lexical(Path::new(path)).unwrap().is_within(&project);
        assert!(inside("/work/proj"));
        assert!(inside("/work/proj/a"));
        assert!(!inside("/work/proj-evil/a"));
        assert!(!inside("/work/projx"));
        assert!(!inside("/work"));
    }

    proptest::proptest! {
        #[test]
        fn paths_are_in_the_order_of_their_components(
            one in "(/[a.~ -]{1,3}){0,4}", other in "(/[a.~ -]{1,3}){0,4}",
        ) {
            let path = |text: String| AbsPath::lexical(Path::new(&format!("/{text}"))).unwrap();
            let (one, other) = (path(one), path(other));
            proptest::prop_assert_eq!(one.cmp(&other), one.as_path().cmp(other.as_path()));
        }
    }

    #[test]
    fn texts_that_are_no_path_are_refused() {
        let home = AbsPath::lexical(Path::new("/home/u")).unwrap();
        let at = |text: &str| absolute(text, Path::new("/w"), &home);
        assert_eq!(at(""), Err(PathError::Empty));
        assert_eq!(at("a\0b"), Err(PathError::Nul));
        assert_eq!(at("~root/x"), Err(PathError::OtherHome));
        assert_eq!(at(&"a".repeat(5000)), Err(PathError::TooLong));
    }

    #[test]
    fn tilde_and_relative_paths_become_absolute() {
        let home = AbsPath::lexical(Path::new("/home/u")).unwrap();
        let at = |text: &str| absolute(text, Path::new("/w"), &home).unwrap();
        assert_eq!(at("~"), Path::new("/home/u"));
        assert_eq!(at("~/x"), Path::new("/home/u/x"));
        assert_eq!(at("~//etc/passwd"), Path::new("/home/u/etc/passwd"));
        assert_eq!(at("x/../y"), Path::new("/w/x/../y"));
        assert_eq!(at("/x"), Path::new("/x"));
    }
}
