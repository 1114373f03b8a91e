//! The file system of a run, put together from mounts. Runs in the child, in its own namespaces.
//!
//! Sources are taken by descriptor and never from under what covers them, and no link is followed to
//! a source or a place, so that nothing that changes meanwhile can lead a mount elsewhere.
//!
//! Most of it needs nothing but a place on the floor. That is put there by a second thread
//! ([`Later`]), while the first goes on towards the command; it starts when both are done.

mod growing;
mod later;
mod layer;
mod materials;
mod store;
mod tree;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use model::{AbsPath, Base, Kind, Piece, Plan};
use rustix::fs::{Mode, OFlags};
use rustix::mount::MountPropagationFlags;

use self::growing::Growing;
pub(crate) use self::later::Later;
use self::materials::{Item, Material, Source, material, take};
use self::store::Store;
use self::tree::{attach, clone_tree, find, new_tmpfs, relative, tripwire, way};
pub(crate) use self::tree::{attach_to, clone_tree_of, closed_stub, open_without_links};
use crate::child::landlock::{LandlockRules, may_write};
use crate::failure::{Failed, Step};
use crate::sys::{self, MOUNT_NODEV, MOUNT_NOSUID, MOUNT_RDONLY};

/// Where the new tree is put together; covered for this namespace only, and gone with the old root.
const WORKBENCHES: &[&str] = &["/tmp", "/mnt", "/media", "/srv", "/var"];

/// The mounts of a run before the old root is gone.
pub(crate) struct Mounts<'a> {
    growing: Growing<'a>,
    items: Vec<Item<'a>>,
    /// Contents of files that are copied, and where to.
    copies: Vec<(&'a AbsPath, Vec<u8>)>,
    /// Nodes of the tripwire for what is closed inside other ground.
    closed: Vec<(AbsPath, OwnedFd)>,
    /// What lies in its place and may be written, by the number of its piece.
    placed: Vec<(usize, OwnedFd)>,
    /// The user's own, for the command.
    umask: Mode,
    missing: Vec<String>,
}

/// What there is before the tree: a place to put it together, and what was taken of the host.
pub(crate) struct Bench<'a> {
    plan: &'a Plan,
    store: Arc<Store>,
    /// The host's own root, where it is to be the tree's.
    host: Option<OwnedFd>,
    now: Vec<Item<'a>>,
    later: Vec<Item<'a>>,
    /// Whether nothing of the host is covered that they are taken from.
    clear: bool,
    copies: Vec<(&'a AbsPath, Vec<u8>)>,
    umask: Mode,
    missing: Vec<String>,
}

impl<'a> Bench<'a> {
    /// Takes sources, then sets up the workbench.
    pub(crate) fn begin(plan: &'a Plan) -> Result<Self, Failed> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", private).at(Step::PrivateMounts)?;
        // Everything is made with exactly the rights that it is to have.
        let umask = rustix::process::umask(Mode::empty());
        let mut missing = Vec::new();
        let (mut now, mut later) = (Vec::new(), Vec::new());
        let all = with_parents(plan);
        let (bench, clear) = workbench(plan, &all);
        for (number, laid) in all.iter().copied().enumerate() {
            let piece = laid.piece;
            let can_wait = can_wait(plan, &laid, all.get(number + 1));
            let source = match needs_source(plan, &laid) {
                true if can_wait && clear => Source::Host,
                true => match take(piece) {
                    Ok(tree) => Source::Taken(tree),
                    Err(error) if piece.path == plan.workspace => {
                        return Err(Failed::new(Step::Workspace, error));
                    }
                    Err(error) => {
                        missing.push(do_without(&piece.path, error)?);
                        continue;
                    }
                },
                false => Source::None,
            };
            let items = if can_wait { &mut later } else { &mut now };
            items.push(Item { number, laid, source });
        }
        let read = |(from, to): &'a (AbsPath, AbsPath)| Some((to, std::fs::read(from).ok()?));
        let copies = plan.copies.iter().filter_map(read).collect();
        let host = (plan.base == Base::Host)
            .then(|| clone_tree(rustix::fs::CWD, Path::new("/")).at(Step::Root))
            .transpose()?;
        let store = Arc::new(Store::on(bench).at(Step::Storage)?);
        Ok(Self { plan, store, host, now, later, clear, copies, umask, missing })
    }

