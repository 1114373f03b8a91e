//! Writing files so that a crash leaves the old or the new one, never half.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// As many links in a row as the kernel follows.
const MOST_LINKS: usize = 40;

/// Replaces a file's content in one step, keeping its permissions. A link is written through, also
/// one that leads to nothing yet.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = target(path)?;
    let dir = target.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(dir)?;
    let mode = target.metadata().map_or(0o644, |found| found.permissions().mode() & 0o777);
    let mut file = tempfile::Builder::new()
        .prefix(".ringwall-")
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempfile_in(dir)?;
    file.write_all(text.as_bytes())?;
    // The umask applied on creation; the old file's permissions count.
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// Removes a file. A link stays, and what it leads to goes.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(target(path)?)
}

/// Creates a directory that only the user can enter.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Waits until no other process changes the state directory. Let go of by dropping it.
pub(crate) fn lock(state_dir: &Path) -> io::Result<File> {
    private_dir(state_dir)?;
    let lock = File::create(state_dir.join("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Where a path's links lead.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&target) {
            Ok(to) => target = target.parent().unwrap_or(Path::new("/")).join(to),
            Err(_) => return Ok(target),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}
