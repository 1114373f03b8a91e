//! Which number the kernel knows which path by.
//!
//! A node lives for as long as the kernel remembers it: every answer that names it counts, and
//! FORGET takes the count back. One path has one number, because a mount point whose name suddenly
//! leads to another number is unmounted by the kernel.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::abi::ROOT;

/// How many nodes the kernel may make us remember, and how many bytes of paths: about 10 MB with the
/// tables. Only what exists and is not granted becomes a node, and the kernel forgets nothing before it
/// needs the memory, so a run that looks at more than this is told that there is no memory left for it.
const MOST_NODES: usize = 50_000;
const MOST_PATH_BYTES: usize = 4 << 20;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A directory that may be entered and listed.
    Way,
    /// A directory that is not granted.
    Directory,
    /// Anything else that is not granted.
    File,
    /// A file that a granted file is mounted over.
    MountPoint,
    /// A directory that the run has created.
    PrivateDirectory,
    /// Anything else that the run has created.
    PrivateFile,
    /// A symbolic link, with the length of its target.
    Link(u32),
}

impl Kind {
    /// The kind of file, as `st_mode` has it.
    pub(super) fn format(self) -> u32 {
        match self {
            Self::Way | Self::Directory | Self::PrivateDirectory => libc::S_IFDIR,
            Self::File | Self::MountPoint | Self::PrivateFile => libc::S_IFREG,
            Self::Link(_) => libc::S_IFLNK,
        }
    }

    /// Whether the plan, which never changes during a run, says what this is. The rest is the
    /// host's, and may change.
    pub(super) fn is_planned(self) -> bool {
        matches!(self, Self::Way | Self::MountPoint | Self::Link(_))
    }
}

/// What the kernel remembers.
#[derive(Debug)]
pub(super) struct Nodes {
    known: HashMap<u64, Node>,
    /// By the text of the path.
    numbers: HashMap<Arc<OsStr>, u64>,
    next: u64,
    path_bytes: usize,
    node_room: usize,
    path_room: usize,
}

#[derive(Debug)]
struct Node {
    path: Arc<OsStr>,
    kind: Kind,
    lookups: u64,
}