    /// Lays the floor.
    pub(crate) fn stand_on(
        self,
        floor: &Floor,
        user: (u32, u32),
        mounted: impl FnOnce(&OwnedFd) -> Result<(), Failed>,
    ) -> Result<(Mounts<'a>, Later<'a>), Failed> {
        let root = match (floor, self.host) {
            (_, Some(tree)) => {
                let attributes = MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV;
                sys::set_mount(tree.as_fd(), attributes, 0).at(Step::Root)?;
                tree
            }
            (Floor::Tripwire(device), None) => {
                let root = tripwire(device, user).at(Step::Tripwire)?;
                mounted(device)?;
                root
            }
            (Floor::Empty, None) => new_tmpfs("0755").at(Step::Root)?,
        };
        let store = self.store.tree.as_fd();
        rustix::fs::mkdirat(store, "root", Mode::from(0o755)).at(Step::Storage)?;
        attach(root.as_fd(), store, Path::new("root")).at(Step::Root)?;
        let unwatched = matches!(floor, Floor::Empty);
        let root = Arc::new(root);
        let growing = Growing { plan: self.plan, store: self.store, root, unwatched };
        let later = Later { items: self.later, clear: self.clear, growing: growing.clone() };
        let mut mounts = Mounts {
            growing,
            items: self.now,
            copies: self.copies,
            closed: Vec::new(),
            placed: Vec::new(),
            umask: self.umask,
            missing: self.missing,
        };
        if matches!(floor, Floor::Tripwire(_)) {
            mounts.take_closed()?;
        }
        Ok((mounts, later))
    }
}

/// What is known about a tree that was put together.
pub(crate) struct Entered {
    /// What could not be put there; less ground than planned, never more.
    pub(crate) missing: Vec<String>,
    /// What is private to the run, by the number of its piece.
    pub(crate) private: Vec<(usize, OwnedFd)>,
    /// The user's own, for the command.
    pub(crate) umask: Mode,
}

/// A piece and what it lies in.
#[derive(Clone, Copy)]
struct Laid<'a> {
    piece: &'a Piece,
    parent: Option<&'a Piece>,
}

/// What the tree stands on.
pub(crate) enum Floor {
    /// A tripwire, mounted from this descriptor of `/dev/fuse`.
    Tripwire(OwnedFd),
    /// An empty directory.
    Empty,
}

