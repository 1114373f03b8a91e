//! [`KeptMounts`]: notices that a mount which takes something away from the run is gone, and what
//! appears that must not be read.
//!
//! The kernel detaches a mount when someone in another mount namespace removes what it is mounted on,
//! or renames something over it. On the host that is ordinary: `git config`, an editor that saves.
//! And not all files that a pattern hides exist at the start. So the directories are watched with
//! inotify. The event of a change comes after the mount is gone, and before the call that caused
//! both returns; until then only intercepted calls protect the path.
//!
//! Nothing is mounted here: [`KeptMounts::orders`] says what must be.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::{AbsPath, Kind, Piece, Plan};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::child::mounts::protections;
use crate::monitor::Rules;
use crate::supervisor::mount_helper::{Cover, Done, Order};

/// The mounts that must stay, and the directories in which they could be replaced.
pub(crate) struct KeptMounts {
    events: OwnedFd,
    directories: HashMap<i32, Watched>,
    /// The mounts of the plan.
    kept: BTreeMap<PathBuf, Cover>,
    /// Those of them that were gone at some time.
    uncovered: BTreeSet<PathBuf>,
    /// The pieces of the plan, and whether each is the host's own.
    pieces: HashMap<PathBuf, bool>,
    /// What was found at the beginning and has to be mounted.
    orders: Vec<Order>,
}

/// A directory.
struct Watched {
    path: PathBuf,
    /// Whether something may appear in it that must not be read.
    hides: bool,
}

/// More events than the kernel keeps. A program that causes them all the time must not hold the
/// supervisor.
const MOST_EVENTS: usize = 32_768;

impl KeptMounts {
    /// Watches every directory that matters, and looks at what is in those in which something may
    /// have to be hidden: it may have appeared since the plan was made. `None` if there is nothing to
    /// watch for.
    pub(crate) fn begin(plan: &Plan, rules: &mut dyn Rules) -> io::Result<Option<Self>> {
        let (hiding, whole_trees) = rules.directories_to_watch();
        let kept: BTreeMap<_, _> = kept(plan).collect();
        if hiding.is_empty() && kept.is_empty() {
            return Ok(None);
        }
        let host = |piece: &Piece| matches!(piece.kind, Kind::Read | Kind::Write);
        let pieces = plan.pieces.iter().filter(|piece| piece.kind != Kind::Pinned);
        let mut this = Self {
            events: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            directories: HashMap::new(),
            kept,
            uncovered: BTreeSet::new(),
            pieces: pieces.map(|it| (it.path.as_path().to_path_buf(), host(it))).collect(),
            orders: Vec::new(),
        };
        for directory in hiding {
            this.watch_if_there(&directory, true)?;
            if whole_trees {
                this.look_through(directory, rules)?;
            }
        }
        let above: BTreeSet<_> = this.kept.keys().flat_map(|path| this.ways(path)).collect();
        for directory in above {
            this.watch_if_there(&directory, false)?;
        }
        Ok(Some(this))
    }

    /// Whether a mount that the host could remove is all that hides something.
    pub(crate) fn hides(plan: &Plan) -> bool {
        kept(plan).any(|(_, cover)| cover == Cover::Hidden)
    }

    /// Orders every mount of the plan that is gone.
    pub(crate) fn look_again(&mut self, is_there: impl Fn(&Path) -> bool) {
        let kept = self.kept.iter().filter(|(path, _)| !is_there(path));
        self.orders.extend(kept.map(|(path, cover)| Order { path: path.clone(), cover: *cover }));
    }

    /// Every mount that this would keep.
    pub(crate) fn all(plan: &Plan) -> Vec<AbsPath> {
        kept(plan).filter_map(|(path, _)| AbsPath::lexical(&path).ok()).collect()
    }