impl Nodes {
    /// Only the root, which is always a way.
    pub(super) fn new() -> Self {
        let path: Arc<OsStr> = OsStr::new("/").into();
        let root = Node { path: path.clone(), kind: Kind::Way, lookups: 1 };
        Self {
            known: HashMap::from([(ROOT, root)]),
            numbers: HashMap::from([(path, ROOT)]),
            next: ROOT + 1,
            path_bytes: 0,
            node_room: MOST_NODES,
            path_room: MOST_PATH_BYTES,
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<(&Path, Kind)> {
        self.known.get(&number).map(|node| (Path::new(&*node.path), node.kind))
    }

    pub(super) fn number(&self, path: &Path) -> Option<u64> {
        self.numbers.get(path.as_os_str()).copied()
    }

    /// The path of a name in a directory.
    pub(super) fn child(&self, parent: u64, name: &OsStr) -> Option<PathBuf> {
        self.get(parent).map(|(path, _)| path.join(name))
    }

    /// Counts one more lookup of a path. None when there is no room for it.
    pub(super) fn remember(&mut self, path: &Path, kind: Kind) -> Option<u64> {
        if let Some(number) = self.number(path)
            && let Some(node) = self.known.get_mut(&number)
            && node.kind.format() == kind.format()
        {
            node.kind = kind;
            node.lookups = node.lookups.saturating_add(1);
            return Some(number);
        }
        // A path that has become another kind of file gets a new number; the old one stays until
        // the kernel forgets it.
        self.add(path, kind)
    }

    /// The same for a listing, which must not change what the kernel already knows: None also
    /// when the path was another kind of file.
    pub(super) fn remember_listed(&mut self, path: &Path, kind: Kind) -> Option<u64> {
        let known = self.number(path).and_then(|number| self.get(number));
        match known {
            Some((_, before)) if before.format() != kind.format() => None,
            _ => self.remember(path, kind),
        }
    }

    /// Gives a path another number the next time: what the kernel has mounted there goes.
    pub(super) fn renew(&mut self, path: &Path) {
        self.numbers.remove(path.as_os_str());
    }

    /// Takes lookups back, and drops the node with the last one.
    pub(super) fn forget(&mut self, number: u64, lookups: u64) {
        let Some(node) = self.known.get_mut(&number).filter(|_| number != ROOT) else {
            return;
        };
        node.lookups = node.lookups.saturating_sub(lookups);
        if node.lookups > 0 {
            return;
        }
        if let Some(node) = self.known.remove(&number) {
            self.path_bytes = self.path_bytes.saturating_sub(node.path.len());
            if self.number(Path::new(&*node.path)) == Some(number) {
                self.numbers.remove(&node.path);
            }
        }
    }

    fn add(&mut self, path: &Path, kind: Kind) -> Option<u64> {
        let path_bytes = self.path_bytes + path.as_os_str().len();
        if self.known.len() >= self.node_room || path_bytes > self.path_room {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.path_bytes = path_bytes;
        let path: Arc<OsStr> = path.as_os_str().into();
        self.numbers.insert(path.clone(), number);
        self.known.insert(number, Node { path, kind, lookups: 1 });
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_number_until_it_is_forgotten() {
        let mut nodes = Nodes::new();
        let path = Path::new("/home");
        let number = nodes.remember(path, Kind::Way).unwrap();
        assert_eq!(nodes.remember(path, Kind::Directory), Some(number));
        assert_eq!(nodes.get(number), Some((path, Kind::Directory)));

        nodes.forget(number, 1);
        assert_eq!(nodes.number(path), Some(number));
        nodes.forget(number, 1);
        assert_eq!((nodes.get(number), nodes.number(path)), (None, None));
        assert_ne!(nodes.remember(path, Kind::Way), Some(number));
    }

    #[test]
    fn forgetting_leaves_nothing_behind() {
        let mut nodes = Nodes::new();
        for round in 0..3 {
            let numbers: Vec<u64> = (0..100)
                .map(|n| nodes.remember(Path::new(&format!("/{round}/{n}")), Kind::File).unwrap())
                .collect();
            for number in numbers {
                nodes.forget(number, u64::MAX);
                nodes.forget(number, 1);
            }
        }
        assert_eq!((nodes.known.len(), nodes.numbers.len(), nodes.path_bytes), (1, 1, 0));
    }

    #[test]
    fn there_is_an_end_to_what_is_remembered() {
        let mut nodes = Nodes { node_room: 3, ..Nodes::new() };
        let first = nodes.remember(Path::new("/a"), Kind::File).unwrap();
        assert!(nodes.remember(Path::new("/b"), Kind::File).is_some());
        assert_eq!(nodes.remember(Path::new("/c"), Kind::File), None);
        // What is known needs no room, and what is forgotten makes some.
        assert_eq!(nodes.remember(Path::new("/a"), Kind::File), Some(first));
        nodes.forget(first, 2);
        assert!(nodes.remember(Path::new("/c"), Kind::File).is_some());

        let mut nodes = Nodes { path_room: 4, ..Nodes::new() };
        assert!(nodes.remember(Path::new("/abc"), Kind::File).is_some());
        assert_eq!(nodes.remember(Path::new("/d"), Kind::File), None);
    }

    #[test]
    fn the_root_stays() {
        let mut nodes = Nodes::new();
        nodes.forget(ROOT, u64::MAX);
        assert_eq!(nodes.get(ROOT), Some((Path::new("/"), Kind::Way)));
    }

    #[test]
    fn another_kind_of_file_is_another_node() {
        let mut nodes = Nodes::new();
        let path = Path::new("/home/target");
        let file = nodes.remember(path, Kind::File).unwrap();
        assert_eq!(nodes.remember_listed(path, Kind::Way), None);
        let directory = nodes.remember(path, Kind::Directory).unwrap();
        assert_ne!(file, directory);

        // The old number keeps its path, and going away does not take the new one along.
        assert_eq!(nodes.get(file), Some((path, Kind::File)));
        nodes.forget(file, 1);
        assert_eq!(nodes.number(path), Some(directory));
    }
}
