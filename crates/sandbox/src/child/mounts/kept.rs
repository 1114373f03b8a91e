//! [`Kept`]: the private layer of a workspace, which its runs share one after the other.
//!
//! The directory belongs to the supervisor, which has locked it. A run sees parts of it only, each
//! mounted at its own place, and cannot name what is around them. So no name in the directory itself is
//! made by a run: a link that a run leaves can only lead somewhere from inside a part.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use model::{AbsPath, Kind, Piece, Plan};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::layer::{Common, Shared, Sync, over};
use super::store::Store;
use super::tree::{clone_tree, open_without_links};
use crate::sys::{self, MOUNT_NODEV, MOUNT_NOSUID};

/// The parts of a layer: directories that are private as a whole, and what is written over the home
/// directory. The supervisor creates them.
const OWN: &str = "own";
const UPPER: &str = "upper";
const WORK: &str = "work";

/// The longest name of a file.
const LONGEST_NAME: usize = 255;

/// The directory of a layer, opened before anything is mounted.
pub(super) struct Kept<'a> {
    dir: OwnedFd,
    /// The pieces that are written over the home directory.
    over_home: Option<Common<'a>>,
    /// Mounted when the first of them is.
    mounted: OnceLock<io::Result<Shared>>,
}

impl<'a> Kept<'a> {
    pub(super) fn open(dir: &AbsPath, plan: &'a Plan) -> io::Result<Self> {
        let dir = open_without_links(dir.as_path(), OFlags::PATH | OFlags::DIRECTORY)?;
        let lasting =
            plan.pieces.iter().filter(|piece| piece.is_layered() && piece.kind == Kind::Overlay);
        let over_home = Common::in_home(&plan.home, lasting.map(|piece| &piece.path));
        Ok(Self { dir, over_home, mounted: OnceLock::new() })
    }

    /// Whether a piece is written over the home directory.
    pub(super) fn has(&self, piece: &Piece) -> bool {
        self.over_home.as_ref().is_some_and(|common| common.has(piece))
    }

    /// The host's directory with what is kept on top. `None` where the kernel cannot do that.
    pub(super) fn part(&self, piece: &Piece, store: &Store<'_>) -> Option<io::Result<OwnedFd>> {
        let common = self.over_home.as_ref().filter(|common| common.has(piece))?;
        let mounted = self.mounted.get_or_init(|| {
            let (upper, work) = (self.child(UPPER)?, self.child(WORK)?);
            let tree = over(common.lower(), upper.as_fd(), work.as_fd(), Sync::Never)?;
            Shared::of(tree, store)
        });
        Some(mounted.as_ref().ok()?.part(common, &piece.path))
    }

    /// Why nothing is kept of what is written over the home directory.
    pub(super) fn failure(&self) -> Option<String> {
        let error = self.mounted.get()?.as_ref().err()?;
        Some(format!(
            "the private layer: {error}; changes to the files of toolchains are deleted at the end \
             of the run"
        ))
    }

    /// The private directory for a path.
    pub(super) fn directory(&self, path: &AbsPath) -> io::Result<OwnedFd> {
        let own = self.child(OWN)?;
        let name = flat(path).ok_or(Errno::NAMETOOLONG)?;
        match rustix::fs::mkdirat(&own, name.as_str(), Mode::from(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let tree = clone_tree(own.as_fd(), Path::new(&name))?;
        sys::set_mount(tree.as_fd(), MOUNT_NOSUID | MOUNT_NODEV, 0)?;
        Ok(tree)
    }

    fn child(&self, name: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.dir, name, flags, Mode::empty())?)
    }
}

/// A path as one name, different for each path. `None` if it is too long.
fn flat(path: &AbsPath) -> Option<String> {
    let mut name = String::new();
    for byte in path.as_path().as_os_str().as_bytes() {
        match byte {
            b'/' => name.push('+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => {
                name.push(char::from(*byte));
            }
            other => name.push_str(&format!("%{other:02x}")),
        }
    }
    (name.len() <= LONGEST_NAME).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_a_name_of_its_own() {
        let name = |path: &str| flat(&AbsPath::lexical(Path::new(path)).unwrap());
        assert_eq!(name("/home/u/.cache").as_deref(), Some("+home+u+.cache"));
        assert_eq!(name("/home/u+/.cache").as_deref(), Some("+home+u%2b+.cache"));
        assert_eq!(name("/a%2b").as_deref(), Some("+a%252b"));
        assert_eq!(name(&format!("/{}", "a".repeat(300))), None);
    }
}
