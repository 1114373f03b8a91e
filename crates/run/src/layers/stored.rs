//! [`remove_layers`]: the layers of other runs than the present one, for `ringwall clean`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use model::AbsPath;
use rustix::fs::{AtFlags, Dir, Mode};
use rustix::io::Errno;
use serde::{Serialize, Serializer};

use super::identity::{self, Identity};
use super::{DIRECTORY, Missing, lock, measure, open_layers, remove};

/// Which layers are meant.
#[derive(Debug, Clone, Default)]
pub struct Which {
    /// Only that of this workspace.
    pub workspace: Option<AbsPath>,
    /// Only those that have not been used for so long.
    pub unused_for: Option<Duration>,
    /// Only say what would be removed.
    pub dry_run: bool,
}

/// A layer that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Removed {
    /// The workspace it belongs to; `None` if that is not known.
    pub workspace: Option<PathBuf>,
    /// How many bytes it takes.
    pub bytes: u64,
    /// When it was used last, as RFC 3339 has it.
    #[serde(serialize_with = "as_text")]
    pub used: Option<SystemTime>,
    /// Whether it was removed, or would be.
    pub removed: bool,
    /// Why it was not.
    pub kept: Option<String>,
}

/// Removes layers. One that a run is using is left.
pub fn remove_layers(state_dir: &Path, which: &Which) -> Result<Vec<Removed>, std::io::Error> {
    let (_, layers) = match open_layers(state_dir, Missing::Fail) {
        Err(Errno::NOENT) => return Ok(Vec::new()),
        layers => layers?,
    };
    let key = which.workspace.as_ref().map(identity::key);
    let mut keys: Vec<_> = Dir::read_from(&layers)?
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str().ok().map(ToOwned::to_owned))
        .filter(|name| !name.starts_with('.') && key.as_ref().is_none_or(|key| key == name))
        .collect();
    keys.sort();
    let found = keys.iter().filter_map(|key| remove_one(layers.as_fd(), key, which)).collect();
    if !which.dry_run {
        remove::clear(layers.as_fd());
    }
    Ok(found)
}

fn remove_one(layers: BorrowedFd<'_>, key: &str, which: &Which) -> Option<Removed> {
    let dir: OwnedFd = rustix::fs::openat(layers, key, DIRECTORY, Mode::empty()).ok()?;
    let identity = Identity::read(dir.as_fd());
    let used = identity.as_ref().and_then(|identity| identity.used).or_else(|| changed(&dir));
    let age = used.and_then(|used| used.elapsed().ok()).unwrap_or_default();
    if which.unused_for.is_some_and(|least| age < least) {
        return None;
    }
    let bytes = measure::whole(dir.as_fd());
    let held = match lock(layers, key) {
        Ok(Some(held)) => Ok(held),
        Ok(None) => return None,
        Err(Errno::WOULDBLOCK) => Err("a run is using it".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let kept = match held {
        Ok(_) if which.dry_run => None,
        Ok(_held) => {
            let aside = remove::set_aside(layers, layers, key.as_ref());
            aside.err().map(|error| error.to_string())
        }
        Err(why) => Some(why),
    };
    let workspace = identity.map(|identity| identity.workspace);
    Some(Removed { workspace, bytes, used, removed: kept.is_none(), kept })
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn as_text<S: Serializer>(used: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    used.map(|used| humantime::format_rfc3339_seconds(used).to_string()).serialize(serializer)
}

fn changed(dir: &OwnedFd) -> Option<SystemTime> {
    let stat = rustix::fs::statat(dir, "", AtFlags::EMPTY_PATH).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(stat.st_mtime.try_into().ok()?))
}