impl Mounts<'_> {
    /// A bare view of the tripwire, for what must be covered while the run goes on.
    pub(crate) fn bare_root(&self) -> io::Result<OwnedFd> {
        clone_tree(self.growing.root(), Path::new("."))
    }

    /// Nodes of the tripwire must be taken before anything lies on the way to them.
    fn take_closed(&mut self) -> Result<(), Failed> {
        let plan = self.growing.plan;
        for piece in plan.pieces.iter().filter(|piece| is_tripwire(piece)) {
            let tree = clone_tree(self.growing.root(), relative(&piece.path)).at(Step::Hide)?;
            self.closed.push((piece.path.clone(), tree));
        }
        Ok(())
    }

    /// Puts every piece in its place that others wait for.
    pub(crate) fn lay(&mut self) -> Result<(), Failed> {
        let plan = self.growing.plan;
        if plan.base == Base::Nothing {
            self.growing.list_ways();
        }
        for Item { number, laid, source } in std::mem::take(&mut self.items) {
            let piece = laid.piece;
            match self.put(&laid, source) {
                Ok(tree) if may_write(plan, piece) => self.placed.push((number, tree)),
                // The many that only protect.
                Ok(_) => {}
                Err(error) if is_protection(plan, &laid) && !is_gone(&error) => {
                    let frozen = match error.raw_os_error() {
                        Some(libc::EACCES) => self.freeze_around(&piece.path),
                        _ => Err(error),
                    };
                    frozen.map_err(|error| {
                        Failed::new(Step::Protect, error).about(piece.path.to_string())
                    })?;
                }
                Err(error) if piece.path == plan.workspace => {
                    return Err(Failed::new(Step::Workspace, error));
                }
                Err(error) if matches!(piece.kind, Kind::Processes) => {
                    return Err(Failed::new(Step::Processes, error));
                }
                // Some containers allow no terminals.
                Err(error) if matches!(piece.kind, Kind::Terminals) => {
                    self.missing.push(format!("{}: {error}", piece.path));
                }
                Err(error) => self.missing.push(do_without(&piece.path, error)?),
            }
        }
        for (to, bytes) in std::mem::take(&mut self.copies) {
            if let Err(error) = self.put_copy(to, &bytes) {
                self.missing.push(do_without(to, error)?);
            }
        }
        for link in &plan.links {
            if let Err(error) = self.put_link(link) {
                self.missing.push(do_without(&link.path, error)?);
            }
        }
        Ok(())
    }

    /// Freezes the directory in which something lies that we may not reach, such as another user's.
    /// The run cannot reach it either, unless somebody opens the way.
    fn freeze_around(&self, path: &AbsPath) -> io::Result<()> {
        let mut at = path.parent();
        let ground = |at: &AbsPath| {
            let is = |piece: &Piece| piece.path == *at && piece.kind != Kind::Pinned;
            *at == AbsPath::root() || self.growing.plan.pieces.iter().any(is)
        };
        while !ground(&at) {
            if let Ok(place) = find(self.growing.root(), &at) {
                let tree = clone_tree_of(place.as_fd())?;
                sys::set_mount(tree.as_fd(), MOUNT_RDONLY, 0)?;
                return attach_to(tree.as_fd(), place.as_fd());
            }
            at = at.parent();
        }
        Err(io::ErrorKind::PermissionDenied.into())
    }

    /// Puts a piece in its place, and gives what lies there now.
    fn put(&mut self, laid: &Laid<'_>, source: Source) -> io::Result<OwnedFd> {
        let target = self.growing.target(laid)?;
        let tree = match material(&self.growing.store, laid.piece, source, None)? {
            Material::Tree(tree) => tree,
            Material::Here => self.made_here(laid.piece, target.as_fd())?,
        };
        attach_to(tree.as_fd(), target.as_fd())?;
        if laid.piece.kind == Kind::Processes {
            self.hide_keys(laid.piece)?;
        }
        Ok(tree)
    }

    /// The tree for a piece that changes what already lies at its place.
    fn made_here(&mut self, piece: &Piece, target: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        if matches!(piece.kind, Kind::Closed | Kind::Outside) {
            return self.tripwire_node(piece);
        }
        let tree = clone_tree_of(target)?;
        let attributes = MOUNT_NOSUID | MOUNT_NODEV;
        match piece.kind {
            Kind::Read => sys::set_mount(tree.as_fd(), attributes | MOUNT_RDONLY, 0)?,
            // Ground that is taken from a read-only piece is made writable again.
            Kind::Write => sys::set_mount(tree.as_fd(), attributes, MOUNT_RDONLY)?,
            _ => {}
        }
        Ok(tree)
    }

    /// The kernel lists the keys of a user in every view of processes, by name.
    fn hide_keys(&mut self, processes: &Piece) -> io::Result<()> {
        match find(self.growing.root(), &processes.path.join("keys".as_ref())) {
            Ok(keys) => attach_to(self.growing.store.text("")?.as_fd(), keys.as_fd()),
            // A kernel without keys.
            Err(error) if is_gone(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn put_copy(&self, to: &AbsPath, bytes: &[u8]) -> io::Result<()> {
        let (parent, name) = way(self.growing.root(), to)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(parent, name, flags, Mode::from(0o600))?;
        File::from(file).write_all(bytes)
    }

    fn put_link(&self, link: &model::Link) -> io::Result<()> {
        if find(self.growing.root(), &link.path).is_ok() {
            return Ok(());
        }
        let (parent, name) = way(self.growing.root(), &link.path)?;
        Ok(rustix::fs::symlinkat(&link.target, parent, name)?)
    }

    /// What may not be read: a node of the tripwire, or something empty without permissions.
    fn tripwire_node(&mut self, piece: &Piece) -> io::Result<OwnedFd> {
        if let Some(at) = self.closed.iter().position(|(path, _)| *path == piece.path) {
            return Ok(self.closed.swap_remove(at).1);
        }
        if piece.kind == Kind::Outside {
            return self.growing.store.directory(&piece.path);
        }
        self.growing.store.closed(piece.directory)
    }

    /// Allows what the pieces allow that lie there.
    pub(crate) fn allow(&self, rights: &mut LandlockRules<'_>) -> Result<(), Failed> {
        let pieces = &self.growing.plan.pieces;
        let placed =
            self.placed.iter().filter_map(|(number, tree)| pieces.get(*number).zip(Some(tree)));
        placed.into_iter().try_for_each(|(piece, tree)| rights.allow(piece, tree.as_fd()))
    }

    /// Makes the new tree the root. The old one lies on it until somebody lets go of it.
    pub(crate) fn enter(self) -> Result<Entered, Failed> {
        rustix::process::fchdir(self.growing.root()).at(Step::Root)?;
        rustix::process::pivot_root(".", ".").at(Step::Root)?;
        rustix::process::chdir("/").at(Step::Root)?;
        let private = only_private(self.growing.plan, self.placed);
        Ok(Entered { missing: self.missing, private, umask: self.umask })
    }
}

/// What is private to the run of what lies in its place.
fn only_private(plan: &Plan, mut placed: Vec<(usize, OwnedFd)>) -> Vec<(usize, OwnedFd)> {
    placed.retain(|(number, _)| {
        plan.pieces.get(*number).is_some_and(|piece| is_private(&piece.kind))
    });
    placed
}

/// Whether nothing is to be done with a piece before the command starts but to put it on the floor.
fn can_wait(plan: &Plan, Laid { piece, parent }: &Laid<'_>, next: Option<&Laid<'_>>) -> bool {
    let within = |path: &AbsPath| path.is_within(&piece.path);
    plan.base == Base::Nothing
        && parent.is_none()
        // What lies in a piece comes right after it.
        && !next.is_some_and(|next| within(&next.piece.path))
        && matches!(piece.kind, Kind::Read | Kind::Overlay | Kind::Scratch | Kind::Text(_))
        && piece.path != plan.workspace
        && !within(&plan.cwd)
        && !plan.copies.iter().any(|(_, to)| within(to))
        && !plan.links.iter().any(|link| within(&link.path))
}

/// Every piece with the one that it lies in.
fn with_parents(plan: &Plan) -> Vec<Laid<'_>> {
    let mut above: Vec<&Piece> = Vec::new();
    let mut laid = Vec::with_capacity(plan.pieces.len());
    for piece in &plan.pieces {
        // Parents come first, so what does not hold this piece holds none of the later ones.
        while above.last().is_some_and(|parent| !piece.path.is_within(&parent.path)) {
            above.pop();
        }
        laid.push(Laid { piece, parent: above.last().copied() });
        above.push(piece);
    }
    laid
}

/// A directory for the workbench, and whether nothing that is taken of the host is covered by it or
/// would hold it: then that can be taken at any time.
fn workbench(plan: &Plan, laid: &[Laid<'_>]) -> (&'static Path, bool) {
    // Some systems have links there.
    let is_dir = |path: &&Path| path.symlink_metadata().is_ok_and(|entry| entry.is_dir());
    let there = || WORKBENCHES.iter().map(Path::new).filter(is_dir);
    let is_clear = |bench: &&Path| {
        !laid.iter().filter(|laid| needs_source(plan, laid)).any(|laid| {
            let path = laid.piece.path.as_path();
            path.starts_with(bench) || bench.starts_with(path)
        })
    };
    match there().find(is_clear) {
        Some(bench) => (bench, true),
        None => (there().next().unwrap_or(Path::new("/")), false),
    }
}

/// Whether a piece is taken from the host, rather than from ground that already lies there.
fn needs_source(plan: &Plan, Laid { piece, parent }: &Laid<'_>) -> bool {
    if !matches!(piece.kind, Kind::Read | Kind::Write | Kind::Overlay | Kind::Device) {
        return false;
    }
    match parent {
        // Private ground hides the host's; what is granted in it comes from the host.
        Some(parent) => !matches!(parent.kind, Kind::Read | Kind::Write | Kind::Pinned),
        None => plan.base == Base::Nothing,
    }
}

/// Whether what is written there is gone after the run.
fn is_private(kind: &Kind) -> bool {
    matches!(kind, Kind::Scratch | Kind::Overlay)
}

/// Whether a piece is a node of the tripwire.
fn is_tripwire(piece: &Piece) -> bool {
    matches!(piece.kind, Kind::Closed | Kind::Outside)
}

/// Whether a piece takes something away from the ground it lies in.
fn is_protection(plan: &Plan, laid: &Laid<'_>) -> bool {
    match laid.piece.kind {
        Kind::Closed | Kind::Outside | Kind::Pinned => true,
        Kind::Read => !needs_source(plan, laid),
        _ => false,
    }
}

/// Ground that the host does not have, or not for this user, is left out and told. Whatever else goes
/// wrong is no reason to go on with less than was planned.
fn do_without(path: &AbsPath, error: io::Error) -> Result<String, Failed> {
    let known = [
        libc::ENOENT,
        libc::ENOTDIR,
        libc::EACCES,
        libc::ELOOP,
        // A file system whose server is gone.
        libc::EIO,
        libc::ESTALE,
        libc::ENOTCONN,
        // A mount that says it is not to be shown elsewhere.
        libc::EINVAL,
    ];
    if error.raw_os_error().is_none_or(|error| known.contains(&error)) {
        return Ok(format!("{path}: {error}"));
    }
    Err(Failed::new(Step::Mount, error).about(path.to_string()))
}

/// Whether what was to be protected is not there any more.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Adds the step to an error.
trait At<T> {
    fn at(self, step: Step) -> Result<T, Failed>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, step: Step) -> Result<T, Failed> {
        self.map_err(|error| Failed::new(step, error.into()))
    }
}
