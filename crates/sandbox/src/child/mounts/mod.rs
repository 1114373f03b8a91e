//! The file system of a run, built from mounts. Runs in the child, in its own namespaces.
//!
//! Sources are opened by descriptor before anything is mounted over them, and no link is followed to
//! a source or a mount point, so that no change meanwhile can lead a mount elsewhere.
//!
//! Most pieces only need a mount point on the root. A second thread mounts them ([`Deferred`]) while
//! the first goes on towards the command, which starts when both are done.

mod deferred;
mod kept;
mod layer;
mod materials;
mod new_tree;
mod processes;
mod spares;
mod store;
mod tree;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use model::{AbsPath, Base, Kind, Piece, Plan, PrivateLayer};
use rustix::fs::{Mode, OFlags};
use rustix::mount::MountPropagationFlags;

pub(crate) use self::deferred::Deferred;
use self::kept::Kept;
use self::materials::{Item, Material, Source, material, take};
use self::new_tree::NewTree;
use self::processes::hide_host;
use self::spares::SpareTripwire;
pub(crate) use self::spares::Spares;
use self::store::Store;
use self::tree::{STUBS, attach, clone_tree, find, new_tmpfs, private_room, relative, way};
pub(crate) use self::tree::{attach_to, clone_tree_of, closed_stub, open_without_links};
use crate::child::landlock::{LandlockRules, may_write};
use crate::failure::{Failed, Step};
use crate::sys::{self, MOUNT_NODEV, MOUNT_NOSUID, MOUNT_RDONLY};

/// Where the new tree can be built; mounted over in this namespace only, and gone with the old root.
const STAGING_DIRECTORIES: &[&str] = &["/tmp", "/mnt", "/media", "/srv", "/var"];

/// The mounts of a run before the old root is gone.
pub(crate) struct Mounts<'a> {
    new_tree: NewTree<'a>,
    items: Vec<Item<'a>>,
    /// Contents of files that are copied, and where to.
    copies: Vec<(&'a AbsPath, Vec<u8>)>,
    /// Nodes of the tripwire for what is denied inside other pieces.
    closed: Vec<(AbsPath, OwnedFd)>,
    /// What is mounted and may be written, or leads to what may be, by the index of its piece.
    attached: Vec<(usize, OwnedFd)>,
    /// Which of these the supervisor needs a view of, though they are not private to the run.
    views: Vec<usize>,
    /// The user's umask, for the command.
    umask: Mode,
    missing: Vec<String>,
}

/// What there is before the tree: a directory to build it in, and the sources on the host.
pub(crate) struct Staging<'a> {
    plan: &'a Plan,
    store: Arc<Store<'a>>,
    tripwire: Option<SpareTripwire>,
    /// The host's root, where it is the base of the tree.
    host: Option<OwnedFd>,
    now: Vec<Item<'a>>,
    deferred: Vec<Item<'a>>,
    /// Whether no source on the host is hidden by the staging directory.
    clear: bool,
    copies: Vec<(&'a AbsPath, Vec<u8>)>,
    umask: Mode,
    missing: Vec<String>,
}

