//! [`ObjectStore`]: git objects, read without running git and without trusting what is stored.
//!
//! Whoever can write a repository can store anything under any name. So each object is hashed when it
//! is read, and is returned only if the hash is the id by which it was asked for. Replacements
//! (`refs/replace`), grafts and commit graphs are not read at all. Repositories with SHA-256 ids have
//! no objects here.

mod history;
mod pack;

use std::fmt;
use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};

use crate::text::read_bytes;

pub use history::{Found, History, Version};
use pack::Pack;

/// The largest object that is read. Commits and directories are far smaller.
const LARGEST: usize = 32 << 20;
/// How many repositories may lend each other their objects in a row, as in git.
const MOST_ALTERNATES: usize = 5;

/// The id of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 20]);

impl ObjectId {
    /// From 40 hexadecimal digits.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() != 40 {
            return None;
        }
        let mut id = [0; 20];
        for (byte, digits) in id.iter_mut().zip(text.chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(id))
    }

    /// From the bytes of a directory's entry.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The id of a file with this content.
    pub fn of_blob(content: &[u8]) -> Self {
        Self::of(Kind::Blob, content)
    }

    fn of(kind: Kind, content: &[u8]) -> Self {
        let mut hash = Sha1::new();
        hash.update(format!("{} {}\0", kind.name(), content.len()));
        hash.update(content);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

/// An object that is what its id says.
struct Object {
    kind: Kind,
    content: Vec<u8>,
}

/// The objects of a repository.
pub struct ObjectStore {
    dirs: Vec<PathBuf>,
    packs: Vec<Pack>,
}

impl ObjectStore {
    /// The objects below a git directory, and those that other repositories lend it.
    pub fn open(git: &Path) -> Self {
        let mut dirs = vec![git.join("objects")];
        let mut at = 0;
        while let Some(dir) = dirs.get(at).filter(|_| at < MOST_ALTERNATES).cloned() {
            let lent = read_bytes(&dir.join("info/alternates"), 1 << 16).unwrap_or_default();
            let lines = lent.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let paths = lines.filter_map(|line| std::str::from_utf8(line).ok());
            dirs.extend(paths.map(|path| dir.join(path)).take(MOST_ALTERNATES));
            at += 1;
        }
        let packs = dirs.iter().flat_map(|dir| Pack::all(&dir.join("pack"))).collect();
        Self { dirs, packs }
    }

    /// An object, if it is there and is what its id says.
    fn read(&self, id: ObjectId) -> Option<Object> {
        let packed = self.packs.iter().filter_map(|pack| pack.read(id, self));
        let loose = self.dirs.iter().filter_map(|dir| loose(dir, id));
        packed.chain(loose).find(|object| ObjectId::of(object.kind, &object.content) == id)
    }
}

/// An object in a file of its own, whatever it is.
fn loose(dir: &Path, id: ObjectId) -> Option<Object> {
    let name = id.to_string();
    let (first, rest) = name.split_at_checked(2)?;
    let stored = read_bytes(&dir.join(first).join(rest), LARGEST).ok()?;
    let text = inflate(&stored, LARGEST)?;
    let end = text.iter().position(|byte| *byte == 0)?;
    let (heading, content) = text.split_at_checked(end)?;
    let kind = heading.split(|byte| *byte == b' ').next()?;
    let all = [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag];
    let kind = all.into_iter().find(|it| it.name().as_bytes() == kind)?;
    Some(Object { kind, content: content.get(1..)?.to_vec() })
}

/// What a difference in a pack is to, if it is not in that pack itself.
fn loose_base(store: &ObjectStore, id: ObjectId) -> Option<(Kind, Vec<u8>)> {
    let object = store.dirs.iter().find_map(|dir| loose(dir, id))?;
    Some((object.kind, object.content))
}

fn inflate(stored: &[u8], largest: usize) -> Option<Vec<u8>> {
    miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(stored, largest).ok()
}

#[cfg(test)]
mod tests;
