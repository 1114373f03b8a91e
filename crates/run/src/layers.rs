//! [`Held`]: the private layer of a workspace, in the state directory.
//!
//! What runs write in toolchains and caches is kept here for the next run in the same workspace, and
//! reaches no other one: a workspace is identified by its canonical path and by the directory that is there.
//! A layer is locked while a run has it, because two mounts of one layer are undefined.
//!
//! A run makes what is in a layer, so nothing here follows a link or trusts a name in it.

mod identity;
mod measure;
mod remove;
mod stored;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime};

use model::{AbsPath, ByteSize, PrivateLayer, WhyTemporary};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use self::identity::Identity;
pub use self::stored::{Removed, Which, remove_layers};

/// The directory of layers, in the state directory.
const PLACE: &str = "layers";
/// The files and directories of a layer. `sandbox` has the last three, too.
const LOCK: &str = "lock";
const MEASURED: &str = "measured";
const OWN: &str = "own";
const UPPER: &str = "upper";
const WORK: &str = "work";

/// How often a layer that is replaced meanwhile is looked for.
const MOST_TRIES: usize = 4;
/// How long until a layer is measured again.
const MEASURED_EVERY: Duration = Duration::from_hours(1);

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The layer of a workspace, locked until this value is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    layers: OwnedFd,
    dir: OwnedFd,
    _lock: File,
}

/// Takes the layer of a workspace for a run, and creates it if there is none.
pub(crate) fn take(state_dir: &Path, workspace: &AbsPath) -> (PrivateLayer, Option<Held>) {
    match try_take(state_dir, workspace) {
        Ok((place, held)) => (PrivateLayer::Kept(place), Some(held)),
        Err(Errno::WOULDBLOCK) => (PrivateLayer::Temporary(WhyTemporary::InUse), None),
        Err(error) => {
            let why = format!("cannot use {}: {error}", state_dir.join(PLACE).display());
            (PrivateLayer::Temporary(WhyTemporary::Unusable(why)), None)
        }
    }
}

/// Where the layer of a workspace would be. Changes nothing.
pub(crate) fn look(state_dir: &Path, workspace: &AbsPath) -> PrivateLayer {
    let state_dir = state_dir.canonicalize().unwrap_or_else(|_| state_dir.to_path_buf());
    let place = state_dir.join(PLACE).join(identity::key(workspace));
    let in_use = || {
        let dir = rustix::fs::open(&place, DIRECTORY, Mode::empty()).ok()?;
        let lock = rustix::fs::openat(dir, LOCK, lock_flags(), Mode::empty()).ok()?;
        rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive).err()
    };
    match AbsPath::lexical(&place) {
        Ok(_) if in_use() == Some(Errno::WOULDBLOCK) => {
            PrivateLayer::Temporary(WhyTemporary::InUse)
        }
        Ok(place) => PrivateLayer::Kept(place),
        Err(error) => PrivateLayer::Temporary(WhyTemporary::Unusable(error.to_string())),
    }
}

fn lock_flags() -> OFlags {
    OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC
}