    /// Watches the directories below one, and takes note of what has to be hidden and is not.
    fn look_through(&mut self, directory: PathBuf, rules: &mut dyn Rules) -> io::Result<()> {
        let mut todo = vec![directory];
        while let Some(directory) = todo.pop() {
            let Ok(entries) = directory.read_dir() else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                if self.kept.get(&path) == Some(&Cover::Hidden) {
                    continue;
                }
                if rules.is_hidden(&path) {
                    let order = self.hide(path);
                    self.orders.extend(order);
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    self.watch_if_there(&path, true)?;
                    todo.push(path);
                }
            }
        }
        Ok(())
    }

    /// The descriptor on which changes arrive.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.events
    }

    /// A directory that is gone needs no watch, and the run sees none that cannot be read.
    fn watch_if_there(&mut self, directory: &Path, hides: bool) -> io::Result<()> {
        let gone = [libc::ENOENT, libc::ENOTDIR, libc::ELOOP, libc::EACCES];
        match self.watch(directory, hides) {
            Err(error) if !error.raw_os_error().is_some_and(|errno| gone.contains(&errno)) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn watch(&mut self, directory: &Path, hides: bool) -> io::Result<()> {
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        let number = inotify::add_watch(&self.events, directory, flags)?;
        // The kernel knows it by its inode: it may have had another path before.
        let before = self.directories.get(&number).is_some_and(|watched| watched.hides);
        let path = directory.to_path_buf();
        self.directories.insert(number, Watched { path, hides: hides || before });
        Ok(())
    }

    /// What has to be mounted, after everything that has happened up to now.
    pub(crate) fn orders(&mut self, rules: &mut dyn Rules) -> Vec<Order> {
        let mut orders = std::mem::take(&mut self.orders);
        for (path, hides) in self.appeared() {
            if !self.restore(&path, &mut orders) && hides {
                self.consider(path, rules, &mut orders);
            }
        }
        orders
    }

    /// Takes note of what became of an order.
    pub(crate) fn note(&mut self, order: &Order, done: Done) {
        if done != Done::Unchanged && self.kept.contains_key(&order.path) {
            self.uncovered.insert(order.path.clone());
        }
    }

    /// The mounts of the plan that were gone at some time. For the end, when no process of the run
    /// is left.
    pub(crate) fn uncovered(mut self) -> Vec<AbsPath> {
        for (path, _) in self.appeared() {
            let gone: Vec<_> = self.within(&path).map(|(path, _)| path.clone()).collect();
            self.uncovered.extend(gone);
        }
        self.uncovered.iter().filter_map(|path| AbsPath::lexical(path).ok()).collect()
    }

    /// The mounts of the plan at a path and below it, the outer ones first.
    fn within<'a>(&'a self, path: &Path) -> impl Iterator<Item = (&'a PathBuf, &'a Cover)> {
        let path = path.to_path_buf();
        let from = self.kept.range(path.clone()..);
        from.take_while(move |(kept, _)| kept.starts_with(&path))
    }

    /// What appeared in the directories since the last time, and whether it may have to be hidden.
    fn appeared(&mut self) -> BTreeMap<PathBuf, bool> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(&self.events, &mut buffer);
        let mut paths = BTreeMap::new();
        let mut lost = false;
        for _ in 0..MOST_EVENTS {
            let Ok(event) = reader.next() else { break };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                lost = true;
            } else if event.events().contains(ReadFlags::IGNORED) {
                self.directories.remove(&event.wd());
            } else if let Some(name) = event.file_name()
                && let Some(Watched { path, hides }) = self.directories.get(&event.wd())
            {
                let path = path.join(OsStr::from_bytes(name.to_bytes()));
                let before = paths.get(&path).is_some_and(|before| *before);
                paths.insert(path, *hides || before);
            }
        }
        if lost {
            // Anything may have happened, so everything is looked at again.
            self.uncovered.extend(self.kept.keys().cloned());
            paths.extend(self.kept.keys().map(|path| (path.clone(), false)));
            let hiding = self.directories.values().filter(|watched| watched.hides);
            paths.extend(hiding.map(|watched| (watched.path.clone(), true)));
        }
        paths
    }

    /// Orders the mounts of the plan at a path and below it. Returns whether there is one at the path
    /// itself.
    fn restore(&mut self, path: &Path, orders: &mut Vec<Order>) -> bool {
        let kept: Vec<_> = self.within(path).map(|(path, cover)| (path.clone(), *cover)).collect();
        let itself = kept.first().is_some_and(|(first, _)| first == path);
        for (path, cover) in kept {
            for directory in self.ways(&path) {
                // It may be a new one. If it cannot be watched, the next change is not noticed.
                if self.watch_if_there(&directory, false).is_err() {
                    self.uncovered.insert(path.clone());
                }
            }
            orders.push(Order { path, cover });
        }
        itself
    }

    /// The order to hide a path. A mount on a link would hide the link, and not what it leads to.
    fn hide(&self, path: PathBuf) -> Option<Order> {
        let cover = Cover::Hidden;
        if !path.is_symlink() {
            return Some(Order { path, cover });
        }
        let target = path.canonicalize().ok()?;
        let piece = target.ancestors().find_map(|at| self.pieces.get(at));
        // What belongs to the run itself is never taken away, and a directory that contains the link
        // holds more than what must be hidden.
        let hides = piece == Some(&true) && !path.starts_with(&target);
        let there = self.kept.get(&target) == Some(&cover);
        (hides && !there).then_some(Order { path: target, cover })
    }

    /// The directories above a path, up to the one that is mounted for itself.
    fn ways(&self, path: &Path) -> Vec<PathBuf> {
        let mut ways = Vec::new();
        for directory in path.ancestors().skip(1) {
            ways.push(directory.to_path_buf());
            if self.pieces.get(directory) == Some(&true) {
                break;
            }
        }
        ways
    }

    /// Orders to hide what appeared, as far as rules say so.
    fn consider(&mut self, path: PathBuf, rules: &mut dyn Rules, orders: &mut Vec<Order>) {
        let mut todo = vec![path];
        while let Some(path) = todo.pop() {
            if rules.is_hidden(&path) {
                orders.extend(self.hide(path));
                continue;
            }
            if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                continue;
            }
            // Watched first: files may be created in it while it is read.
            match self.watch(&path, true).and_then(|()| path.read_dir()) {
                Ok(entries) => todo.extend(entries.flatten().map(|entry| entry.path())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // What appears in it would not be noticed.
                Err(_) => orders.push(Order { path, cover: Cover::Hidden }),
            }
        }
    }
}

/// The mounts of the plan that the host could remove.
fn kept(plan: &Plan) -> impl Iterator<Item = (PathBuf, Cover)> {
    protections(plan).into_iter().filter_map(|piece| {
        let cover = match piece.kind {
            Kind::Read => Cover::ReadOnly,
            Kind::Pinned => Cover::Pinned,
            Kind::Closed => Cover::Hidden,
            _ => return None,
        };
        Some((piece.path.as_path().to_path_buf(), cover))
    })
}
