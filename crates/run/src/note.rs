//! [`Note`]: what was there before a run, for whoever cleans up if the run cannot do that itself.
//!
//! A run that is killed with its supervisor leaves no process and no mount, but its directory was not
//! searched at the end. So each run keeps a small file in the state directory, which no run can reach,
//! and removes it when it has searched. The file is locked as long as the supervisor lives: the kernel
//! takes the lock away with the process. The next run there, and `doctor`, search for what is not
//! locked any more.
//!
//! What changed since the crash cannot be told from what the run did before it. So only what acts by
//! itself is moved aside, and edits of protected files are not reported.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use config::setup::Setup;
use model::{AbsPath, Cause, Level};
use plan::{Entry, Grant, Machine, Worktree};
use policy::{Context, Policy, SettingsContext};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::committed::Committed;
use crate::events::Tampering;
use crate::frozen::Frozen;
use crate::git_state::Unfinished;
use crate::kept::{Keeper, Kept};
use crate::later::Later;
use crate::lossless;
use crate::new_names::NewNames;
use crate::sweep::{self, Swept};

/// The directory of notes, in the state directory.
const PLACE: &str = "runs";
/// A note that is larger was not written by a run.
const LARGEST: u64 = 256 << 20;
/// How long a note may take until it has its name.
const WRITING: Duration = Duration::from_mins(1);

/// The format. A note of another one is left for the version that wrote it.
const VERSION: u32 = 2;

/// A path with one character for each byte.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Place(#[serde(with = "lossless")] PathBuf);

impl Place {
    fn of(path: &AbsPath) -> Self {
        Self(path.as_path().to_path_buf())
    }

    fn path(&self) -> Option<AbsPath> {
        AbsPath::lexical(&self.0).ok()
    }
}

/// What is known about a run that may not come to its end.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    version: u32,
    started: SystemTime,
    level: Level,
    workspace: Place,
    home: Place,
    /// What it may write besides the workspace, with whether that is a directory.
    grants: Vec<(Place, bool)>,
    /// Protected names, with whether all that is below them is protected too.
    marked: Vec<(Place, bool)>,
    dangling: Vec<Place>,
    repositories: Vec<Place>,
    unfinished: Vec<(Place, String)>,
    frozen: Frozen,
    later: Later,
    committed: Committed,
    mounted: bool,
    worktree: Option<LinkedWorktree>,
}

/// The repository of a linked worktree.
#[derive(Debug, Serialize, Deserialize)]
struct LinkedWorktree {
    common: Place,
    own: Place,
    head: String,
    branch_dirs: Vec<Place>,
    own_refs: Vec<Place>,
    others: Vec<Place>,
    present: Vec<Place>,
}

/// The note of a run that goes on. It is removed with this value.
pub(crate) struct HeldNote {
    path: PathBuf,
    /// Whether it stays, because the search was not finished.
    stays: bool,
    /// Locked until this process ends.
    _file: File,
}

impl HeldNote {
    /// Leaves the note for the next search.
    pub(crate) fn leave(mut self) {
        self.stays = true;
    }
}

impl Drop for HeldNote {
    fn drop(&mut self) {
        // Whatever made this process give up, the directory was not searched.
        if !self.stays && !std::thread::panicking() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Writes the note of a run that is about to start.
pub(crate) fn keep(
    setup: &Setup,
    found: &Found<'_>,
    run: &str,
    started: SystemTime,
) -> io::Result<HeldNote> {
    let dir = setup.places.state_dir.join(PLACE);
    let (new, path) = (dir.join(format!(".{run}")), dir.join(format!("{run}.json")));
    let note = Note::new(setup, found, started);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = match options.open(&new) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
            options.open(&new)?
        }
        opened => opened?,
    };
    // It gets its name when it is locked and whole.
    let written = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(io::Error::from)
        .and_then(|()| file.write_all(&serde_json::to_vec(&note)?))
        .and_then(|()| std::fs::rename(&new, &path));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&new);
        return Err(error);
    }
    Ok(HeldNote { path, stays: false, _file: file })
}

/// What was found before a run.
pub(crate) struct Found<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) dangling: &'a [AbsPath],
    pub(crate) repositories: &'a [AbsPath],
    pub(crate) unfinished: &'a Unfinished,
    pub(crate) frozen: &'a Frozen,
    pub(crate) later: &'a Later,
    pub(crate) committed: &'a Committed,
    pub(crate) mounted: bool,
}

