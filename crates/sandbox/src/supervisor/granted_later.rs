//! Files that were granted before they existed: created on the host, then mounted in the running
//! tree.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use model::AbsPath;
use rustix::fs::{Mode, OFlags};
use rustix::thread::LinkNameSpaceType;

use crate::Operation;
use crate::child::mounts::{attach_to, clone_tree_of, open_without_links};
use crate::sys::{self, ExitOnPanic, MOUNT_RDONLY, Reply};

/// Creates a granted file or directory, and starts a process that makes it writable for the run.
pub(crate) fn start(
    path: &AbsPath,
    operation: Operation,
    namespaces: &RunNamespaces,
) -> io::Result<Created> {
    let created = match operation {
        Operation::MakeDirectory => {
            std::fs::create_dir(path.as_path())?;
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(path.as_path(), flags, Mode::empty())?
        }
        _ => {
            let mut new = OpenOptions::new();
            new.read(true).write(true).create_new(true).mode(0o644).open(path.as_path())?.into()
        }
    };
    let stat = rustix::fs::fstat(&created)?;
    let helper =
        start_in_namespaces(namespaces, || make_writable(path, (stat.st_dev, stat.st_ino)))?;
    Ok(Created { created, helper })
}

/// What was created, and the process that mounts it in the run.
pub(crate) struct Created {
    pub(crate) created: OwnedFd,
    pub(crate) helper: i32,
}

/// What the call gets when that process has ended: it continues, or has been done already.
pub(crate) fn reply(ended: io::Result<i32>, operation: Operation) -> Reply {
    match (ended, operation) {
        (Err(error), _) => Reply::Errno(error.raw_os_error().unwrap_or(libc::EACCES)),
        (Ok(0), Operation::MakeDirectory) => Reply::Done,
        (Ok(0), _) => Reply::Continue,
        (Ok(errno), _) => Reply::Errno(errno),
    }
}

/// Bind-mounts a path on itself, writable, if it is still what was created: another run may have
/// replaced it.
fn make_writable(path: &AbsPath, created: (u64, u64)) -> io::Result<()> {
    let place = open_without_links(path.as_path(), OFlags::PATH | OFlags::NOFOLLOW)?;
    let stat = rustix::fs::fstat(&place)?;
    if (stat.st_dev, stat.st_ino) != created {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    let tree = clone_tree_of(place.as_fd())?;
    sys::set_mount(tree.as_fd(), 0, MOUNT_RDONLY)?;
    attach_to(tree.as_fd(), place.as_fd())
}

/// The run's user and mount namespaces, by descriptor: the first process is not dumpable, so its
/// `/proc/PID/ns` cannot be opened.
#[derive(Debug)]
pub(crate) struct RunNamespaces {
    user: OwnedFd,
    mount: OwnedFd,
}

impl RunNamespaces {
    /// The namespaces of this process.
    pub(crate) fn here() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let open = |path| rustix::fs::open(path, flags, Mode::empty());
        Ok(Self { user: open("/proc/self/ns/user")?, mount: open("/proc/self/ns/mnt")? })
    }

    /// Those of a program of the run.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let open = |name| rustix::fs::open(format!("/proc/{pid}/ns/{name}"), flags, Mode::empty());
        Ok(Self { user: open("user")?, mount: open("mnt")? })
    }

    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.user.as_fd(), self.mount.as_fd()]
    }

    pub(crate) fn from_descriptors(descriptors: Vec<OwnedFd>) -> Option<Self> {
        let [user, mount] = descriptors.try_into().ok()?;
        Some(Self { user, mount })
    }

    fn enter(&self) -> io::Result<()> {
        use rustix::thread::move_into_link_name_space as enter;
        enter(self.user.as_fd(), Some(LinkNameSpaceType::User))?;
        enter(self.mount.as_fd(), Some(LinkNameSpaceType::Mount))?;
        Ok(())
    }
}

/// Does something in the run's user and mount namespaces, in a process of its own, because a process
/// cannot leave a user namespace again. It is not waited for, as it may need answers of the tripwire.
pub(crate) fn start_in_namespaces(
    namespaces: &RunNamespaces,
    act: impl FnOnce() -> io::Result<()>,
) -> io::Result<i32> {
    start_helper(Some(namespaces), act)
}

/// The same, on the host where the run has no namespaces.
pub(crate) fn start_helper(
    namespaces: Option<&RunNamespaces>,
    act: impl FnOnce() -> io::Result<()>,
) -> io::Result<i32> {
    start_prepared(namespaces, || Ok(()), |()| act())
}

/// The same, with something that the process does before it enters them.
pub(crate) fn start_prepared<T>(
    namespaces: Option<&RunNamespaces>,
    prepare: impl FnOnce() -> io::Result<T>,
    act: impl FnOnce(T) -> io::Result<()>,
) -> io::Result<i32> {
    let supervisor = rustix::process::getpid();
    if let Some(helper) = sys::fork()? {
        return Ok(helper);
    }
    let _exit = ExitOnPanic;
    // It may wait for an answer of the supervisor, and must not do so for ever. Entering a user
    // namespace clears the parent-death signal, so it is set here.
    let prepared = prepare();
    let entered = namespaces.map_or(Ok(()), RunNamespaces::enter);
    let bound = entered.and_then(|()| sys::die_with_parent());
    if rustix::process::getppid() != Some(supervisor) {
        sys::exit_now(libc::EIO);
    }
    let done = bound.and(prepared).and_then(act);
    // An error without an errno must not look like success.
    let code = done.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
    sys::exit_now(code)
}
