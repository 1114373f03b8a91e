//! [`Spares`]: what most runs mount, made while the supervisor still makes the plan.
//!
//! Nothing here depends on a plan. Where a plan has no use for the directory they are staged in, all of
//! them are given up and made again as it wants.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use model::{AbsPath, Base, Kind, Link, Piece, Plan, Usual};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountPropagationFlags, UnmountFlags};

use super::materials::Source;
use super::processes::hide_host;
use super::store::Store;
use super::tree::{
    attach_to, clone_tree_of, find_below, open_without_links, private_room, processes, terminals,
    tripwire,
};
use super::{Placement, attach_root, needs_source};
use crate::sys::{self, MOUNT_NOSUID, MOUNT_RDONLY};

/// Where they are staged: directories in which people rarely work.
const STAGING_DIRECTORIES: &[&str] = &["/media", "/mnt", "/srv"];

/// What a run most likely mounts.
#[derive(Default)]
pub(crate) struct Spares {
    staged: Option<Staged>,
    /// Copies of what the host has.
    trees: HashMap<&'static Path, OwnedFd>,
}

/// What is mounted in the staging directory.
struct Staged {
    at: &'static Path,
    store: Option<Store<'static>>,
    tripwire: Option<SpareTripwire>,
    processes: Option<OwnedFd>,
    devices: Option<Devices>,
}

/// `/dev` with everything in it: mounted where it is made, and then moved as a whole.
struct Devices {
    usual: Usual,
    trees: HashMap<&'static Path, OwnedFd>,
}

/// The root of a run, mounted, and its device.
pub(super) struct SpareTripwire {
    pub(super) device: OwnedFd,
    pub(super) root: OwnedFd,
}

impl Spares {
    /// Makes them. What fails is left out: it is tried again when a plan wants it, and then its
    /// failure is reported.
    pub(crate) fn make(user: (u32, u32), usual: &Usual) -> Self {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        if rustix::mount::mount_change("/", private).is_err() {
            return Self::default();
        }
        // Everything is created with exactly the mode that it is to have.
        let umask = rustix::process::umask(Mode::empty());
        let copy = |path: &'static str| {
            let path = Path::new(path);
            let place = open_without_links(path, OFlags::PATH | OFlags::NOFOLLOW).ok()?;
            Some((path, clone_tree_of(place.as_fd()).ok()?))
        };
        let trees = usual.sources.iter().filter_map(|path| copy(path)).collect();
        let staged = Staged::make(user, usual);
        rustix::process::umask(umask);
        Self { staged, trees }
    }

    /// The storage of a run, if it can be staged where it is. Otherwise nothing is mounted there
    /// any more.
    pub(super) fn store(
        &mut self,
        plan: &Plan,
        clear: impl FnOnce(&Path) -> bool,
    ) -> Option<Store<'static>> {
        let at = self.staged.as_ref()?.at;
        let usual = plan.base == Base::Nothing && plan.limits.private_files.is_none();
        if usual && clear(at) {
            return self.staged.as_mut()?.store.take();
        }
        self.give_up();
        None
    }

    /// Mounts nothing any more.
    pub(crate) fn give_up(&mut self) {
        // Nothing must wait for a device that is still open.
        let at = self.staged.take().map(|staged| staged.at);
        let _ = at.map(|at| rustix::mount::unmount(at, UnmountFlags::DETACH));
    }

    /// The root of a run, at `root` in the store.
    pub(super) fn tripwire(&mut self) -> Option<SpareTripwire> {
        self.staged.as_mut()?.tripwire.take()
    }

    /// The source of a piece.
    pub(super) fn source(&mut self, plan: &Plan, placement: &Placement<'_>) -> Option<Source> {
        let piece = placement.piece;
        let devices = self.staged.as_mut().and_then(|staged| staged.devices.as_mut());
        if let Some(devices) = devices.filter(|devices| devices.contain(&piece.path)) {
            return devices.are_those_of(plan).then(|| devices.source(piece)).flatten();
        }
        match piece.kind {
            Kind::Processes => self.staged.as_mut()?.processes.take().map(Source::Taken),
            Kind::Read if needs_source(plan, placement) => {
                self.trees.remove(piece.path.as_path()).map(Source::Taken)
            }
            _ => None,
        }
    }

    /// Keeps what is not needed as long as this process lives: giving up a copy of a mount waits for
    /// every processor.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Staged {
    fn make(user: (u32, u32), usual: &Usual) -> Option<Self> {
        let is_dir = |path: &&Path| path.symlink_metadata().is_ok_and(|entry| entry.is_dir());
        let at = STAGING_DIRECTORIES.iter().map(Path::new).find(is_dir)?;
        let store = Store::on(at, private_room(None), None).ok()?;
        let tripwire = SpareTripwire::mount(&store, user).ok();
        let processes = mount_processes(&store).ok();
        let devices = Devices::mount(&store, usual).ok();
        Some(Self { at, store: Some(store), tripwire, processes, devices })
    }
}

