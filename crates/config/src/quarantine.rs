//! Which directories may be the quarantine, which the agent can read and write.

use std::path::{Component, Path};

use facts::Places;
use model::AbsPath;

use crate::project::readings;

/// Why a directory cannot be the quarantine, whether a file or a variable names it.
pub(crate) fn unfit(dir: &AbsPath, places: &Places) -> Option<String> {
    let Some(dirs) = readings(dir.as_path()) else {
        return Some("it cannot be resolved".into());
    };
    if dirs.iter().any(|dir| dir.as_path().starts_with("/proc")) {
        return Some("it goes through /proc".into());
    }
    if holds(&dirs, places.home.as_path()) {
        return Some("it contains your home directory".into());
    }
    let own = places.own();
    let overlaps = |own: &&Path| holds(&dirs, own) || is_below(&dirs, own);
    let own = own.iter().map(AsRef::as_ref).find(overlaps)?;
    Some(format!("it overlaps {}, which Ringwall uses", own.display()))
}

/// The directory that a variable names, or why it is ignored. A project's settings can set
/// variables, so the directory may give nothing of value: not the workspace, because that would
/// bypass its level, and not a hidden directory of the home.
pub(crate) fn from_variable(
    value: &str,
    places: &Places,
    workspace: &AbsPath,
) -> Result<AbsPath, String> {
    if !value.starts_with(['/', '~']) {
        return Err("it is neither absolute nor below `~`".into());
    }
    let path = model::absolute(value, Path::new("/"), &places.home);
    let dir = path.and_then(|path| AbsPath::lexical(&path)).map_err(|error| error.to_string())?;
    if let Some(why) = unfit(&dir, places) {
        return Err(why);
    }
    let dirs = readings(dir.as_path()).unwrap_or_default();
    if holds(&dirs, workspace.as_path()) || is_below(&dirs, workspace.as_path()) {
        return Err("it overlaps the workspace".into());
    }
    let homes = spellings(places.home.as_path());
    if dirs.iter().any(|dir| homes.iter().any(|home| is_hidden(dir, home))) {
        return Err("it is in a hidden directory of your home".into());
    }
    Ok(dir)
}

/// Whether a place is inside one of these directories, as written or as it resolves.
fn holds(dirs: &[AbsPath], place: &Path) -> bool {
    let places = spellings(place);
    dirs.iter().any(|dir| places.iter().any(|place| place.is_within(dir)))
}

/// Whether one of these directories is inside a place, as written or as it resolves.
fn is_below(dirs: &[AbsPath], place: &Path) -> bool {
    let places = spellings(place);
    dirs.iter().any(|dir| places.iter().any(|place| dir.is_within(place)))
}

/// A place of ours as it is written, and as it resolves if it does.
fn spellings(place: &Path) -> Vec<AbsPath> {
    readings(place).unwrap_or_else(|| AbsPath::lexical(place).into_iter().collect())
}

fn is_hidden(dir: &AbsPath, home: &AbsPath) -> bool {
    let hidden = |part: Component<'_>| part.as_os_str().to_string_lossy().starts_with('.');
    dir.as_path().strip_prefix(home.as_path()).is_ok_and(|below| below.components().any(hidden))
}
