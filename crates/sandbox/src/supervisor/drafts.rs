//! [`Drafts`]: the next version of a single file that may be written, in a directory that may not.
//!
//! Editors and agents write a new file next to the old one and then rename it. They get a memfd for
//! it that no other process sees, and the rename copies its content into the file itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;

use model::AbsPath;
use rustix::fs::{MemfdFlags, OFlags};

use crate::child::mounts::open_without_links;

/// How many a run may have at a time.
const MOST: usize = 64;

/// The longest draft that becomes a file. A program that writes more can write the file itself.
const LONGEST: u64 = 64 << 20;

/// The drafts of a run, by the paths that it sees them at.
#[derive(Debug, Default)]
pub(crate) struct Drafts(BTreeMap<AbsPath, File>);

impl Drafts {
    /// Begins a draft, and replaces an old one of the same name.
    pub(crate) fn begin(&mut self, path: &AbsPath) -> io::Result<OwnedFd> {
        if self.0.len() >= MOST && !self.has(path) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        let file = rustix::fs::memfd_create("draft", MemfdFlags::CLOEXEC)?;
        let lent = file.try_clone()?;
        self.0.insert(path.clone(), file.into());
        Ok(lent)
    }

    pub(crate) fn has(&self, path: &AbsPath) -> bool {
        self.0.contains_key(path)
    }

    pub(crate) fn forget(&mut self, path: &AbsPath) {
        self.0.remove(path);
    }

    /// Those that are not empty and never became a file.
    pub(crate) fn left(&self) -> Vec<AbsPath> {
        let holds = |file: &File| file.metadata().is_ok_and(|file| file.len() > 0);
        self.0.iter().filter(|(_, file)| holds(file)).map(|(path, _)| path.clone()).collect()
    }

    /// Writes a draft into the file it is for, which stays the same file: it is mounted.
    pub(crate) fn publish(&self, draft: &AbsPath, to: &AbsPath) -> io::Result<()> {
        let mut draft = self.0.get(draft).ok_or(io::ErrorKind::NotFound)?;
        let length = draft.metadata()?.len();
        // The whole run waits while this thread copies.
        if length > LONGEST {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut file = File::from(open_without_links(to.as_path(), flags)?);
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        draft.seek(SeekFrom::Start(0))?;
        // The run may go on writing meanwhile.
        let length = io::copy(&mut draft.take(length), &mut file)?;
        file.set_len(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_draft_becomes_the_text_of_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| AbsPath::lexical(&dir.path().join(name)).unwrap();
        std::fs::write(at("TODO.md").as_path(), "a long first version\n").unwrap();
        let old = File::open(at("TODO.md").as_path()).unwrap();
        let mut drafts = Drafts::default();
        let lent = drafts.begin(&at("TODO.md.tmp")).unwrap();
        File::from(lent).write_all(b"second\n").unwrap();
        assert!(!at("TODO.md.tmp").as_path().exists(), "no other process sees it");
        drafts.publish(&at("TODO.md.tmp"), &at("TODO.md")).unwrap();
        assert_eq!(io::read_to_string(old).unwrap(), "second\n");
        std::os::unix::fs::symlink("TODO.md", at("link").as_path()).unwrap();
        assert!(drafts.publish(&at("TODO.md.tmp"), &at("link")).is_err(), "no link is followed");
        let endless = File::from(drafts.begin(&at("TODO.md.tmp")).unwrap());
        endless.set_len(1 << 62).unwrap();
        assert!(drafts.publish(&at("TODO.md.tmp"), &at("TODO.md")).is_err(), "it has an end");
        drafts.forget(&at("TODO.md.tmp"));
        assert!(!drafts.has(&at("TODO.md.tmp")));
        assert!(drafts.publish(&at("TODO.md.tmp"), &at("TODO.md")).is_err());
    }
}