impl SpareTripwire {
    pub(super) fn mount(store: &Store<'_>, user: (u32, u32)) -> io::Result<Self> {
        let device = open_device()?;
        let root = tripwire(&device, user)?;
        attach_root(&root, store)?;
        Ok(Self { device, root })
    }
}

impl Devices {
    fn mount(store: &Store<'_>, usual: &Usual) -> io::Result<Self> {
        let mut trees: HashMap<&'static Path, OwnedFd> = HashMap::new();
        let mut devices = usual.devices.iter();
        let (top, _) = devices.next().ok_or(io::ErrorKind::NotFound)?;
        let top = Path::new(*top);
        let root = store.directory(&absolute(top)?)?;
        attach_root(&root, store)?;
        for (path, kind) in devices {
            let path = Path::new(*path);
            let name = path.strip_prefix(top).map_err(io::Error::other)?;
            let tree = match kind {
                Kind::Device => device(path)?,
                Kind::Terminals => terminals()?,
                Kind::Scratch => store.directory(&absolute(path)?)?,
                _ => return Err(io::ErrorKind::Unsupported.into()),
            };
            let target =
                if *kind == Kind::Device { new_file(&root, name) } else { new_dir(&root, name) };
            attach_to(tree.as_fd(), target?.as_fd())?;
            trees.insert(path, tree);
        }
        for (name, target) in usual.device_links {
            rustix::fs::symlinkat(*target, &root, *name)?;
        }
        trees.insert(top, root);
        Ok(Self { usual: *usual, trees })
    }

    fn contain(&self, path: &AbsPath) -> bool {
        let top = self.usual.devices.first();
        top.is_some_and(|(top, _)| path.as_path().starts_with(top))
    }

    /// Whether a plan wants exactly these.
    fn are_those_of(&self, plan: &Plan) -> bool {
        let Usual { devices, device_links: links, .. } = &self.usual;
        let pieces: Vec<_> = plan.pieces.iter().filter(|it| self.contain(&it.path)).collect();
        let wanted: Vec<_> = plan.links.iter().filter(|it| self.contain(&it.path)).collect();
        let has = |piece: &&Piece| {
            let is = |(path, kind): &(&str, Kind)| {
                piece.path.as_path() == Path::new(path) && piece.kind == *kind
            };
            devices.iter().any(is)
        };
        let is_link = |link: &&Link| {
            let is = |(name, target): &(&str, &str)| {
                link.path.as_path().ends_with(name) && link.target == Path::new(target)
            };
            links.iter().any(is)
        };
        pieces.len() == devices.len()
            && pieces.iter().all(has)
            && wanted.len() == links.len()
            && wanted.iter().all(is_link)
    }

    /// The first one is moved, and takes the others with it.
    fn source(&mut self, piece: &Piece) -> Option<Source> {
        let is_top = self
            .usual
            .devices
            .first()
            .is_some_and(|(top, _)| piece.path.as_path() == Path::new(top));
        let tree = self.trees.remove(piece.path.as_path())?;
        Some(if is_top { Source::Taken(tree) } else { Source::Mounted(tree) })
    }
}

fn absolute(path: &Path) -> io::Result<AbsPath> {
    AbsPath::lexical(path).map_err(io::Error::other)
}

/// A device of the host, of which nothing can be changed.
fn device(path: &Path) -> io::Result<OwnedFd> {
    let place = open_without_links(path, OFlags::PATH | OFlags::NOFOLLOW)?;
    let tree = clone_tree_of(place.as_fd())?;
    sys::set_mount(tree.as_fd(), MOUNT_RDONLY | MOUNT_NOSUID, 0)?;
    Ok(tree)
}

fn new_dir(dir: &OwnedFd, name: &Path) -> io::Result<OwnedFd> {
    rustix::fs::mkdirat(dir, name, Mode::from(0o755))?;
    find_below(dir.as_fd(), name)
}

/// Not for writing, like the mount points that are made for a plan.
fn new_file(dir: &OwnedFd, name: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::from(0o644))?)
}

/// The device must be opened in the user namespace that mounts it. It is non-blocking because a request
/// can be taken back before it is read, or be too long.
fn open_device() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(rustix::fs::open("/dev/fuse", flags, Mode::empty())?)
}

/// A view of processes that shows nothing of the host, mounted in the store.
fn mount_processes(store: &Store<'_>) -> io::Result<OwnedFd> {
    let tree = processes()?;
    attach_root(&tree, store)?;
    hide_host(tree.as_fd(), store)?;
    Ok(tree)
}