impl<'a> Staging<'a> {
    /// Opens the sources, then sets up the staging directory.
    pub(crate) fn begin(plan: &'a Plan, mut spares: Spares) -> Result<Self, Failed> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", private).at(Step::PrivateMounts)?;
        // Everything is created with exactly the mode that it is to have.
        let umask = rustix::process::umask(Mode::empty());
        let mut missing = Vec::new();
        let kept = match &plan.layer {
            PrivateLayer::Kept(dir) => match Kept::open(dir, plan) {
                Ok(kept) => Some(kept),
                Err(error) => {
                    missing.push(format!("the private layer in {dir}: {error}"));
                    None
                }
            },
            PrivateLayer::Temporary(_) => None,
        };
        let (mut now, mut deferred) = (Vec::new(), Vec::new());
        let all = with_parents(plan);
        let store = spares.store(plan, |staging| {
            let is_in = |(from, _): &(AbsPath, AbsPath)| from.as_path().starts_with(staging);
            let layer = match &plan.layer {
                PrivateLayer::Kept(dir) => dir.as_path().starts_with(staging),
                PrivateLayer::Temporary(_) => false,
            };
            is_clear(plan, &all, staging) && !layer && !plan.copies.iter().any(is_in)
        });
        let (staging, clear) = match store {
            Some(_) => (Path::new("/"), true),
            None => staging_directory(plan, &all),
        };
        let deferrable = deferrable(plan, &all);
        for (number, placement) in all.iter().copied().enumerate() {
            let piece = placement.piece;
            let deferrable = deferrable.get(number).copied().unwrap_or(false);
            let spare = spares.source(plan, &placement);
            let source = match needs_source(plan, &placement) {
                _ if spare.is_some() => spare.unwrap_or(Source::None),
                true if deferrable && clear => Source::Host,
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
            let items = if deferrable { &mut deferred } else { &mut now };
            items.push(Item { number, placement, source });
        }
        let read = |(from, to): &'a (AbsPath, AbsPath)| Some((to, std::fs::read(from).ok()?));
        let copies = plan.copies.iter().filter_map(read).collect();
        let host = (plan.base == Base::Host)
            .then(|| clone_tree(rustix::fs::CWD, Path::new("/")).at(Step::Root))
            .transpose()?;
        let tripwire = spares.tripwire();
        spares.keep();
        let store = match store {
            Some(store) => store.with(kept),
            None => {
                let room = private_room(plan.limits.private_files);
                Store::on(staging, room, kept).at(Step::Storage)?
            }
        };
        let store = Arc::new(store);
        Ok(Self { plan, store, tripwire, host, now, deferred, clear, copies, umask, missing })
    }

    /// Mounts the root.
    pub(crate) fn mount_root(
        self,
        root_fs: &RootFs,
        user: (u32, u32),
        mounted: impl FnOnce(&OwnedFd) -> Result<(), Failed>,
    ) -> Result<(Mounts<'a>, Deferred<'a>), Failed> {
        let root = match (root_fs, self.host) {
            (_, Some(tree)) => {
                let attributes = MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV;
                sys::set_mount(tree.as_fd(), attributes, 0).at(Step::Root)?;
                attach_root(&tree, &self.store).at(Step::Root)?;
                tree
            }
            (RootFs::Tripwire, None) => {
                let spare = match self.tripwire {
                    Some(spare) => spare,
                    None => SpareTripwire::mount(&self.store, user).at(Step::Tripwire)?,
                };
                mounted(&spare.device)?;
                spare.root
            }
            (RootFs::Empty, None) => {
                let root = new_tmpfs("0755", STUBS).at(Step::Root)?;
                attach_root(&root, &self.store).at(Step::Root)?;
                root
            }
        };
        let unwatched = matches!(root_fs, RootFs::Empty);
        let root = Arc::new(root);
        let new_tree = NewTree { plan: self.plan, store: self.store, root, unwatched };
        let mut mounts = Mounts {
            new_tree,
            items: self.now,
            copies: self.copies,
            closed: Vec::new(),
            attached: Vec::new(),
            views: Vec::new(),
            umask: self.umask,
            missing: self.missing,
        };
        if matches!(root_fs, RootFs::Tripwire) {
            mounts.take_closed()?;
        }
        let mut items = self.deferred;
        for item in items.iter_mut().filter(|item| item.placement.piece.kind == Kind::Closed) {
            item.source = Source::Taken(mounts.tripwire_node(item.placement.piece).at(Step::Hide)?);
        }
        let deferred = Deferred { items, clear: self.clear, new_tree: mounts.new_tree.clone() };
        Ok((mounts, deferred))
    }
}

/// What is known about a tree that has become the root.
pub(crate) struct Entered {
    /// What could not be mounted: the run sees less than planned, never more.
    pub(crate) missing: Vec<String>,
    /// The trees that the supervisor needs a view of, by the index of their piece.
    pub(crate) views: Vec<(usize, OwnedFd)>,
    /// The user's umask, for the command.
    pub(crate) umask: Mode,
}

/// A piece, and the piece that contains it.
#[derive(Clone, Copy)]
struct Placement<'a> {
    piece: &'a Piece,
    parent: Option<&'a Piece>,
}

/// The root of the tree.
pub(crate) enum RootFs {
    /// A tripwire.
    Tripwire,
    /// An empty directory.
    Empty,
}

