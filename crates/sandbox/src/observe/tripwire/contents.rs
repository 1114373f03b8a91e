//! [`Contents`]: what the tripwire asks of its owner, who knows the plan.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::attempt::Attempt;
use crate::monitor::Ruling;

/// What is where, and what a denied attempt gets.
pub trait Contents {
    /// What the path is, to the sandbox. Called for every lookup that the kernel has not cached,
    /// and it is how [`Operation::Look`](crate::Operation::Look) becomes known. `pid` is the asking thread, 0 when it is
    /// outside the process namespace of the mount.
    fn look(&mut self, path: &Path, pid: u32) -> Seen;

    /// The names that a listing of a [`Seen::Way`] shows, always in the same order.
    fn names(&mut self, path: &Path) -> Vec<(OsString, Seen)>;

    /// Where a [`Seen::Link`] leads. At most 4,095 bytes.
    fn target(&mut self, path: &Path) -> Option<PathBuf>;

    /// An attempt on something that is not granted. The caller is still blocked in its call. No
    /// attempt succeeds: [`Ruling::Continue`] gets an error like any other.
    fn attempt(&mut self, attempt: Attempt) -> Ruling;
}

/// What a path is, to the sandbox.
///
/// A path that something is mounted over must be [`Way`](Self::Way) or [`MountPoint`](Self::MountPoint)
/// for the whole run: when it is suddenly absent or of another kind, the kernel takes the mount
/// away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Not there: the error to say so with, normally ENOENT. Creation at a path is tried only
    /// after ENOENT.
    Absent(i32),
    /// There, and the caller only looks: it is told ENOENT. The kernel asks again the next time,
    /// because an attempt to open it must become known.
    Hidden,
    /// A directory that leads to a granted path, or is one: may be entered and listed.
    Way,
    /// A directory that is not granted. It may be entered; listing it is an attempt.
    Directory,
    /// Anything else that is not granted.
    File,
    /// A file that a granted file is mounted over.
    MountPoint,
    /// A directory that the run has created, and that is mounted over the name as soon as it exists. It
    /// can be removed or replaced, and then the kernel takes the mount away.
    PrivateDirectory,
    /// The same for anything else.
    PrivateFile,
    /// A symbolic link that leads to a granted path.
    Link,
}
