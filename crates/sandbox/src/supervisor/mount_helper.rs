//! [`MountHelper`]: a process in the run's namespaces that mounts what the supervisor asks for.
//!
//! A process that has entered a user namespace cannot leave it again, so the supervisor has this one
//! for it. It is started when it is first needed, has no descriptor but the socket to the
//! supervisor and a view of the tripwire, and ends with the supervisor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, StatVfsMountFlags, StatxAttributes, StatxFlags};
use rustix::mount::OpenTreeFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use crate::child::mounts::{attach_to, clone_tree_of, closed_stub, open_without_links};
use crate::supervisor::granted_later::{self, RunNamespaces};
use crate::sys::{self, MOUNT_NODEV, MOUNT_NOSUID, MOUNT_RDONLY};

/// What must be mounted at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) path: PathBuf,
    pub(crate) cover: Cover,
}

/// A mount that takes something away from the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cover {
    /// What is there, on itself and read-only.
    ReadOnly,
    /// What is there, on itself: it cannot be renamed or replaced from inside.
    Pinned,
    /// A node of the tripwire, or something empty without permissions.
    Hidden,
}

/// What became of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Done {
    /// The mount was there.
    Unchanged,
    /// It was not, and is now.
    Mounted,
    /// Nothing is at the path that could be covered.
    Absent,
    /// Mounting it failed with this error.
    Failed(i32),
}

/// The supervisor's side.
#[derive(Debug)]
pub(crate) struct MountHelper {
    socket: OwnedFd,
    process: i32,
}

impl MountHelper {
    /// Starts it. `tripwire`: whether the root of the run is one.
    pub(crate) fn start(namespaces: &RunNamespaces, tripwire: bool) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (socket, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let process = granted_later::start_in_namespaces(namespaces, || serve(&theirs, tripwire))?;
        Ok(Self { socket, process })
    }

    pub(crate) fn send(&self, order: &Order) -> io::Result<()> {
        let bytes = postcard::to_allocvec(order).map_err(io::Error::other)?;
        sys::send(&self.socket, &bytes, &[])
    }

    pub(crate) fn receive(&self) -> io::Result<Done> {
        let (bytes, ..) = sys::receive(&self.socket)?;
        postcard::from_bytes(&bytes).map_err(io::Error::other)
    }

    /// The descriptor on which answers arrive.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.socket
    }
}

impl Drop for MountHelper {
    fn drop(&mut self) {
        sys::kill_child(self.process);
    }
}

/// Does what arrives, until the supervisor is gone.
fn serve(socket: &OwnedFd, tripwire: bool) -> io::Result<()> {
    sys::close_all_but(socket.as_fd());
    keep_only_mounting()?;
    let tripwire = tripwire.then(bare_root).transpose()?;
    loop {
        let (bytes, ..) = sys::receive(socket)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let order: Order = postcard::from_bytes(&bytes).map_err(io::Error::other)?;
        let done = match cover(&order, tripwire.as_ref()) {
            Ok(done) => done,
            Err(error) if is_gone(&error) => Done::Absent,
            Err(error) => Done::Failed(error.raw_os_error().unwrap_or(libc::EIO)),
        };
        let bytes = postcard::to_allocvec(&done).map_err(io::Error::other)?;
        sys::send(socket, &bytes, &[])?;
    }
}

/// Whoever enters a user namespace has every capability in it. The run has none, and what it cannot
/// reach must not be reached for it.
fn keep_only_mounting() -> io::Result<()> {
    let only = CapabilitySet::SYS_ADMIN;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: only, permitted: only, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// The root of the run without what is mounted in it.
fn bare_root() -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(rustix::mount::open_tree(rustix::fs::CWD, "/", flags)?)
}

/// Mounts what an order says, unless it is mounted already.
fn cover(order: &Order, tripwire: Option<&OwnedFd>) -> io::Result<Done> {
    let place = open_without_links(order.path.as_path(), OFlags::PATH | OFlags::NOFOLLOW)?;
    if is_covered(place.as_fd(), order.cover, tripwire)? {
        return Ok(Done::Unchanged);
    }
    let tree = match order.cover {
        Cover::ReadOnly => {
            let tree = clone_tree_of(place.as_fd())?;
            sys::set_mount(tree.as_fd(), MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV, 0)?;
            tree
        }
        Cover::Pinned => clone_tree_of(place.as_fd())?,
        Cover::Hidden => {
            let directory = is_directory(place.as_fd())?;
            // The tripwire may take it for something else: what it saw last, or a probe.
            let node = tripwire.and_then(|root| node(root, &order.path, directory).ok());
            node.map_or_else(|| closed_stub(directory), Ok)?
        }
    };
    attach_to(tree.as_fd(), place.as_fd())?;
    Ok(Done::Mounted)
}

/// Whether the cover is there. An open path leads to the topmost mount.
fn is_covered(place: BorrowedFd<'_>, cover: Cover, tripwire: Option<&OwnedFd>) -> io::Result<bool> {
    let found = statx(place)?;
    if !found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
        return Ok(false);
    }
    match cover {
        Cover::Pinned => Ok(true),
        Cover::ReadOnly => {
            let flags = rustix::fs::fstatvfs(place)?.f_flag;
            Ok(flags.contains(StatVfsMountFlags::RDONLY))
        }
        Cover::Hidden => {
            let device = |stat: &rustix::fs::Statx| (stat.stx_dev_major, stat.stx_dev_minor);
            let node = tripwire.map(|root| statx(root.as_fd())).transpose()?;
            let stub = found.stx_mode & 0o7777 == 0;
            Ok(stub || node.is_some_and(|node| device(&node) == device(&found)))
        }
    }
}

fn statx(place: BorrowedFd<'_>) -> io::Result<rustix::fs::Statx> {
    let mask = StatxFlags::TYPE | StatxFlags::MODE;
    Ok(rustix::fs::statx(place, "", AtFlags::EMPTY_PATH, mask)?)
}

fn is_directory(place: BorrowedFd<'_>) -> io::Result<bool> {
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode);
    Ok(kind == rustix::fs::FileType::Directory)
}

/// The node of the tripwire at a path, if it is of this kind.
fn node(root: &OwnedFd, path: &Path, directory: bool) -> io::Result<OwnedFd> {
    let below = path.strip_prefix("/").map_err(io::Error::other)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let node = rustix::fs::openat(root, below, flags, Mode::empty())?;
    if is_directory(node.as_fd())? != directory {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    clone_tree_of(node.as_fd())
}

fn is_gone(error: &io::Error) -> bool {
    let gone = [libc::ENOENT, libc::ENOTDIR, libc::ELOOP, libc::ESTALE];
    error.raw_os_error().is_some_and(|error| gone.contains(&error))
}
