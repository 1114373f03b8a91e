//! [`Committed`]: what was in the user's commits before a run.
//!
//! A run can write objects and references. So where a search begins is recorded before it, every
//! object is checked against its id, and commits that a run made do not count in later runs either:
//! at the end of each run the references that it moved are noted in the state directory, with what
//! they were, and everything in repositories that were not there before. Of runs that go on, or were
//! killed, the note says where the references were (see [`crate::note`]). What an agent committed counts
//! once the user has committed on top of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use facts::git_objects::{Found, History, ObjectId, ObjectStore, Version};
use facts::{Step, Visit, read_bytes};
use model::AbsPath;
use plan::{Entry, Mark, Marked};
use serde::{Deserialize, Serialize};

use crate::lossless;
use crate::note;

/// The directory of notes about commits, in the state directory, and the list of those that runs made. It
/// is one for all repositories: a repository can be moved, and a commit has one name everywhere.
const PLACE: &str = "commits";
const MADE: &str = "made";
/// The largest list of references that is read.
const LARGEST: usize = 64 << 20;
/// How many repositories of a workspace are looked at.
const MOST_REPOSITORIES: usize = 64;
/// How long a search for the origin of a moved reference takes at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// The repositories of a workspace, as they were before a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Committed(Vec<Repository>);

/// A repository, and where its references led.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Repository {
    #[serde(with = "lossless")]
    top: PathBuf,
    #[serde(with = "lossless")]
    common: PathBuf,
    /// What is checked out, and all references by their names.
    references: BTreeMap<String, String>,
}

/// What a file is at the end of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content<'a> {
    pub(crate) path: &'a Path,
    /// `None` if it was removed.
    pub(crate) bytes: Option<&'a [u8]>,
    pub(crate) executable: bool,
}

impl Committed {
    /// Looks at the repositories that were found, and at the one around the workspace.
    pub(crate) fn before(marked: &[Marked], workspace: &AbsPath) -> Self {
        let is_git = |it: &&Marked| it.mark == Mark::Pinned && !matches!(it.entry, Entry::Link(_));
        let tops = marked.iter().filter(is_git).filter(|it| it.path.as_path().ends_with(".git"));
        let tops = tops.filter_map(|it| it.path.as_path().parent().map(Path::to_path_buf));
        let tops: BTreeSet<_> = tops.chain(facts::git_root(workspace.as_path())).collect();
        let read = tops.into_iter().take(MOST_REPOSITORIES);
        Self(read.filter_map(|top| Repository::read(&top)).collect())
    }

