//! [`Diverted`]: files that git and tar create under names that a run cannot write.
//!
//! Programs that unpack many files create each of them exclusively, and fail as a whole where one
//! cannot be created. They get a private file (a memfd) in its place, which no other process sees and
//! nothing acts on. When git has finished, and at the end of the run, the caller decides which of them
//! become files on the host: [`crate::monitor::Rules::settle`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use model::AbsPath;
use rustix::fs::{MemfdFlags, OFlags};

/// How many a run may have. Each takes a descriptor of the supervisor.
const MOST: usize = 400;

/// What a run would have changed, by paths.
#[derive(Debug, Default)]
pub struct Diverted {
    /// Files that it created.
    pub files: BTreeMap<AbsPath, File>,
    /// Files that it removed, and that are still there.
    pub removed: BTreeSet<AbsPath>,
}

impl Diverted {
    /// Whether a run believes that something is at this path.
    pub(crate) fn has(&self, path: &AbsPath) -> bool {
        self.files.contains_key(path)
    }

    /// Whether a run believes that nothing is at this path any more.
    pub(crate) fn has_removed(&self, path: &AbsPath) -> bool {
        self.removed.contains(path) && !self.has(path)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.files.len() < MOST && self.removed.len() < MOST
    }

    /// Begins a file with the permissions that it would have, and lends it.
    pub(crate) fn begin(&mut self, path: &AbsPath, mode: u32) -> io::Result<OwnedFd> {
        let file = File::from(rustix::fs::memfd_create("diverted", MemfdFlags::CLOEXEC)?);
        file.set_permissions(Permissions::from_mode(mode & 0o777))?;
        let lent = file.try_clone()?;
        self.files.insert(path.clone(), file);
        Ok(lent.into())
    }

    /// Opens such a file again.
    pub(crate) fn open_again(&self, path: &AbsPath, flags: u32) -> io::Result<OwnedFd> {
        let file = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        let kept = OFlags::from_bits_retain(flags)
            & (OFlags::RWMODE | OFlags::TRUNC | OFlags::APPEND | OFlags::CLOEXEC);
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(rustix::fs::open(path, kept, rustix::fs::Mode::empty())?)
    }

    pub(crate) fn forget(&mut self, path: &AbsPath) {
        self.files.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::path::Path;

    use super::*;

    #[test]
    fn a_diverted_file_exists_for_the_run_only() {
        let path = AbsPath::lexical(Path::new("/nowhere/.envrc")).unwrap();
        let mut diverted = Diverted::default();
        let mut lent = File::from(diverted.begin(&path, 0o100_755).unwrap());
        lent.write_all(b"text").unwrap();
        assert!(diverted.has(&path) && !diverted.has_removed(&path));
        let mut kept = diverted.files.get(&path).unwrap();
        assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        let mut text = String::new();
        kept.rewind().unwrap();
        kept.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        diverted.open_again(&path, (libc::O_WRONLY | libc::O_TRUNC).cast_unsigned()).unwrap();
        assert_eq!(kept.metadata().unwrap().len(), 0);
        diverted.removed.insert(path.clone());
        assert!(!diverted.has_removed(&path));
        diverted.forget(&path);
        assert!(diverted.has_removed(&path));
    }
}
