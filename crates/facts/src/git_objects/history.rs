//! [`History`]: what a path was in the commits that lead to some others.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use super::{Kind, ObjectId, ObjectStore};

/// What a path was in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    /// The mode: `0o100644`, `0o100755`, `0o120000` for a link, `0o40000` for a directory.
    pub mode: u32,
    /// The content.
    pub id: ObjectId,
}

/// The answer to a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Some commit has it.
    Yes,
    /// No commit has it.
    No,
    /// There was not enough time to look at all of them.
    Unknown,
}

/// The commits that lead to others.
pub struct History<'a> {
    store: &'a ObjectStore,
    /// Where the search begins: commits, or tags of them.
    starts: Vec<ObjectId>,
    /// Commits that do not count. In place of the commits before each of them the search goes on with
    /// these.
    instead: BTreeMap<ObjectId, Vec<ObjectId>>,
}

impl<'a> History<'a> {
    /// The commits that lead to some others, and these.
    pub fn new(
        store: &'a ObjectStore,
        starts: Vec<ObjectId>,
        instead: BTreeMap<ObjectId, Vec<ObjectId>>,
    ) -> Self {
        Self { store, starts, instead }
    }

    /// Which paths have the version that is asked for in one of the commits; `None` stands for the
    /// absence of the path. Those that were not found before the time was over are left out.
    pub fn find(&self, wanted: &[(&Path, Option<Version>)], until: Instant) -> Vec<bool> {
        let names = |path: &'_ Path| path.iter().map(|it| it.as_bytes().to_vec()).collect();
        let names: Vec<Vec<Vec<u8>>> = wanted.iter().map(|(path, _)| names(path)).collect();
        let mut known = vec![HashMap::new(); wanted.len()];
        let mut found = vec![false; wanted.len()];
        self.walk(until, |_, tree| {
            let paths = names.iter().zip(&mut known).zip(wanted);
            for (((names, known), (_, version)), found) in paths.zip(&mut found) {
                *found = *found || self.look(tree, names, known) == *version;
            }
            found.iter().all(|found| *found)
        });
        found
    }

    /// Whether a commit is one of them.
    pub fn has(&self, commit: ObjectId, until: Instant) -> Found {
        self.walk(until, |id, _| id == commit)
    }

    /// Looks at each commit with its tree, the latest first, until one is found.
    fn walk(&self, until: Instant, mut is: impl FnMut(ObjectId, ObjectId) -> bool) -> Found {
        let mut next: VecDeque<_> = self.starts.iter().copied().collect();
        let mut seen: HashSet<_> = next.iter().copied().collect();
        while let Some(id) = next.pop_front() {
            if Instant::now() > until {
                return Found::Unknown;
            }
            let mut more = |ids: &[ObjectId]| {
                next.extend(ids.iter().copied().filter(|id| seen.insert(*id)));
            };
            if let Some(instead) = self.instead.get(&id) {
                more(instead);
                continue;
            }
            let Some(object) = self.store.read(id) else { continue };
            match object.kind {
                Kind::Tag => more(&named(&object.content, b"object ")),
                Kind::Commit => {
                    if let Some(tree) = named(&object.content, b"tree ").first()
                        && is(id, *tree)
                    {
                        return Found::Yes;
                    }
                    more(&named(&object.content, b"parent "));
                }
                Kind::Tree | Kind::Blob => {}
            }
        }
        Found::No
    }

    /// What names below a directory lead to.
    fn look(
        &self,
        tree: ObjectId,
        names: &[Vec<u8>],
        known: &mut HashMap<(ObjectId, usize), Option<Version>>,
    ) -> Option<Version> {
        let (first, rest) = names.split_first()?;
        if let Some(found) = known.get(&(tree, names.len())) {
            return *found;
        }
        let found = self.entry(tree, first).and_then(|version| match rest {
            [] => Some(version),
            rest if version.mode == 0o40000 => self.look(version.id, rest, known),
            _ => None,
        });
        known.insert((tree, names.len()), found);
        found
    }

    fn entry(&self, tree: ObjectId, name: &[u8]) -> Option<Version> {
        let object = self.store.read(tree).filter(|object| object.kind == Kind::Tree)?;
        let mut rest = object.content.as_slice();
        while !rest.is_empty() {
            let space = rest.iter().position(|byte| *byte == b' ')?;
            let end = rest.iter().position(|byte| *byte == 0)?;
            let id = ObjectId::from_bytes(rest.get(end + 1..end + 21)?)?;
            if rest.get(space + 1..end)? == name {
                let mode = std::str::from_utf8(rest.get(..space)?).ok()?;
                return Some(Version { mode: u32::from_str_radix(mode, 8).ok()?, id });
            }
            rest = rest.get(end + 21..)?;
        }
        None
    }
}

/// The ids that the heading of a commit or a tag names with a word.
fn named(content: &[u8], word: &[u8]) -> Vec<ObjectId> {
    let heading = content.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let ids = heading.filter_map(|line| ObjectId::parse(line.strip_prefix(word)?));
    ids.collect()
}