fn try_take(state_dir: &Path, workspace: &AbsPath) -> Result<(AbsPath, Held), Errno> {
    let (at, layers) = open_layers(state_dir, Missing::Create)?;
    let key = identity::key(workspace);
    let now = Identity::of(workspace)?;
    for _ in 0..MOST_TRIES {
        make_directory(layers.as_fd(), &key)?;
        let Some((dir, lock)) = lock(layers.as_fd(), &key)? else { continue };
        if Identity::read(dir.as_fd()).is_some_and(|before| !before.still_holds(&now)) {
            remove::set_aside(layers.as_fd(), layers.as_fd(), key.as_ref())?;
            continue;
        }
        now.write(dir.as_fd())?;
        make_directory(dir.as_fd(), OWN)?;
        make_directory(dir.as_fd(), UPPER)?;
        // The kernel refuses one that a mount has used which does not write through to the disk.
        match remove::set_aside(layers.as_fd(), dir.as_fd(), WORK.as_ref()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        make_directory(dir.as_fd(), WORK)?;
        let place = AbsPath::lexical(&at.join(&key)).map_err(|_| Errno::INVAL)?;
        return Ok((place, Held { layers, dir, _lock: lock }));
    }
    Err(Errno::WOULDBLOCK)
}

impl Held {
    /// Takes note of the end of the run, and removes what exceeds a limit. Returns what the user should
    /// know.
    pub(crate) fn finish(&self, limit: ByteSize) -> Option<String> {
        identity::touch(self.dir.as_fd());
        let notice = self.is_due().then(|| self.keep_within(limit)).flatten();
        remove::clear(self.layers.as_fd());
        notice
    }

    fn is_due(&self) -> bool {
        let stat = rustix::fs::statat(&self.dir, MEASURED, AtFlags::SYMLINK_NOFOLLOW);
        let at = stat.ok().and_then(|stat| u64::try_from(stat.st_mtime).ok());
        let at = at.and_then(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at)));
        at.is_none_or(|at| at.elapsed().is_ok_and(|age| age > MEASURED_EVERY))
    }

    /// Removes the parts that were not written for the longest time, until the rest fits.
    fn keep_within(&self, limit: ByteSize) -> Option<String> {
        let flags = lock_flags() | OFlags::CREATE | OFlags::TRUNC;
        let _ = rustix::fs::openat(&self.dir, MEASURED, flags, Mode::RUSR | Mode::WUSR);
        let mut parts = measure::parts(self.dir.as_fd());
        let total = |parts: &[measure::Part]| {
            parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.size.bytes))
        };
        let before = total(&parts);
        parts.sort_by_key(|part| std::cmp::Reverse(part.size.newest));
        let mut removed = Vec::new();
        while total(&parts) > limit.0 {
            let Some(part) = parts.pop() else { break };
            if remove::set_aside(self.layers.as_fd(), part.dir.as_fd(), &part.name).is_ok() {
                removed.push(part.name.to_string_lossy().into_owned());
            }
        }
        (!removed.is_empty()).then(|| {
            format!(
                "the private caches of this workspace were larger than `limits.caches` \
                 ({}limit {limit}); removed, oldest first: {}",
                if before == u64::MAX {
                    String::new()
                } else {
                    format!("{}, ", ByteSize(before).rounded())
                },
                removed.join(", ")
            )
        })
    }
}

/// What becomes of a directory that does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Fail,
}

/// The directory of layers, with its path.
fn open_layers(state_dir: &Path, missing: Missing) -> Result<(std::path::PathBuf, OwnedFd), Errno> {
    let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    if missing == Missing::Create && !state_dir.is_dir() {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(state_dir).map_err(errno)?;
    }
    let state_dir = state_dir.canonicalize().map_err(errno)?;
    let state = rustix::fs::open(&state_dir, DIRECTORY, Mode::empty())?;
    if missing == Missing::Create {
        make_directory(state.as_fd(), PLACE)?;
    }
    let layers = rustix::fs::openat(state, PLACE, DIRECTORY, Mode::empty())?;
    check_owner(layers.as_fd())?;
    Ok((state_dir.join(PLACE), layers))
}

/// Opens and locks a layer. `None` if it was replaced meanwhile.
fn lock(layers: BorrowedFd<'_>, key: &str) -> Result<Option<(OwnedFd, File)>, Errno> {
    let dir = match rustix::fs::openat(layers, key, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        dir => dir?,
    };
    check_owner(dir.as_fd())?;
    let flags = lock_flags() | OFlags::CREATE;
    let lock = rustix::fs::openat(&dir, LOCK, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    let held = rustix::fs::fstat(&dir)?;
    let there = rustix::fs::statat(layers, key, AtFlags::SYMLINK_NOFOLLOW);
    let same = there.is_ok_and(|there| (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino));
    Ok(same.then(|| (dir, lock.into())))
}

fn make_directory(dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    match rustix::fs::mkdirat(dir, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A directory of another user could be changed by that user.
fn check_owner(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(dir)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(dir, Mode::RWXU)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