impl Note {
    fn new(setup: &Setup, found: &Found<'_>, started: SystemTime) -> Self {
        let Found { machine, dangling, repositories, unfinished, frozen, mounted, .. } = *found;
        let grants = machine.grants.iter().filter(|grant| grant.write);
        let whole = |marked: &plan::Marked| {
            marked.mark == plan::Mark::ReadOnly && marked.entry == Entry::Directory
        };
        let places = |paths: &[AbsPath]| paths.iter().map(Place::of).collect();
        let lists = unfinished.0.iter();
        Self {
            version: VERSION,
            started,
            level: setup.loaded.policy.level.value,
            workspace: Place::of(&setup.context.workspace),
            home: Place::of(&setup.context.home),
            grants: grants
                .map(|grant| (Place::of(&grant.path), grant.entry == Some(Entry::Directory)))
                .collect(),
            marked: machine.marked.iter().map(|it| (Place::of(&it.path), whole(it))).collect(),
            dangling: places(dangling),
            repositories: places(repositories),
            unfinished: lists
                .map(|(path, text)| (Place(path.clone()), lossless::text(text)))
                .collect(),
            frozen: frozen.clone(),
            later: found.later.clone(),
            committed: found.committed.clone(),
            mounted,
            worktree: machine.worktree.as_ref().map(LinkedWorktree::new),
        }
    }

    /// Whether the run could write in one of these directories, or above it.
    fn overlaps(&self, dirs: &[AbsPath]) -> bool {
        let grants = self.grants.iter().map(|(place, _)| place);
        let own: Vec<_> = grants.chain([&self.workspace]).filter_map(Place::path).collect();
        let meets = |dir: &AbsPath| own.iter().any(|own| own.is_within(dir) || dir.is_within(own));
        dirs.iter().any(meets)
    }

    /// Searches as the run would have done at its end.
    fn sweep(&self, state_dir: &Path, run: &str) -> Option<Searched> {
        let mut policy = Policy::built_in();
        policy.level.value = self.level;
        let context = Context {
            workspace: self.workspace.path()?,
            home: self.home.path()?,
            closed: Vec::new(),
            unfit: None,
            agent_files: Vec::new(),
            own_files: Vec::new(),
            grant_file: PathBuf::new(),
            settings: SettingsContext::default(),
        };
        let grant = |(place, directory): &(Place, bool)| {
            let entry = if *directory { Entry::Directory } else { Entry::File };
            Some(Grant {
                path: place.path()?,
                write: true,
                entry: Some(entry),
                directory: *directory,
                named: true,
                why: Cause::Workspace,
            })
        };
        let grants: Vec<_> = self.grants.iter().filter_map(grant).collect();
        let paths = |places: &[Place]| places.iter().filter_map(Place::path).collect::<Vec<_>>();
        let names = self.marked.iter().filter_map(|(place, _)| place.path());
        let whole = self.marked.iter().filter(|(_, whole)| *whole);
        let whole = whole.filter_map(|(place, _)| place.path());
        let worktree = self.worktree.as_ref().map(LinkedWorktree::worktree);
        let new_names = NewNames::new(
            names,
            whole,
            paths(&self.dangling),
            paths(&self.repositories),
            worktree.as_ref(),
            self.started,
        );
        let lists = self.unfinished.iter();
        let lists =
            lists.filter_map(|(place, text)| Some((place.0.clone(), lossless::bytes(text)?)));
        let swept = Swept {
            policy: &policy,
            context: &context,
            grants: &grants,
            worktree: worktree.as_ref(),
            new_names: &new_names,
            unfinished: &Unfinished(lists.collect()),
            later: &self.later,
            committed: &self.committed,
            state_dir,
            since: self.started,
        };
        let mut keeper = Keeper::new(state_dir, run, &self.workspace.0);
        let sweep::Left { mut tampering, whole, .. } = sweep::sweep(&swept, &mut keeper);
        if sweep::has_descriptors() {
            tampering.extend(self.frozen.compare(self.mounted, self.started).tampering);
        }
        Some(Searched { tampering, kept: keeper.finish().ok().flatten(), whole })
    }
}

impl LinkedWorktree {
    fn new(worktree: &Worktree) -> Self {
        let places = |paths: &[AbsPath]| paths.iter().map(Place::of).collect();
        let firsts = |paths: &[(AbsPath, bool)]| paths.iter().map(|it| Place::of(&it.0)).collect();
        Self {
            common: Place::of(&worktree.common),
            own: Place::of(&worktree.own),
            head: worktree.head.clone(),
            branch_dirs: places(&worktree.branch_dirs),
            own_refs: places(&worktree.own_refs),
            others: firsts(&worktree.others),
            present: firsts(&worktree.present),
        }
    }

