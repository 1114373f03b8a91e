//! [`MountHelper`]: a process in the run's namespaces that mounts and opens what the supervisor asks
//! for.
//!
//! A process that has entered a user namespace cannot leave it again, so the supervisor has this one
//! for it. It is started when it is first needed, has no descriptor but the socket to the
//! supervisor and a view of the tripwire, and ends with the supervisor.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, FsWord, Mode, OFlags, StatVfsMountFlags, StatxAttributes, StatxFlags,
};
use rustix::mount::OpenTreeFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Signal;
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use crate::child::mounts::{attach_to, clone_tree_of, closed_stub, open_without_links};
use crate::ipc;
use crate::supervisor::granted_later::{self, RunNamespaces};
use crate::sys::{self, MOUNT_NODEV, MOUNT_NOSUID, MOUNT_RDONLY};

/// What the helper is asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request<'a> {
    /// A mount.
    Cover(Cow<'a, Order>),
    /// A file, as the run sees it, to be read. A relative path starts at the descriptor that comes
    /// with it.
    Open {
        /// The path.
        #[serde(with = "ipc::exact_path")]
        path: PathBuf,
        /// The flags of the open.
        flags: u32,
    },
}

/// What must be mounted at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    #[serde(with = "ipc::exact_path")]
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
    /// A descriptor comes along.
    Opened(Access),
    /// It failed with this error.
    Failed(i32),
}

/// What a descriptor is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Access {
    /// Reading.
    Reading,
    /// Nothing yet: opening the file for reading may have to wait for another process.
    Waiting,
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
        // The run's own `/proc` does not show this process.
        let descriptors = || {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(rustix::fs::open("/proc/self/fd", flags, Mode::empty())?)
        };
        let process =
            granted_later::start_prepared(Some(namespaces), descriptors, |descriptors| {
                serve(&theirs, &descriptors, tripwire)
            })?;
        Ok(Self { socket, process })
    }

    pub(crate) fn send(
        &self,
        request: &Request<'_>,
        directory: Option<&OwnedFd>,
    ) -> io::Result<()> {
        let bytes = postcard::to_allocvec(request).map_err(io::Error::other)?;
        let directory: Vec<_> = directory.into_iter().map(AsFd::as_fd).collect();
        sys::send(&self.socket, &bytes, &directory)
    }

    pub(crate) fn receive(&self) -> io::Result<(Done, Option<OwnedFd>)> {
        let (bytes, mut files, _) = sys::receive(&self.socket)?;
        Ok((postcard::from_bytes(&bytes).map_err(io::Error::other)?, files.pop()))
    }

    /// Ends it, and returns its process ID. It can be waited for only when the tripwire's device is
    /// closed: not even a killed process leaves a request to it unanswered.
    pub(crate) fn stop(self) -> i32 {
        let process = rustix::process::Pid::from_raw(self.process);
        process.map(|process| rustix::process::kill_process(process, Signal::KILL));
        self.process
    }

    /// The descriptor on which answers arrive.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.socket
    }
}

/// Does what arrives, until the supervisor is gone.
fn serve(socket: &OwnedFd, descriptors: &OwnedFd, tripwire: bool) -> io::Result<()> {
    sys::close_all_but(&[socket.as_fd(), descriptors.as_fd()]);
    keep_only_mounting()?;
    let tripwire = tripwire.then(bare_root).transpose()?;
    loop {
        let (bytes, mut received, _) = sys::receive(socket)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let request: Request<'_> = postcard::from_bytes(&bytes).map_err(io::Error::other)?;
        let (done, file) = match request {
            Request::Cover(order) => match cover(&order, tripwire.as_ref()) {
                Ok(done) => (done, None),
                Err(error) if is_gone(&error) => (Done::Absent, None),
                Err(error) => (failed(&error), None),
            },
            Request::Open { path, flags } => {
                match open(&path, flags, received.pop().as_ref(), descriptors) {
                    Ok((file, access)) => (Done::Opened(access), Some(file)),
                    Err(error) => (failed(&error), None),
                }
            }
        };
        let bytes = postcard::to_allocvec(&done).map_err(io::Error::other)?;
        let files: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        sys::send(socket, &bytes, &files)?;
    }
}

fn failed(error: &io::Error) -> Done {
    Done::Failed(error.raw_os_error().unwrap_or(libc::EIO))
}

/// Opens a file for reading, as the run sees it, without waiting for anything that the run can
/// withhold.
fn open(
    path: &Path,
    flags: u32,
    directory: Option<&OwnedFd>,
    descriptors: &OwnedFd,
) -> io::Result<(OwnedFd, Access)> {
    let asked = OFlags::from_bits_retain(flags);
    let directory = directory.map_or(rustix::fs::CWD, AsFd::as_fd);
    let look = OFlags::PATH | OFlags::CLOEXEC | (asked & OFlags::NOFOLLOW);
    let place = rustix::fs::openat(directory, path, look, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
    let patient = !asked.contains(OFlags::NONBLOCK);
    match kind {
        FileType::Symlink => return Err(io::Error::from_raw_os_error(libc::ELOOP)),
        FileType::Socket => return Err(io::Error::from_raw_os_error(libc::ENXIO)),
        // The two ends of a pipe without a name are open already.
        FileType::Fifo if patient && rustix::fs::fstatfs(&place)?.f_type != PIPEFS => {
            return Ok((place, Access::Waiting));
        }
        _ => {}
    }
    let kept = asked & KEPT;
    let flags = kept | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let number = place.as_raw_fd().to_string();
    let file = match rustix::fs::openat(descriptors, number, flags, Mode::empty()) {
        Ok(file) => file,
        // A process of the run holds a lease on it.
        Err(rustix::io::Errno::AGAIN) if patient => return Ok((place, Access::Waiting)),
        Err(error) => return Err(error.into()),
    };
    if patient {
        let set = rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(&file, set)?;
    }
    Ok((file, Access::Reading))
}

/// What is kept of the flags of an open for reading.
pub(crate) const KEPT: OFlags =
    OFlags::NOATIME.union(OFlags::DIRECT).union(OFlags::SYNC).union(OFlags::DSYNC);

/// The file system of pipes without a name.
const PIPEFS: FsWord = 0x5049_5045;

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
    let place = match open_without_links(order.path.as_path(), OFlags::PATH | OFlags::NOFOLLOW) {
        // The run may not enter the directory either.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => return Ok(Done::Absent),
        place => place?,
    };
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
            let stub = Mode::from_bits_truncate(found.stx_mode.into()).is_empty();
            Ok(stub || node.is_some_and(|node| device(&node) == device(&found)))
        }
    }
}

fn statx(place: BorrowedFd<'_>) -> io::Result<rustix::fs::Statx> {
    let mask = StatxFlags::TYPE | StatxFlags::MODE;
    Ok(rustix::fs::statx(place, "", AtFlags::EMPTY_PATH, mask)?)
}

fn is_directory(place: BorrowedFd<'_>) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode);
    Ok(kind == FileType::Directory)
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
