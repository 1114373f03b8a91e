//! [`Views`]: the file system as the run sees it, by descriptor.
//!
//! Paths are found from the roots of mounted trees on, through the run's own mounts, without following
//! a link. The supervisor serves the tripwire itself, so a lookup that asks the tripwire would wait for
//! ever: it takes a step into a directory only if that answers from the kernel's cache, or is known to
//! be of another file system.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use model::{AbsPath, Plan};
use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;

/// The trees of a run, by the paths they are mounted at.
#[derive(Debug, Default)]
pub(crate) struct Views {
    trees: Vec<(AbsPath, OwnedFd)>,
    private_home: Option<PrivateHome>,
    /// The device number of the tripwire.
    tripwire: Option<(u32, u32)>,
}

/// What the run creates in the home directory: entries that begin with a dot, at any path of which the
/// plan says nothing.
#[derive(Debug)]
struct PrivateHome {
    home: AbsPath,
    tree: OwnedFd,
    /// What the plan has in the home directory.
    planned: Vec<AbsPath>,
}

impl PrivateHome {
    fn below<'p>(&self, path: &'p AbsPath) -> Option<&'p Path> {
        let below = path.as_path().strip_prefix(self.home.as_path()).ok()?;
        let dotted = below.iter().next()?.as_bytes().starts_with(b".");
        let planned = self.planned.iter().any(|planned| path.is_within(planned));
        (dotted && !planned).then_some(below)
    }
}

/// What is known about something without asking the file system that it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: FileType,
    /// Identifies the mount. Zero where the kernel does not say (before Linux 5.8).
    pub(crate) mount: u64,
    device: (u32, u32),
}

impl Seen {
    pub(crate) fn of(place: BorrowedFd<'_>) -> Result<Self, Errno> {
        const MNT_ID: u32 = 0x1000;
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let mask = StatxFlags::TYPE | StatxFlags::from_bits_retain(MNT_ID);
        let found = rustix::fs::statx(place, "", flags, mask)?;
        Ok(Self {
            kind: FileType::from_raw_mode(found.stx_mode.into()),
            mount: found.stx_mnt_id,
            device: (found.stx_dev_major, found.stx_dev_minor),
        })
    }
}

/// The longest tick of the kernel's clock for files.
const TICK: Duration = Duration::from_millis(10);

/// Private names that a listing shows.
const MOST_LISTED: usize = 1000;

/// Without following links: what was judged has none left, so one that is there now is new.
const PLAIN: ResolveFlags =
    ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::BENEATH);
const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

impl Views {
    pub(crate) fn add(&mut self, trees: impl IntoIterator<Item = (AbsPath, OwnedFd)>) {
        self.trees.extend(trees);
    }

    /// Takes the root of the tripwire, from which nothing is looked up.
    pub(crate) fn avoid(&mut self, tripwire: BorrowedFd<'_>) -> Result<(), Errno> {
        self.tripwire = Some(Seen::of(tripwire)?.device);
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.trees.clear();
        self.private_home = None;
    }

    /// The tree that is mounted at a path.
    pub(crate) fn tree(&self, path: &AbsPath) -> Option<&OwnedFd> {
        self.trees.iter().find(|(place, _)| place == path).map(|(_, tree)| tree)
    }

    /// Takes the tree of what the run creates in the home directory.
    pub(crate) fn keep_private(&mut self, plan: &Plan, tree: OwnedFd) {
        let pieces = plan.pieces.iter().map(|piece| &piece.path);
        let paths = pieces.chain(plan.links.iter().map(|link| &link.path));
        let planned = paths.filter(|path| **path != plan.home && path.is_within(&plan.home));
        let (home, planned) = (plan.home.clone(), planned.cloned().collect());
        self.private_home = Some(PrivateHome { home, tree, planned });
    }

