//! [`HideNewFiles`]: hides files that must not be read and that appear during the run.
//!
//! Not all files that a pattern hides exist at the start, and the host can replace a file that was
//! hidden. So the directories are watched with inotify, and something is mounted over what appears,
//! in the run's own namespaces.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Mode, OFlags};

use crate::child::mounts::{attach_to, clone_tree_of, closed_stub, open_without_links};
use crate::monitor::Rules;
use crate::supervisor::granted_later::{self, RunNamespaces};

/// Watches directories for what must be hidden.
pub(crate) struct HideNewFiles {
    events: OwnedFd,
    directories: HashMap<i32, PathBuf>,
    /// Processes that are mounting over something.
    helpers: Vec<i32>,
}

impl HideNewFiles {
    /// Watches every directory that the rules name. `None` if there is nothing to watch for.
    pub(crate) fn begin(rules: &mut dyn Rules) -> io::Result<Option<Self>> {
        let directories = rules.directories_to_watch();
        if directories.is_empty() {
            return Ok(None);
        }
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut hide = Self { events, directories: HashMap::new(), helpers: Vec::new() };
        for directory in directories {
            // A directory that is gone needs no watch, and the run sees none that cannot be read.
            let _ = hide.watch(&directory);
        }
        Ok(Some(hide))
    }

    /// The descriptor on which changes arrive.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.events
    }

    fn watch(&mut self, directory: &Path) -> io::Result<()> {
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        let number = inotify::add_watch(&self.events, directory, flags)?;
        self.directories.insert(number, directory.to_path_buf());
        Ok(())
    }

    /// Hides what has appeared.
    pub(crate) fn turn(
        &mut self,
        rules: &mut dyn Rules,
        namespaces: &RunNamespaces,
        tripwire: Option<&OwnedFd>,
    ) {
        self.helpers.retain(|helper| !crate::sys::has_ended(*helper));
        for path in self.appeared() {
            self.consider(&path, rules, namespaces, tripwire);
        }
    }

    fn appeared(&self) -> Vec<PathBuf> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(&self.events, &mut buffer);
        let mut paths = Vec::new();
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                // Events were lost, so everything is looked at again.
                let all = self.directories.values().filter_map(|dir| dir.read_dir().ok());
                paths.extend(all.flat_map(|dir| dir.flatten().map(|entry| entry.path())));
                continue;
            }
            let directory = self.directories.get(&event.wd());
            if let (Some(directory), Some(name)) = (directory, event.file_name())
                && !event.events().contains(ReadFlags::IGNORED)
            {
                paths.push(directory.join(std::ffi::OsStr::from_bytes(name.to_bytes())));
            }
        }
        paths
    }

    fn consider(
        &mut self,
        path: &Path,
        rules: &mut dyn Rules,
        namespaces: &RunNamespaces,
        tripwire: Option<&OwnedFd>,
    ) {
        let Ok(metadata) = path.symlink_metadata() else { return };
        if rules.is_hidden(path) {
            self.hide(path, metadata.is_dir(), namespaces, tripwire);
            return;
        }
        if metadata.is_dir() {
            // Files may have been created in it before the watch was.
            let watched = self.watch(path).and_then(|()| path.read_dir());
            let Ok(entries) = watched else {
                // Without a watch, what appears in it would not be hidden.
                self.hide(path, true, namespaces, tripwire);
                return;
            };
            for entry in entries.flatten() {
                self.consider(&entry.path(), rules, namespaces, tripwire);
            }
        }
    }

    /// Mounts over a path, in a process that is not waited for: it needs answers of the tripwire,
    /// which this thread gives.
    fn hide(
        &mut self,
        path: &Path,
        directory: bool,
        namespaces: &RunNamespaces,
        tripwire: Option<&OwnedFd>,
    ) {
        let Ok(below) = path.strip_prefix("/") else { return };
        let Ok(below) = CString::new(below.as_os_str().as_bytes()) else { return };
        let Ok(whole) = CString::new(path.as_os_str().as_bytes()) else { return };
        let started = granted_later::start_in_namespaces(namespaces, || {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let place = open_without_links(whole.as_c_str(), flags)?;
            let node = match tripwire {
                Some(root) => {
                    let node = rustix::fs::openat(root, below.as_c_str(), flags, Mode::empty())?;
                    clone_tree_of(node.as_fd())?
                }
                None => closed_stub(directory)?,
            };
            attach_to(node.as_fd(), place.as_fd())
        });
        self.helpers.extend(started.ok());
    }
}