    fn worktree(&self) -> Worktree {
        let path = |place: &Place| place.path().unwrap_or_else(AbsPath::root);
        let paths = |places: &[Place]| places.iter().filter_map(Place::path).collect();
        let pairs = |places: &[Place]| {
            places.iter().filter_map(Place::path).map(|path| (path, false)).collect()
        };
        Worktree {
            common: path(&self.common),
            own: path(&self.own),
            head: self.head.clone(),
            branch_dirs: paths(&self.branch_dirs),
            missing: Vec::new(),
            own_refs: paths(&self.own_refs),
            others: pairs(&self.others),
            present: pairs(&self.present),
        }
    }
}

/// A run that goes on, or was killed.
pub(crate) struct Other {
    /// The repositories that it found.
    pub(crate) committed: Committed,
    workspace: Option<AbsPath>,
    grants: Vec<AbsPath>,
}

impl Other {
    /// Whether it may write at a path.
    pub(crate) fn may_write(&self, path: &Path) -> bool {
        let mut own = self.workspace.iter().chain(&self.grants);
        AbsPath::lexical(path).is_ok_and(|path| own.any(|own| path.is_within(own)))
    }
}

/// Every run with a note that can change files.
pub(crate) fn others(state_dir: &Path) -> Vec<Other> {
    let entries = state_dir.join(PLACE).read_dir().into_iter().flatten().flatten();
    let read = |entry: std::fs::DirEntry| {
        let small = entry.metadata().is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
        let text = small.then(|| std::fs::read(entry.path()).ok()).flatten()?;
        let note: Note = serde_json::from_slice(&text).ok()?;
        (note.version == VERSION && note.level >= Level::Readwrite).then(|| Other {
            committed: note.committed,
            workspace: note.workspace.path(),
            grants: note.grants.iter().filter_map(|(place, _)| place.path()).collect(),
        })
    };
    entries.filter_map(read).collect()
}

/// What a search found later.
struct Searched {
    tampering: Vec<Tampering>,
    kept: Option<Kept>,
    /// Whether everything was searched.
    whole: bool,
}

/// A run that did not come to its end, and what was found of it.
#[derive(Debug, Clone)]
pub struct Recovered {
    /// Its workspace.
    pub workspace: String,
    /// When it started.
    pub started: SystemTime,
    /// What it left.
    pub tampering: Vec<Tampering>,
    /// What was kept aside.
    pub kept: Option<Kept>,
}

impl Recovered {
    /// What it left, with which run that was.
    pub fn told(&self) -> impl Iterator<Item = Tampering> {
        let started = humantime::format_rfc3339_seconds(self.started);
        self.tampering.iter().cloned().map(move |found| {
            let what =
                format!("{} (left by a run that was killed; it began {started})", found.what);
            Tampering { what, ..found }
        })
    }
}

/// Searches for what runs left that did not come to their end, and removes their notes. `within`
/// limits that to runs which could write in one of these directories, or above it.
pub fn recover(state_dir: &Path, within: Option<&[AbsPath]>) -> Vec<Recovered> {
    let Ok(entries) = state_dir.join(PLACE).read_dir() else { return Vec::new() };
    let one = |entry: std::fs::DirEntry| recover_one(state_dir, &entry.path(), within);
    entries.flatten().filter_map(one).collect()
}

fn recover_one(state_dir: &Path, path: &Path, within: Option<&[AbsPath]>) -> Option<Recovered> {
    let mut options = OpenOptions::new();
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = flags.bits().try_into().ok()?;
    let mut file = options.read(true).custom_flags(flags).open(path).ok()?;
    // Its run goes on, or someone else is searching.
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let found = file.metadata().ok()?;
    if path.extension().is_none_or(|ending| ending != "json") {
        // Not even begun.
        let age = found.modified().ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > WRITING) {
            let _ = std::fs::remove_file(path);
        }
        return None;
    }
    if !found.is_file() || found.nlink() == 0 || found.len() > LARGEST {
        return None;
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok()?;
    let note: Note = serde_json::from_slice(&text).ok()?;
    if note.version != VERSION || within.is_some_and(|dirs| !note.overlaps(dirs)) {
        return None;
    }
    let run = path.file_stem().unwrap_or_default().to_string_lossy();
    let nothing = Searched { tampering: Vec::new(), kept: None, whole: true };
    let Searched { tampering, kept, whole } = note.sweep(state_dir, &run).unwrap_or(nothing);
    // Only now: if this process ends before, the next one searches again.
    if whole {
        let _ = std::fs::remove_file(path);
    }
    Some(Recovered {
        workspace: note.workspace.0.display().to_string(),
        started: note.started,
        tampering,
        kept,
    })
}
