//! What git writes under names that act at once: the supervisor puts on the host what the user has
//! committed, and nothing else. See [`sandbox::Diverted`].

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use facts::{Step, Visit};
use model::{AbsPath, Digest};
use policy::Acts;
use sandbox::Diverted;

use crate::committed::{Committed, Content};
use crate::events::Tampering;
use crate::kept::{Keeper, KeptFile, LARGEST, read_some};
use crate::later::acts;
use crate::place::Place;

/// When it is decided what may be on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Git has checked out all files, and the run waits.
    CheckedOut,
    /// The run is over. What git was to remove without coming to its end stays.
    Ended,
}

impl When {
    /// How long the user's commits are searched.
    fn patience(self) -> Duration {
        Duration::from_secs(if self == Self::CheckedOut { 3 } else { 20 })
    }
}

/// The most files that a directory may have to be taken for one that was checked out.
const MOST: usize = 2_000;

/// Whether git is changing the files of the checkout that a path is in: it holds the lock of the index.
pub(crate) fn is_going_on(path: &AbsPath) -> bool {
    let top = path.as_path().parent().and_then(facts::git_root);
    let git = top.map(|top| facts::linked_git_dir(&top).unwrap_or_else(|| top.join(".git")));
    git.is_some_and(|git| git.join("index.lock").symlink_metadata().is_ok())
}

/// Puts on the host what the user has committed. What stays is not, or not yet, such content.
pub(crate) fn settle(
    (committed, state): (&Committed, &Path),
    diverted: &mut Diverted,
    when: When,
    settled: &mut BTreeSet<PathBuf>,
) {
    let files = diverted.files.iter().filter(|(path, _)| is_content(path));
    let files: Vec<_> = files.filter_map(|(path, file)| Made::read(path, file)).collect();
    let gone = diverted.removed.iter().filter(|path| !diverted.files.contains_key(*path));
    let gone = gone.filter(|path| when == When::CheckedOut && is_content(path));
    let gone: Vec<_> = gone.filter_map(Made::there).collect();
    // What is removed must be in one commit, and be absent in another.
    let contents = files.iter().map(Made::content).chain(
        gone.iter().flat_map(|gone| [gone.content(), Content { bytes: None, ..gone.content() }]),
    );
    let contents: Vec<_> = contents.collect();
    if contents.is_empty() {
        return;
    }
    let known = committed.have(state, &contents, Instant::now() + when.patience());
    let (of_files, of_gone) = known.split_at(files.len().min(known.len()));
    for (file, known) in files.iter().zip(of_files) {
        if *known && file.publish().is_ok() {
            diverted.files.remove(&file.path);
            diverted.removed.remove(&file.path);
            settled.insert(file.path.as_path().to_path_buf());
        }
    }
    for (gone, known) in gone.iter().zip(of_gone.chunks(2)) {
        let path = gone.path.as_path();
        if known.iter().all(|known| *known) && Place::at(path).and_then(|it| it.remove()).is_ok() {
            diverted.removed.remove(&gone.path);
            settled.insert(path.to_path_buf());
            // As git does it.
            let parents = path.ancestors().skip(1).take(8);
            let _ = parents.map(std::fs::remove_dir).find(Result::is_err);
        }
    }
}

/// Whether the user's commits say what may be at a path. What decides about runs is not changed by any.
fn is_content(path: &AbsPath) -> bool {
    policy::protected::protecting(path).is_some_and(|name| name.acts == Acts::AtOnce)
}

/// What the user should know of it: what changed, and what git was to remove and stays.
pub(crate) fn notices(settled: &BTreeSet<PathBuf>, stays: &[AbsPath]) -> Vec<String> {
    let stays = stays.iter().map(|path| {
        format!(
            "{path} stays, although git was to remove it: no commit of yours lacks it, or it decides \
             what a run may do"
        )
    });
    let mut names: Vec<_> = settled.iter().take(5).map(|path| path.display().to_string()).collect();
    if let more @ 1.. = settled.len().saturating_sub(names.len()) {
        names.push(format!("and {more} more"));
    }
    let names = names.join(", ");
    let checked_out = format!("git checked out, as you had committed it: {names}");
    (!settled.is_empty()).then_some(checked_out).into_iter().chain(stays).collect()
}