    /// Which of these were in a commit, at the same path.
    pub(crate) fn have(&self, state: &Path, files: &[Content<'_>], until: Instant) -> Vec<bool> {
        let mut found = vec![false; files.len()];
        for repository in &self.0 {
            let belongs = |file: &&Content<'_>| {
                self.around(file.path).is_some_and(|it| std::ptr::eq(it, repository))
            };
            let own: Vec<_> = files.iter().filter(belongs).collect();
            if own.is_empty() {
                continue;
            }
            let version = |file: &&Content<'_>| {
                let mode = if file.executable { 0o100_755 } else { 0o100_644 };
                file.bytes.map(|bytes| Version { mode, id: ObjectId::of_blob(bytes) })
            };
            let below = |file: &&Content<'_>| {
                file.path.strip_prefix(&repository.top).unwrap_or(file.path).to_path_buf()
            };
            let paths: Vec<_> = own.iter().map(|file| (below(file), version(file))).collect();
            let wanted: Vec<_> =
                paths.iter().map(|(path, version)| (path.as_path(), *version)).collect();
            let store = ObjectStore::open(&repository.common);
            // A list that cannot be read could have any commit in it.
            let Some(mut made) = made(state) else { return found };
            for note in note::others(state) {
                for (id, was) in repository.made_since(&note) {
                    made.entry(id).or_default().extend(was);
                }
            }
            let history = History::new(&store, repository.ids(), made);
            let mut answers = history.find(&wanted, until).into_iter();
            for (file, found) in files.iter().zip(&mut found) {
                if belongs(&file) {
                    *found = answers.next().unwrap_or(false);
                }
            }
        }
        found
    }

    /// Notes which references were moved since, and what they were. Commits that were there before are
    /// no run's. `gits` are the git directories that are there now: what is in one that was not there
    /// before is not the user's.
    pub(crate) fn record<'a>(&self, state: &Path, gits: impl Iterator<Item = &'a AbsPath>) {
        for git in gits {
            let top = git.as_path().parent().unwrap_or(git.as_path());
            let repository = Repository::read(top).or_else(|| Repository::bare(git.as_path()));
            let Some(repository) = repository.filter(|it| !self.knows(it)) else { continue };
            let known = made(state).unwrap_or_default();
            let is_new = |id: &&String| {
                ObjectId::parse(id.as_bytes()).is_some_and(|id| !known.contains_key(&id))
            };
            let lines = repository.references.values().filter(is_new).map(|id| format!("{id}\n"));
            note_made(state, &lines.collect::<String>());
        }
        for before in &self.0 {
            let Some(now) = Repository::read(&before.top) else { continue };
            let known: BTreeSet<_> = before.references.values().collect();
            let moved = now.references.iter().filter(|(_, id)| !known.contains(id));
            let moved: BTreeMap<_, _> = moved.map(|(name, id)| (id, name)).collect();
            if moved.is_empty() {
                continue;
            }
            let store = ObjectStore::open(&before.common);
            let history = History::new(&store, before.ids(), BTreeMap::new());
            let old = |(id, _): &(&String, &String)| {
                let id = ObjectId::parse(id.as_bytes());
                id.is_some_and(|id| history.has(id, Instant::now() + PATIENCE) == Found::Yes)
            };
            let lines = moved.into_iter().filter(|one| !old(one)).map(|(id, name)| {
                let was = before.references.get(name).or_else(|| before.references.get("HEAD"));
                // A new branch begins at what was checked out, or anywhere else.
                let all = || before.references.values().cloned().collect::<Vec<_>>().join(" ");
                format!("{id} {}\n", was.cloned().unwrap_or_else(all))
            });
            note_made(state, &lines.collect::<String>());
        }
    }

    fn knows(&self, repository: &Repository) -> bool {
        self.of(repository).is_some()
    }

    fn of(&self, repository: &Repository) -> Option<&Repository> {
        self.0.iter().find(|it| it.common == repository.common)
    }

    /// The innermost repository around a path.
    fn around(&self, path: &Path) -> Option<&Repository> {
        let around = self.0.iter().filter(|it| path.starts_with(&it.top));
        around.max_by_key(|it| it.top.components().count())
    }
}

impl Repository {
    fn read(top: &Path) -> Option<Self> {
        let git = top.join(".git");
        let own = if git.is_dir() { git } else { facts::linked_git_dir(top)? };
        let own = own.canonicalize().ok()?;
        let shared = read_bytes(&own.join("commondir"), 1 << 12).ok();
        let shared = shared.and_then(|text| String::from_utf8(text).ok());
        let common = shared.map_or_else(|| own.clone(), |text| own.join(text.trim()));
        let common = common.canonicalize().ok()?;
        if !facts::is_repository(&common) {
            return None;
        }
        let references = references(&common, &own);
        Some(Self { top: top.to_path_buf(), common, references })
    }

    fn ids(&self) -> Vec<ObjectId> {
        let ids: BTreeSet<_> = self.references.values().collect();
        ids.into_iter().filter_map(|id| ObjectId::parse(id.as_bytes())).collect()
    }

    /// A repository without a checkout.
    fn bare(git: &Path) -> Option<Self> {
        let common = git.canonicalize().ok().filter(|git| facts::is_repository(git))?;
        let references = references(&common, &common);
        Some(Self { top: git.to_path_buf(), common, references })
    }

