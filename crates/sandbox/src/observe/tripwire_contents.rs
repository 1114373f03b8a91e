//! [`RunContents`]: what the tripwire shows of a run: the directories that lead to granted paths. What
//! the host has elsewhere exists for a program that opens or changes it, which is an attempt, and
//! does not exist for one that only looks. A link of the host is one in the run if it leads to something
//! allowed.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use model::AbsPath;
use rustix::fs::FileType;

use crate::monitor::{self, Monitor, Ruling, Source};
use crate::observe::looking;
use crate::observe::planned_paths::PlannedPaths;
use crate::observe::program::Program;
use crate::observe::tripwire::{Contents, Seen};
use crate::supervisor::views::Views;
use crate::{Attempt, Operation};

/// The contents of the tripwire, for the length of one request.
pub(crate) struct RunContents<'a> {
    pub(crate) planned_paths: &'a PlannedPaths,
    pub(crate) monitor: &'a mut dyn Monitor,
    /// The run's `/proc`: process IDs in requests are of its PID namespace.
    pub(crate) processes: Option<&'a OwnedFd>,
    /// Whether the self-test is running: what it tries is no violation.
    pub(crate) self_test: bool,
    /// The thread for which the supervisor's own helper looks something up. The helper has no number in
    /// the run's PID namespace.
    pub(crate) performs_for: Option<u32>,
    /// The file system as the run sees it.
    pub(crate) views: &'a Views,
}

impl RunContents<'_> {
    fn rule(&mut self, attempt: &Attempt) -> Ruling {
        let (processes, pid) = (self.processes, attempt.pid);
        let thread = self.performs_for.filter(|_| pid == 0);
        monitor::rule(self.monitor, Source::Tripwire, attempt, || match thread {
            Some(thread) => Program::look_up_here(thread),
            None => program(processes, pid),
        })
    }

    /// Whether a path of the home directory is for the run to create.
    fn is_private(&self, path: &AbsPath) -> bool {
        self.views.private(path).is_some() && self.monitor.may_be_private(path)
    }

    /// What the run has created at a path.
    fn private(&self, path: &AbsPath) -> Option<Seen> {
        let stat = self.views.stat_private(path)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Some(Seen::PrivateDirectory),
            FileType::Symlink => None,
            _ => Some(Seen::PrivateFile),
        }
    }

    /// What the run has created in a directory, where something else is around it.
    fn private_names(&self, dir: &Path) -> Vec<(OsString, Seen)> {
        let Ok(dir) = AbsPath::lexical(dir) else { return Vec::new() };
        let Some(listed) = self.views.list_private(&dir) else { return Vec::new() };
        let seen = |name: OsString| {
            let path = dir.join(&name);
            let new = self.planned_paths.seen(path.as_path()).is_none() && self.is_private(&path);
            Some((name, self.private(&path).filter(|_| new)?))
        };
        listed.into_iter().filter_map(seen).collect()
    }

    /// Whether a link of the host leads to something that the run may use. What it says is followed in
    /// the run, where the plan decides again.
    fn is_needed(&self, link: &Path) -> bool {
        let target = link.canonicalize();
        target.is_ok_and(|target| self.planned_paths.is_reached_by_links(&target))
    }

    fn program(&self, pid: u32) -> Program {
        program(self.processes, pid)
    }
}

fn program(processes: Option<&OwnedFd>, pid: u32) -> Program {
    match processes {
        Some(view) => Program::look_up(view.as_fd(), pid),
        None => Program { pid, ..Program::default() },
    }
}

impl Contents for RunContents<'_> {
    fn look(&mut self, path: &Path, pid: u32) -> Seen {
        let Ok(path) = AbsPath::lexical(path) else { return Seen::Absent(libc::ENOENT) };
        if let Some(seen) = self.planned_paths.seen(path.as_path()) {
            return seen;
        }
        let private = self.is_private(&path);
        if private && let Some(seen) = self.private(&path) {
            return seen;
        }
        let metadata = match std::fs::symlink_metadata(path.as_path()) {
            Ok(metadata) => metadata,
            // The run may create it at any time.
            Err(_) if private => return Seen::Hidden,
            Err(error) => return Seen::Absent(error.raw_os_error().unwrap_or(libc::ENOENT)),
        };
        if self.self_test {
            return Seen::File;
        }
        if metadata.is_symlink() && self.is_needed(path.as_path()) {
            return Seen::Link;
        }
        let path = path.as_path().to_path_buf();
        let attempt = Attempt { operation: Operation::Look, path, pid };
        match self.rule(&attempt) {
            Ruling::Errno(_) if private => return Seen::Hidden,
            Ruling::Errno(errno) => return Seen::Absent(errno),
            Ruling::Continue | Ruling::Stop => {}
        }
        let only_looks = !self.monitor.shows_looks(&attempt.path)
            && self.processes.is_some_and(|view| looking::only_looks(view.as_fd(), pid));
        if only_looks {
            self.monitor.probed(&attempt, &self.program(pid));
            return Seen::Hidden;
        }
        // A way through a link to a hidden directory is an attempt on what is in that.
        let followed = std::fs::metadata(&attempt.path).ok().filter(|_| metadata.is_symlink());
        let is_directory = followed.unwrap_or(metadata).is_dir();
        if is_directory { Seen::Directory } else { Seen::File }
    }

    fn names(&mut self, path: &Path) -> Vec<(OsString, Seen)> {
        let seen = |name: &OsString| self.planned_paths.seen(&path.join(name)).unwrap_or(Seen::Way);
        let planned = self.planned_paths.names(path).iter();
        let mut names: Vec<_> = planned.map(|name| (name.clone(), seen(name))).collect();
        names.extend(self.private_names(path));
        names
    }

    fn target(&mut self, path: &Path) -> Option<PathBuf> {
        match self.planned_paths.target(path) {
            Some(target) => Some(target.clone()),
            None => std::fs::read_link(path).ok().filter(|_| self.is_needed(path)),
        }
    }

    fn attempt(&mut self, attempt: Attempt) -> Ruling {
        if self.self_test {
            return Ruling::Errno(libc::EACCES);
        }
        // It is mounted in the next moment, or was removed in the last.
        if AbsPath::lexical(&attempt.path).is_ok_and(|path| self.is_private(&path)) {
            return Ruling::Errno(libc::ENOENT);
        }
        self.rule(&attempt)
    }
}