    /// What is private of the home directory: its tree, and the path in it.
    pub(crate) fn private<'p>(&self, path: &'p AbsPath) -> Option<(BorrowedFd<'_>, &'p Path)> {
        let private = self.private_home.as_ref()?;
        Some((private.tree.as_fd(), private.below(path)?))
    }

    /// What is private at a path of the home directory. No link is followed: the run may have put one in
    /// place of a directory, and this process would follow it on the host.
    pub(crate) fn stat_private(&self, path: &AbsPath) -> Option<Stat> {
        let (dir, name) = self.private_parent(path)?;
        rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Creates a directory in the private home directory, unless something is there.
    pub(crate) fn make_private(&self, path: &AbsPath) {
        if let Some((dir, name)) = self.private_parent(path) {
            let _ = rustix::fs::mkdirat(dir, name, Mode::from(0o755));
        }
    }

    fn private_parent<'p>(&self, path: &'p AbsPath) -> Option<(OwnedFd, &'p OsStr)> {
        let (tree, below) = self.private(path)?;
        let above = below.parent().filter(|above| !above.as_os_str().is_empty());
        let (above, how) = (above.unwrap_or(Path::new(".")), PLAIN | ResolveFlags::NO_XDEV);
        let flags = PATH | OFlags::DIRECTORY;
        let dir = rustix::fs::openat2(tree, above, flags, Mode::empty(), how).ok()?;
        Some((dir, below.file_name()?))
    }

    /// The programs in a directory that were created or changed since a time.
    pub(crate) fn new_programs(&self, dir: &AbsPath, since: SystemTime) -> Vec<AbsPath> {
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // The times of files are those of the last tick of the kernel.
        let since = since.saturating_sub(TICK);
        let list = || {
            let (tree, rest) = self.find(dir)?;
            let place = self.directory(tree, rest).ok()?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let place = rustix::fs::openat(place, ".", flags, Mode::empty()).ok()?;
            let entries = Dir::read_from(&place).ok()?.filter_map(Result::ok).take(MOST_LISTED);
            let is_new = |name: &OsStr| {
                // A node of the tripwire may be mounted there.
                let (found, seen) = self.look(place.as_fd(), name).ok()?;
                let stat = rustix::fs::fstat(found).ok()?;
                let runs = seen.kind.is_file() && stat.st_mode & 0o111 != 0;
                let seconds = Duration::from_secs(stat.st_ctime.try_into().ok()?);
                let changed = seconds + Duration::from_nanos(stat.st_ctime_nsec);
                Some(changed >= since && (runs || seen.kind.is_symlink()))
            };
            let names = entries.filter_map(|entry| {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                let file = name != "." && name != "..";
                (file && is_new(name)?).then(|| dir.join(name))
            });
            Some(names.collect())
        };
        list().unwrap_or_default()
    }

    /// The regular files directly in a private directory.
    pub(crate) fn files(&self, dir: &AbsPath) -> Vec<AbsPath> {
        let list = || {
            let (tree, rest) = self.find(dir)?;
            let place = self.directory(tree, rest).ok()?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let place = rustix::fs::openat(place, ".", flags, Mode::empty()).ok()?;
            let entries = Dir::read_from(place).ok()?.filter_map(Result::ok).take(MOST_LISTED);
            let files = entries.filter(|entry| entry.file_type().is_file());
            let name =
                |entry: &DirEntry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            Some(files.map(|entry| dir.join(&name(&entry))).collect())
        };
        list().unwrap_or_default()
    }

    /// The names of what is private in the home directory, or in one below it.
    pub(crate) fn list_private(&self, dir: &AbsPath) -> Option<Vec<OsString>> {
        let private = self.private_home.as_ref()?;
        let below = match private.below(dir) {
            Some(below) => below,
            None if *dir == private.home => Path::new("."),
            None => return None,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat2(&private.tree, below, flags, Mode::empty(), PLAIN).ok()?;
        let entries = Dir::read_from(dir).ok()?.filter_map(Result::ok).take(MOST_LISTED);
        let names = entries.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
        let mut names: Vec<_> = names.filter(|name| name != "." && name != "..").collect();
        names.sort();
        Some(names)
    }

    /// The innermost tree that contains a path, and the rest of the path.
    fn find<'p>(&self, path: &'p AbsPath) -> Option<(BorrowedFd<'_>, &'p Path)> {
        if let Some(private) = self.private(path) {
            return Some(private);
        }
        let within = self.trees.iter().filter(|(place, _)| path.is_within(place));
        let (place, tree) = within.max_by_key(|(place, _)| place.as_path().as_os_str().len())?;
        Some((tree.as_fd(), path.as_path().strip_prefix(place.as_path()).ok()?))
    }

    /// Whether a path leads to itself: there is no link on the way, and none at its end. `false` if
    /// that is not known at once.
    pub(crate) fn is_plain(&self, path: &AbsPath) -> bool {
        let Some((tree, rest)) = self.find(path) else { return false };
        if rest.as_os_str().is_empty() {
            return true;
        }
        let how = PLAIN | ResolveFlags::CACHED;
        let found = rustix::fs::openat2(tree, rest, PATH, Mode::empty(), how);
        matches!(found, Ok(_) | Err(Errno::NOENT))
    }

    /// The directory that contains a path, and its last name; `None` for the name of a tree itself.
    pub(crate) fn parent<'p>(
        &self,
        path: &'p AbsPath,
    ) -> Result<(OwnedFd, Option<&'p OsStr>), Errno> {
        let (tree, rest) = self.find(path).ok_or(Errno::ACCESS)?;
        match rest.file_name() {
            Some(name) => {
                let above = rest.parent().unwrap_or(Path::new(""));
                Ok((self.directory(tree, above)?, Some(name)))
            }
            None => Ok((tree.try_clone_to_owned().map_err(|_| Errno::MFILE)?, None)),
        }
    }

    /// Whether something is mounted at a path, as the run sees it.
    pub(crate) fn is_mount(&self, path: &Path) -> bool {
        let Ok(path) = AbsPath::lexical(path) else { return false };
        let mounted = || {
            let (directory, name) = self.parent(&path)?;
            let Some(name) = name else { return Ok(true) };
            match self.look(directory.as_fd(), name) {
                Ok((_, seen)) => Ok(seen.mount != Seen::of(directory.as_fd())?.mount),
                // A node of the tripwire.
                Err(Errno::ACCESS) => Ok(true),
                Err(error) => Err(error),
            }
        };
        mounted().unwrap_or(false)
    }

    fn directory(&self, tree: BorrowedFd<'_>, rest: &Path) -> Result<OwnedFd, Errno> {
        let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
        let (flags, how) = (PATH | OFlags::DIRECTORY, PLAIN | ResolveFlags::CACHED);
        let found = match rustix::fs::openat2(tree, rest, flags, Mode::empty(), how) {
            // It has to be read first, or the kernel is older than 5.12.
            Err(Errno::AGAIN | Errno::INVAL) => return self.step_by_step(tree, rest),
            found => found?,
        };
        self.check(found.as_fd())?;
        Ok(found)
    }

    fn step_by_step(&self, tree: BorrowedFd<'_>, rest: &Path) -> Result<OwnedFd, Errno> {
        let mut at = rustix::fs::openat(tree, ".", PATH | OFlags::DIRECTORY, Mode::empty())?;
        for name in rest.iter().filter(|name| *name != ".") {
            let (next, seen) = self.look(at.as_fd(), name)?;
            match seen.kind {
                FileType::Directory => at = next,
                FileType::Symlink => return Err(Errno::LOOP),
                _ => return Err(Errno::NOTDIR),
            }
        }
        Ok(at)
    }

    /// What has a name in a directory that [`Self::parent`] gave. It is not opened.
    pub(crate) fn look(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<(OwnedFd, Seen), Errno> {
        let flags = PATH | OFlags::NOFOLLOW;
        let found = rustix::fs::openat(directory, name, flags, Mode::empty())?;
        let seen = self.check(found.as_fd())?;
        Ok((found, seen))
    }

    fn check(&self, place: BorrowedFd<'_>) -> Result<Seen, Errno> {
        let seen = Seen::of(place)?;
        if self.tripwire == Some(seen.device) {
            return Err(Errno::ACCESS);
        }
        Ok(seen)
    }
}