impl Mounts<'_> {
    /// Nodes of the tripwire must be opened before anything is mounted above them.
    fn take_closed(&mut self) -> Result<(), Failed> {
        let plan = self.new_tree.plan;
        for piece in plan.pieces.iter().filter(|piece| is_tripwire(piece)) {
            let tree = clone_tree(self.new_tree.root(), relative(&piece.path)).at(Step::Hide)?;
            self.closed.push((piece.path.clone(), tree));
        }
        Ok(())
    }

    /// Mounts every piece that cannot be deferred.
    pub(crate) fn mount_pieces(&mut self) -> Result<(), Failed> {
        let plan = self.new_tree.plan;
        if plan.base == Base::Nothing {
            self.new_tree.fill_cache();
        }
        for Item { number, placement, source } in std::mem::take(&mut self.items) {
            let piece = placement.piece;
            match self.mount(&placement, source) {
                Ok(tree) if is_view(plan, &placement) => {
                    self.views.push(number);
                    self.attached.push((number, tree));
                }
                Ok(tree) if may_write(plan, piece) => self.attached.push((number, tree)),
                // Read-only pieces need no Landlock rule.
                Ok(_) => {}
                Err(error) if is_protection(plan, &placement) && !is_gone(&error) => {
                    let protected = match error.raw_os_error() {
                        Some(libc::EACCES) => self.make_parent_read_only(&piece.path),
                        _ => Err(error),
                    };
                    protected.map_err(|error| {
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

    /// Makes the directory read-only that contains something unreachable, such as another user's
    /// directory. The run cannot reach it either, unless its permissions change.
    fn make_parent_read_only(&self, path: &AbsPath) -> io::Result<()> {
        let mut at = path.parent();
        let is_piece = |at: &AbsPath| {
            let is = |piece: &Piece| piece.path == *at && piece.kind != Kind::Pinned;
            *at == AbsPath::root() || self.new_tree.plan.pieces.iter().any(is)
        };
        while !is_piece(&at) {
            if let Ok(place) = find(self.new_tree.root(), &at) {
                let tree = clone_tree_of(place.as_fd())?;
                sys::set_mount(tree.as_fd(), MOUNT_RDONLY, 0)?;
                return attach_to(tree.as_fd(), place.as_fd());
            }
            at = at.parent();
        }
        Err(io::ErrorKind::PermissionDenied.into())
    }

    /// Mounts a piece, and gives its tree.
    fn mount(&mut self, placement: &Placement<'_>, source: Source) -> io::Result<OwnedFd> {
        if let Source::Mounted(tree) = source {
            return Ok(tree);
        }
        let target = self.new_tree.target(placement)?;
        let is_new = matches!(source, Source::None);
        let tree = match material(&self.new_tree.store, placement.piece, source, None)? {
            Material::Tree(tree) => tree,
            Material::Here => self.remount(placement.piece, target.as_fd())?,
        };
        attach_to(tree.as_fd(), target.as_fd())?;
        if is_new && placement.piece.kind == Kind::Processes {
            hide_host(tree.as_fd(), &self.new_tree.store)?;
        }
        Ok(tree)
    }

    /// The tree for a piece that changes what is mounted at its path already.
    fn remount(&mut self, piece: &Piece, target: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        if matches!(piece.kind, Kind::Closed | Kind::Outside) {
            return self.tripwire_node(piece);
        }
        let tree = clone_tree_of(target)?;
        let attributes = MOUNT_NOSUID | MOUNT_NODEV;
        match piece.kind {
            Kind::Read => sys::set_mount(tree.as_fd(), attributes | MOUNT_RDONLY, 0)?,
            // What is cloned from a read-only piece is made writable again.
            Kind::Write => sys::set_mount(tree.as_fd(), attributes, MOUNT_RDONLY)?,
            _ => {}
        }
        Ok(tree)
    }

    fn put_copy(&self, to: &AbsPath, bytes: &[u8]) -> io::Result<()> {
        let (parent, name) = way(self.new_tree.root(), to)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(parent, name, flags, Mode::from(0o600))?;
        File::from(file).write_all(bytes)
    }

    fn put_link(&self, link: &model::Link) -> io::Result<()> {
        if find(self.new_tree.root(), &link.path).is_ok() {
            return Ok(());
        }
        let (parent, name) = way(self.new_tree.root(), &link.path)?;
        Ok(rustix::fs::symlinkat(&link.target, parent, name)?)
    }

    /// What must not be read: a node of the tripwire, or something empty without permissions.
    fn tripwire_node(&mut self, piece: &Piece) -> io::Result<OwnedFd> {
        if let Some(at) = self.closed.iter().position(|(path, _)| *path == piece.path) {
            return Ok(self.closed.swap_remove(at).1);
        }
        if piece.kind == Kind::Outside {
            return self.new_tree.store.directory(&piece.path);
        }
        self.new_tree.store.closed(piece.directory)
    }

    /// Adds Landlock rules for the pieces that are mounted.
    pub(crate) fn allow(&self, rules: &mut LandlockRules<'_>) -> Result<(), Failed> {
        let pieces = &self.new_tree.plan.pieces;
        let attached =
            self.attached.iter().filter_map(|(number, tree)| pieces.get(*number).zip(Some(tree)));
        attached.into_iter().try_for_each(|(piece, tree)| rules.allow(piece, tree.as_fd()))
    }

    /// Makes the new tree the root. The old one stays mounted over it until it is detached.
    pub(crate) fn enter(self) -> Result<Entered, Failed> {
        rustix::process::fchdir(self.new_tree.root()).at(Step::Root)?;
        rustix::process::pivot_root(".", ".").at(Step::Root)?;
        rustix::process::chdir("/").at(Step::Root)?;
        let Self { mut attached, views, missing, umask, new_tree, .. } = self;
        let pieces = &new_tree.plan.pieces;
        attached.retain(|(number, _)| {
            let private = || pieces.get(*number).is_some_and(|piece| is_private(&piece.kind));
            views.contains(number) || private()
        });
        Ok(Entered { missing, views: attached, umask })
    }
}

/// What is private to the run, of what is mounted.
fn only_private(plan: &Plan, mut attached: Vec<(usize, OwnedFd)>) -> Vec<(usize, OwnedFd)> {
    attached.retain(|(number, _)| {
        plan.pieces.get(*number).is_some_and(|piece| is_private(&piece.kind))
    });
    attached
}

/// Whether the supervisor finds something that may be written from this piece on, with no node of the
/// tripwire, which it serves itself, on the way there.
fn is_view(plan: &Plan, Placement { piece, parent }: &Placement<'_>) -> bool {
    let writable = |inner: &Piece| inner.kind.writable() == Some(true);
    let within = |path: &AbsPath| path.is_within(&piece.path);
    plan.base == Base::Nothing
        && parent.is_none_or(is_tripwire)
        && (writable(piece)
            || plan.granted_later.iter().any(within)
            || plan.pieces.iter().any(|inner| writable(inner) && within(&inner.path)))
}

/// Which pieces a second thread can mount, because nothing but the command needs them. A piece on the
/// root and what is inside it are mounted by the same thread, in their order.
fn deferrable(plan: &Plan, all: &[Placement<'_>]) -> Vec<bool> {
    let mut result = Vec::with_capacity(all.len());
    let mut rest = all;
    while let Some(first) = rest.first() {
        let inside = |next: &&Placement<'_>| next.piece.path.is_within(&first.piece.path);
        let (group, others) = rest.split_at(rest.iter().take_while(inside).count().max(1));
        let can = group.iter().all(|placement| can_be_deferred(plan, placement));
        result.resize(result.len() + group.len(), can);
        rest = others;
    }
    result
}

fn can_be_deferred(plan: &Plan, Placement { piece, parent }: &Placement<'_>) -> bool {
    let within = |path: &AbsPath| path.is_within(&piece.path);
    let kind = match parent.map(|parent| &parent.kind) {
        None => matches!(piece.kind, Kind::Read | Kind::Overlay | Kind::Scratch | Kind::Text(_)),
        Some(Kind::Scratch) => matches!(
            piece.kind,
            Kind::Read | Kind::Overlay | Kind::Scratch | Kind::Text(_) | Kind::Closed
        ),
        // What hides something of the host needs nothing of it.
        Some(_) => matches!(piece.kind, Kind::Scratch | Kind::Text(_)),
    };
    plan.base == Base::Nothing
        && kind
        && piece.path != plan.workspace
        && !within(&plan.cwd)
        && !plan.copies.iter().any(|(_, to)| within(to))
        && !plan.links.iter().any(|link| within(&link.path))
}

/// Every piece with the one that contains it.
fn with_parents(plan: &Plan) -> Vec<Placement<'_>> {
    let mut above: Vec<&Piece> = Vec::new();
    let mut placements = Vec::with_capacity(plan.pieces.len());
    for piece in &plan.pieces {
        // Parents come first, so a piece that does not contain this one contains none of the rest.
        while above.last().is_some_and(|parent| !piece.path.is_within(&parent.path)) {
            above.pop();
        }
        placements.push(Placement { piece, parent: above.last().copied() });
        above.push(piece);
    }
    placements
}

/// A staging directory, and whether no source on the host is inside it or contains it: then sources
/// can be opened at any time.
fn staging_directory(plan: &Plan, placements: &[Placement<'_>]) -> (&'static Path, bool) {
    // On some systems these are links.
    let is_dir = |path: &&Path| path.symlink_metadata().is_ok_and(|entry| entry.is_dir());
    let candidates = || STAGING_DIRECTORIES.iter().map(Path::new).filter(is_dir);
    match candidates().find(|staging| is_clear(plan, placements, staging)) {
        Some(staging) => (staging, true),
        None => (candidates().next().unwrap_or(Path::new("/")), false),
    }
}

/// Whether no source on the host is inside a directory or contains it.
fn is_clear(plan: &Plan, placements: &[Placement<'_>], staging: &Path) -> bool {
    !placements.iter().filter(|placement| needs_source(plan, placement)).any(|placement| {
        let path = placement.piece.path.as_path();
        path.starts_with(staging) || staging.starts_with(path)
    })
}

/// Whether the source of a piece is the host, rather than what is mounted there already.
fn needs_source(plan: &Plan, Placement { piece, parent }: &Placement<'_>) -> bool {
    if !matches!(piece.kind, Kind::Read | Kind::Write | Kind::Overlay | Kind::Device) {
        return false;
    }
    match parent {
        // A private directory hides the host's; what is granted in it comes from the host.
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

/// Whether a piece restricts the one that contains it.
fn is_protection(plan: &Plan, placement: &Placement<'_>) -> bool {
    match placement.piece.kind {
        Kind::Closed | Kind::Outside | Kind::Pinned => true,
        Kind::Read => !needs_source(plan, placement),
        // An empty directory or a text in what the host has hides what is there.
        Kind::Scratch | Kind::Text(_) => match placement.parent.map(|parent| &parent.kind) {
            Some(kind) => matches!(kind, Kind::Read | Kind::Write | Kind::Overlay | Kind::Pinned),
            None => false,
        },
        _ => false,
    }
}

/// The pieces that restrict what contains them, where that is the host's own: whoever removes or
/// replaces what they are mounted on detaches them.
pub(crate) fn protections(plan: &Plan) -> Vec<&Piece> {
    let on_host = |placement: &Placement<'_>| match placement.parent {
        Some(parent) => matches!(parent.kind, Kind::Read | Kind::Write | Kind::Pinned),
        None => plan.base == Base::Host,
    };
    let all = with_parents(plan).into_iter();
    let protects = |placement: &Placement<'_>| is_protection(plan, placement) && on_host(placement);
    all.filter(protects).map(|placement| placement.piece).collect()
}

/// Mounts the root of a tree, so that something can be mounted in it.
fn attach_root(root: &OwnedFd, store: &Store<'_>) -> io::Result<()> {
    let name = store.fresh_name();
    rustix::fs::mkdirat(&store.tree, name.as_str(), Mode::from(0o755))?;
    attach(root.as_fd(), store.tree.as_fd(), Path::new(&name))
}

/// A path that the host does not have, or not for this user, is left out and reported. Any other
/// error is a failure: the run must not start with less than was planned.
fn do_without(path: &AbsPath, error: io::Error) -> Result<String, Failed> {
    let known = [
        libc::ENOENT,
        libc::ENOTDIR,
        libc::EACCES,
        libc::ELOOP,
        // A network or FUSE file system whose server is gone.
        libc::EIO,
        libc::ESTALE,
        libc::ENOTCONN,
        // An unbindable mount.
        libc::EINVAL,
    ];
    if error.raw_os_error().is_none_or(|error| known.contains(&error)) {
        return Ok(format!("{path}: {error}"));
    }
    Err(Failed::new(Step::Mount, error).about(path.to_string()))
}

/// Whether what was to be protected no longer exists.
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