/// Keeps what is left of it.
pub(crate) fn keep(diverted: &Diverted, keeper: &mut Keeper<'_>) -> Vec<Tampering> {
    let mut found = Vec::new();
    for (path, file) in &diverted.files {
        let shown = path.to_string();
        let Some(made) = Made::read(path, file) else {
            let what = "a file under a protected name was too large to be kept".into();
            found.push(Tampering { path: shown.clone(), moved_to: Some(shown), what });
            continue;
        };
        let before = Made::there(path).map(|there| Digest::of(&there.bytes));
        let kept = KeptFile {
            path: path.as_path().to_path_buf(),
            acts: acts(path.as_path()),
            mode: made.mode,
            digest: Digest::of(&made.bytes),
            before,
        };
        if let Err(error) = keeper.keep(kept, &made.bytes) {
            let what = format!("a file under a protected name could not be kept: {error}");
            found.push(Tampering { path: shown.clone(), moved_to: Some(shown), what });
        }
    }
    found
}

/// Whether everything at a path is what the user has committed there. Directories with nothing in them
/// are removed.
pub(crate) fn is_committed((committed, state): (&Committed, &Path), path: &AbsPath) -> bool {
    let Ok(found) = path.as_path().symlink_metadata() else { return false };
    if !is_content(path) || found.is_symlink() {
        return false;
    }
    let (mut files, mut directories, mut odd) = (Vec::new(), Vec::new(), false);
    if found.is_dir() {
        directories.push(path.clone());
        facts::walk(path, &mut |visit| {
            match visit {
                Visit::Entry(path, kind) if kind.is_dir() => directories.push(path.clone()),
                Visit::Entry(path, kind) if kind.is_file() => files.push(path.clone()),
                _ => odd = true,
            }
            Step::Into
        });
    } else {
        files.push(path.clone());
    }
    let made: Vec<_> = files.iter().take(MOST).filter_map(Made::there).collect();
    if odd || made.len() != files.len() {
        return false;
    }
    if made.is_empty() {
        return directories.iter().rev().all(|dir| std::fs::remove_dir(dir.as_path()).is_ok());
    }
    let contents: Vec<_> = made.iter().map(Made::content).collect();
    let known = committed.have(state, &contents, Instant::now() + When::Ended.patience());
    known.iter().all(|known| *known)
}

/// A file, as it is or should be.
struct Made {
    path: AbsPath,
    bytes: Vec<u8>,
    mode: u32,
}

impl Made {
    /// What a run wrote into a private file.
    fn read(path: &AbsPath, mut file: &File) -> Option<Self> {
        let mode = file.metadata().ok()?.permissions().mode() & 0o777;
        let mut again = file.try_clone().ok()?;
        let at = file.stream_position().ok()?;
        again.rewind().ok()?;
        let bytes = read_some(again, LARGEST);
        // The position is shared with the run.
        file.seek(io::SeekFrom::Start(at)).ok()?;
        Some(Self { path: path.clone(), bytes: bytes.ok()?, mode })
    }

    /// What is on the host.
    fn there(path: &AbsPath) -> Option<Self> {
        let there = Place::at(path.as_path()).ok()?.read(LARGEST).ok()??;
        // Another name of it could be written.
        (there.links == 1).then(|| Self {
            path: path.clone(),
            bytes: there.content,
            mode: there.mode,
        })
    }

    fn content(&self) -> Content<'_> {
        let executable = self.mode & 0o100 != 0;
        Content { path: self.path.as_path(), bytes: Some(&self.bytes), executable }
    }

    fn publish(&self) -> io::Result<()> {
        let place = Place::create(self.path.as_path())?;
        match place.read(LARGEST)? {
            Some(_) => place.overwrite(&self.bytes, self.mode),
            None => place.replace(&self.bytes, self.mode),
        }
    }
}