    /// What another run, which has not come to its end, may have made of what is here.
    fn made_since(&self, other: &note::Other) -> BTreeMap<ObjectId, Vec<ObjectId>> {
        let parse = |id: &String| ObjectId::parse(id.as_bytes());
        let before = match other.committed.of(self) {
            Some(before) => before.ids(),
            // It was not there when that run began.
            None if other.may_write(&self.top) => Vec::new(),
            None => return BTreeMap::new(),
        };
        let moved = self.references.values().filter_map(parse).filter(|id| !before.contains(id));
        moved.map(|id| (id, before.clone())).collect()
    }
}

/// The commits that runs made, with those that came before. `None`: the list cannot be read.
fn made(state: &Path) -> Option<BTreeMap<ObjectId, Vec<ObjectId>>> {
    let mut made: BTreeMap<ObjectId, Vec<ObjectId>> = BTreeMap::new();
    let text = match read_bytes(&state.join(PLACE).join(MADE), LARGEST) {
        Ok(text) => text,
        Err(None) => Vec::new(),
        Err(Some(_)) => return None,
    };
    for line in text.split(|byte| *byte == b'\n') {
        let mut ids = line.split(|byte| *byte == b' ').map(ObjectId::parse);
        if let Some(Some(id)) = ids.next() {
            made.entry(id).or_default().extend(ids.flatten());
        }
    }
    Some(made)
}

fn note_made(state: &Path, lines: &str) {
    if lines.is_empty() {
        return;
    }
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let dir = state.join(PLACE);
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    let file = made.and_then(|()| options.open(dir.join(MADE)));
    // Without the note, a later run would take these commits for the user's.
    let _ = file.and_then(|mut file| file.write_all(lines.as_bytes()));
}

/// All references of a repository, with what is checked out and what is stashed. `refs/replace` says
/// what other objects are to be, and is none of them.
fn references(common: &Path, own: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut add = |name: &[u8], value: &[u8]| {
        let id = value.trim_ascii();
        if ObjectId::parse(id).is_some() && !name.starts_with(b"refs/replace/") {
            found.entry(lossless::text(name)).or_insert_with(|| lossless::text(id));
        }
    };
    for dir in BTreeSet::from([common, own]) {
        let value = |path: &Path| read_bytes(path, 4096).unwrap_or_default();
        let Ok(refs) = AbsPath::lexical(&dir.join("refs")) else { continue };
        facts::walk(&refs, &mut |visit| {
            if let Visit::Entry(path, kind) = visit
                && kind.is_file()
                && let Ok(name) = path.as_path().strip_prefix(dir)
            {
                add(name.as_os_str().as_encoded_bytes(), &value(path.as_path()));
            }
            Step::Into
        });
        add(b"HEAD", &value(&dir.join("HEAD")));
    }
    let packed = read_bytes(&common.join("packed-refs"), LARGEST).unwrap_or_default();
    for line in packed.split(|byte| *byte == b'\n') {
        if let Some((value, name)) = line.split_at_checked(40) {
            add(name.trim_ascii(), value);
        }
    }
    let stashed = read_bytes(&common.join("logs/refs/stash"), LARGEST).unwrap_or_default();
    for line in stashed.split(|byte| *byte == b'\n') {
        if let Some(value) = line.split(|byte| *byte == b' ').nth(1) {
            add(&[b"stash ", value].concat(), value);
        }
    }
    // What is checked out, if that is a branch.
    let head = read_bytes(&own.join("HEAD"), 4096).unwrap_or_default();
    let branch = head.strip_prefix(b"ref: ").map(|name| lossless::text(name.trim_ascii()));
    if let Some(id) = branch.and_then(|name| found.get(&name).cloned()) {
        found.insert("HEAD".into(), id);
    }
    found
}
