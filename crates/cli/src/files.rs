//! Writes files so that a crash leaves the old or the new content, never half of it.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The kernel follows as many symbolic links in a row.
const MOST_LINKS: usize = 40;

/// Replaces a file's content in one step and keeps its permissions. A symbolic link is followed, even
/// if its target does not exist yet.
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
    // The umask was applied on creation; restore the old file's permissions.
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// Removes a file. A symbolic link stays; its target is removed.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(target(path)?)
}

/// Creates a directory that only the user can enter.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Waits until no other process changes the state directory. Dropping the file unlocks it.
pub(crate) fn lock(state_dir: &Path) -> io::Result<File> {
    private_dir(state_dir)?;
    let lock = File::create(state_dir.join("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// The path after following symbolic links.
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
