//! The file system of a run, put together from mounts. Runs in the child, in its own namespaces.
//!
//! Sources are taken by descriptor before anything is covered, targets are looked up without
//! following links, so that nothing that changes meanwhile can lead a mount elsewhere.
//!
//! What is put into place and the places themselves are made beside each other: [`Materials`] in
//! one thread, [`Mounts`] in the other.

mod layer;
mod materials;
mod store;
mod tree;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{AbsPath, Base, Kind, Piece, Plan};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountPropagationFlags, UnmountFlags};

use self::layer::Common;
pub(crate) use self::materials::Material;
use self::materials::Materials;
use self::store::Store;
use self::tree::{attach, clone_tree, find, new_tmpfs, relative, tripwire};
pub(crate) use self::tree::{attach_to, clone_tree_of, closed_stub, open_without_links};
use crate::failure::{Failed, Step};
use crate::sys::{self, MOUNT_NODEV, MOUNT_NOSUID, MOUNT_RDONLY};

/// Where the new tree is put together; covered for this namespace only, and gone with the old root.
const WORKBENCHES: &[&str] = &["/tmp", "/mnt", "/var", "/proc"];

/// The mounts of a run before the old root is gone.
pub(crate) struct Mounts<'a> {
    plan: &'a Plan,
    store: Arc<Store>,
    root: OwnedFd,
    laid: Vec<Laid<'a>>,
    /// Contents of files that are copied, and where to.
    copies: Vec<(&'a AbsPath, Vec<u8>)>,
    /// Nodes of the tripwire for what is closed inside other ground.
    closed: Vec<(AbsPath, OwnedFd)>,
    /// What is private to the run, by the number of its piece.
    private: Vec<(usize, OwnedFd)>,
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
    laid: Vec<Laid<'a>>,
    copies: Vec<(&'a AbsPath, Vec<u8>)>,
    umask: Mode,
    missing: Vec<String>,
}

impl<'a> Bench<'a> {
    /// Takes sources, then sets up the workbench.
    pub(crate) fn begin(plan: &'a Plan) -> Result<(Self, Materials<'a>), Failed> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", private).at(Step::Private)?;
        // Everything is made with exactly the rights that it is to have.
        let umask = rustix::process::umask(Mode::empty());
        let mut missing = Vec::new();
        let laid = with_parents(plan);
        let mut sources = Vec::with_capacity(laid.len());
        for Laid { piece, parent } in &laid {
            let tree = needs_source(plan, piece, *parent).then(|| source(piece)).transpose();
            sources.push(match tree {
                Ok(tree) => tree,
                Err(error) if piece.path == plan.workspace => {
                    return Err(Failed::new(Step::Workspace, error));
                }
                Err(error) => {
                    missing.push(do_without(&piece.path, error)?);
                    None
                }
            });
        }
        let overlays = std::iter::zip(&laid, &sources)
            .filter(|(laid, source)| laid.piece.kind == Kind::Overlay && source.is_some());
        let common = Common::of(overlays.map(|(laid, _)| &laid.piece.path));
        let read = |(from, to): &'a (AbsPath, AbsPath)| Some((to, std::fs::read(from).ok()?));
        let copies = plan.copies.iter().filter_map(read).collect();
        let host = (plan.base == Base::Host)
            .then(|| clone_tree(rustix::fs::CWD, Path::new("/")).at(Step::Root))
            .transpose()?;
        let bench = WORKBENCHES.iter().find(|path| Path::new(path).is_dir()).unwrap_or(&"/");
        let store = Arc::new(Store::on(Path::new(bench)).at(Step::Store)?);
        let materials =
            Materials { plan, laid: laid.clone(), sources, common, store: store.clone() };
        Ok((Self { plan, store, host, laid, copies, umask, missing }, materials))
    }

    /// Lays the floor.
    pub(crate) fn stand_on(
        self,
        floor: &Floor,
        user: (u32, u32),
        mounted: impl FnOnce(&OwnedFd) -> Result<(), Failed>,
    ) -> Result<Mounts<'a>, Failed> {
        let root = match (floor, self.host) {
            (_, Some(tree)) => {
                let attributes = MOUNT_RDONLY | MOUNT_NOSUID;
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
        rustix::fs::mkdirat(store, "root", Mode::from(0o755)).at(Step::Store)?;
        attach(root.as_fd(), store, Path::new("root")).at(Step::Root)?;
        let mut mounts = Mounts {
            plan: self.plan,
            store: self.store,
            root,
            laid: self.laid,
            copies: self.copies,
            closed: Vec::new(),
            private: Vec::new(),
            umask: self.umask,
            missing: self.missing,
        };
        if matches!(floor, Floor::Tripwire(_)) {
            mounts.take_closed()?;
        }
        Ok(mounts)
    }
}

/// What is known about a tree that was put together.
pub(crate) struct Entered {
    /// What could not be put there; less ground than planned, never more.
    pub(crate) missing: Vec<String>,
    /// What is private to the run, by the number of its piece.
    pub(crate) private: Vec<(usize, OwnedFd)>,
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
        clone_tree(self.root.as_fd(), Path::new("."))
    }

    /// Nodes of the tripwire must be taken before anything lies on the way to them.
    fn take_closed(&mut self) -> Result<(), Failed> {
        for piece in self.plan.pieces.iter().filter(|piece| is_tripwire(piece)) {
            let tree = clone_tree(self.root.as_fd(), relative(&piece.path)).at(Step::Closed)?;
            self.closed.push((piece.path.clone(), tree));
        }
        Ok(())
    }

    /// Gets the kernel to know the places.
    pub(crate) fn prepare(&self) {
        if self.plan.base == Base::Nothing {
            self.list_ways();
        }
    }

    /// Puts every piece in its place.
    pub(crate) fn lay(
        &mut self,
        mut materials: impl Iterator<Item = Material>,
    ) -> Result<(), Failed> {
        let plan = self.plan;
        for (number, laid) in std::mem::take(&mut self.laid).into_iter().enumerate() {
            let piece = laid.piece;
            let Some(material) = materials.next() else {
                return Err(Failed::new(Step::Lay, io::Error::other("a thread was lost")));
            };
            if matches!(material, Material::Missing) {
                continue;
            }
            match self.put(&laid, material) {
                Ok(tree) if is_private(&piece.kind) => {
                    self.private.push((number, tree));
                }
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
            *at == AbsPath::root() || self.plan.pieces.iter().any(is)
        };
        while !ground(&at) {
            if let Ok(place) = find(self.root.as_fd(), &at) {
                let tree = clone_tree_of(place.as_fd())?;
                sys::set_mount(tree.as_fd(), MOUNT_RDONLY, 0)?;
                return attach_to(tree.as_fd(), place.as_fd());
            }
            at = at.parent();
        }
        Err(io::ErrorKind::PermissionDenied.into())
    }

    /// One listing brings every name of a directory into the kernel's cache; looking each of them
    /// up would take a round trip to the supervisor apiece.
    fn list_ways(&self) {
        // How many names are needed of each.
        let mut ways = std::collections::BTreeMap::new();
        for Laid { piece, parent, .. } in &self.laid {
            let floor = match parent {
                None => AbsPath::root(),
                Some(parent) if parent.kind == Kind::Outside => parent.path.clone(),
                Some(_) => continue,
            };
            let mut way = piece.path.parent();
            loop {
                let names = ways.entry(way.clone()).or_insert(0_u32);
                *names += 1;
                if *names > 1 || way == floor {
                    break;
                }
                way = way.parent();
            }
        }
        for way in ways.into_iter().filter_map(|(way, names)| (names > 1).then_some(way)) {
            let opened = rustix::fs::openat(
                &self.root,
                relative(&way),
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            );
            if let Ok(dir) = opened {
                // Asking for the first name brings all that fit; more are not worth a trip.
                let mut buffer = Vec::with_capacity(8 * 1024);
                let _ = rustix::fs::RawDir::new(dir, buffer.spare_capacity_mut()).next();
            }
        }
    }

    /// Puts a piece in its place, and gives what lies there now.
    fn put(&mut self, laid: &Laid<'_>, material: Material) -> io::Result<OwnedFd> {
        let target = self.target(laid)?;
        let tree = match material {
            Material::Tree(tree) => tree,
            Material::Broken(error) => return Err(error),
            Material::Here | Material::Missing => self.made_here(laid.piece, target.as_fd())?,
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
        match find(self.root.as_fd(), &processes.path.join("keys".as_ref())) {
            Ok(keys) => attach_to(self.store.text("")?.as_fd(), keys.as_fd()),
            // A kernel without keys.
            Err(error) if is_gone(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The place of a piece, made where it lies on private ground.
    fn target(&self, laid: &Laid<'_>) -> io::Result<OwnedFd> {
        let piece = laid.piece;
        let ours = laid.parent.is_some_and(|parent| is_private(&parent.kind));
        if ours && let Ok(made) = self.make(piece) {
            return Ok(made);
        }
        match find(self.root.as_fd(), &piece.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_ours(laid) => {
                self.make_directories(&piece.path.parent())?;
                self.make(piece)
            }
            found => found,
        }
    }

    /// Whether what a piece lies in is ours to add to.
    fn is_ours(&self, laid: &Laid<'_>) -> bool {
        match laid.parent {
            Some(parent) => is_private(&parent.kind) || parent.kind == Kind::Outside,
            None => self.plan.base == Base::Nothing,
        }
    }

    /// Makes something for a piece to lie on.
    fn make(&self, piece: &Piece) -> io::Result<OwnedFd> {
        let name = relative(&piece.path);
        if piece.directory {
            rustix::fs::mkdirat(&self.root, name, Mode::from(0o755))?;
            return find(self.root.as_fd(), &piece.path);
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.root, name, flags, Mode::from(0o644))?)
    }

    fn make_directories(&self, path: &AbsPath) -> io::Result<()> {
        let mut at = PathBuf::new();
        for name in relative(path).components() {
            at.push(name);
            match rustix::fs::mkdirat(&self.root, &at, Mode::from(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn put_copy(&self, to: &AbsPath, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.root, relative(to), flags, Mode::from(0o600))?;
        File::from(file).write_all(bytes)
    }

    fn put_link(&self, link: &model::Link) -> io::Result<()> {
        if find(self.root.as_fd(), &link.path).is_ok() {
            return Ok(());
        }
        let parent = link.path.parent();
        if find(self.root.as_fd(), &parent).is_err() {
            self.make_directories(&parent)?;
        }
        rustix::fs::symlinkat(&link.target, &self.root, relative(&link.path))?;
        Ok(())
    }

    /// What may not be read: a node of the tripwire, or something empty without permissions.
    fn tripwire_node(&mut self, piece: &Piece) -> io::Result<OwnedFd> {
        if let Some(at) = self.closed.iter().position(|(path, _)| *path == piece.path) {
            return Ok(self.closed.swap_remove(at).1);
        }
        if piece.kind == Kind::Outside {
            return self.store.directory(&piece.path);
        }
        self.store.closed(piece.directory)
    }

    /// Makes the new tree the root, and lets go of the old one.
    pub(crate) fn enter(self) -> Result<Entered, Failed> {
        rustix::process::fchdir(&self.root).at(Step::Root)?;
        rustix::process::pivot_root(".", ".").at(Step::Root)?;
        rustix::mount::unmount(".", UnmountFlags::DETACH).at(Step::Root)?;
        rustix::process::chdir("/").at(Step::Root)?;
        rustix::process::umask(self.umask);
        Ok(Entered { missing: self.missing, private: self.private })
    }
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

/// What a piece is taken from. Giving up the copy of a mount takes long, so a layer gets none: it
/// makes its own.
fn source(piece: &Piece) -> io::Result<OwnedFd> {
    if piece.kind == Kind::Overlay {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        return Ok(rustix::fs::open(piece.path.as_path(), flags, Mode::empty())?);
    }
    clone_tree(rustix::fs::CWD, piece.path.as_path())
}

/// Whether a piece is taken from the host, rather than from ground that already lies there.
fn needs_source(plan: &Plan, piece: &Piece, parent: Option<&Piece>) -> bool {
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
        Kind::Read => !needs_source(plan, laid.piece, laid.parent),
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
    Err(Failed::new(Step::Lay, error).about(path.to_string()))
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
