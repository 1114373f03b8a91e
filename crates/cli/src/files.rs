//! Writing files so that a crash leaves the old or the new one, never half.

use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Replaces a file's content in one step, keeping its permissions. A link is written through.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
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

/// Creates a directory that only the user can enter.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
