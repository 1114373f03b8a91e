//! What the tripwire shows: the ways to granted ground, and what lies outside it on the host.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use model::AbsPath;

use crate::monitor::{self, Monitor, Ruling, Source};
use crate::observe::planned_paths::PlannedPaths;
use crate::observe::program::Program;
use crate::observe::tripwire::{Contents, Seen};
use crate::{Attempt, Operation};

/// The tripwire's view, for the length of one request.
pub(crate) struct RunContents<'a> {
    pub(crate) skeleton: &'a PlannedPaths,
    pub(crate) monitor: &'a mut dyn Monitor,
    /// The run's own processes, by which a request's number is to be read.
    pub(crate) processes: Option<&'a OwnedFd>,
    /// Set while our own child tries the wall: what it does is no violation.
    pub(crate) self_test: bool,
}

impl RunContents<'_> {
    fn rule(&mut self, attempt: &Attempt) -> Ruling {
        let (processes, pid) = (self.processes, attempt.pid);
        monitor::rule(self.monitor, Source::Tripwire, attempt, || match processes {
            Some(view) => Program::look_up(view.as_fd(), pid),
            None => Program { pid, ..Program::default() },
        })
    }
}

impl Contents for RunContents<'_> {
    fn look(&mut self, path: &Path, pid: u32) -> Seen {
        let Ok(path) = AbsPath::lexical(path) else { return Seen::Absent(libc::ENOENT) };
        if let Some(seen) = self.skeleton.seen(path.as_path()) {
            return seen;
        }
        let metadata = match std::fs::symlink_metadata(path.as_path()) {
            Ok(metadata) => metadata,
            Err(error) => return Seen::Absent(error.raw_os_error().unwrap_or(libc::ENOENT)),
        };
        if self.self_test {
            return Seen::File;
        }
        let path = path.as_path().to_path_buf();
        match self.rule(&Attempt { operation: Operation::Look, path, pid }) {
            Ruling::Errno(errno) => return Seen::Absent(errno),
            Ruling::Continue | Ruling::Stop => {}
        }
        if metadata.is_dir() { Seen::Directory } else { Seen::File }
    }

    fn names(&mut self, path: &Path) -> Vec<(OsString, Seen)> {
        let seen = |name: &OsString| self.skeleton.seen(&path.join(name)).unwrap_or(Seen::Way);
        self.skeleton.names(path).iter().map(|name| (name.clone(), seen(name))).collect()
    }

    fn target(&mut self, path: &Path) -> Option<PathBuf> {
        self.skeleton.target(path).cloned()
    }

    fn attempt(&mut self, attempt: Attempt) -> Ruling {
        if self.self_test {
            return Ruling::Errno(libc::EACCES);
        }
        self.rule(&attempt)
    }
}
