//! [`Performer`]: makes the calls of a run that change something, on exactly what was judged.
//!
//! A process can change its memory while a call of it is judged. So the kernel must not read the
//! arguments again: the call is made here, by descriptor, and its process gets the result. One thread
//! makes one call after the other, so a run cannot race itself.
//!
//! What the kernel would check for the process, it checks for this one too: the same user, no
//! capability, the mounts of the run. What it checks against the mount namespace of the caller is
//! checked here ([`Performer::is_mounted_on`]).

mod open;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RawMode, RenameFlags, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;
use rustix::path::DecInt;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::observe::notify::{Caller, Opened, Place};
use crate::observe::syscalls::Act;
use crate::supervisor::views::{Seen, Views};
use crate::sys;

/// A judged call.
#[derive(Debug)]
pub(crate) struct Performance {
    pub(crate) act: Act,
    pub(crate) first: Place,
    pub(crate) second: Option<Place>,
    /// What the pointers of the call point to.
    pub(crate) arguments: Arguments,
    /// The descriptor is the only reason why the call is allowed.
    pub(crate) inherited: bool,
    pub(crate) caller: Caller,
}

/// Two are equal that do the same to the same paths.
impl PartialEq for Performance {
    fn eq(&self, other: &Self) -> bool {
        let paths = |call: &Self| {
            [Some(&call.first), call.second.as_ref()].map(|it| it.and_then(Place::path).cloned())
        };
        (self.act, self.inherited) == (other.act, other.inherited) && paths(self) == paths(other)
    }
}

impl Eq for Performance {}

/// The arguments of a call that are in the memory of its process.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// The target of a link, or the name of an attribute.
    pub(crate) text: Vec<u8>,
    /// The value of an attribute.
    pub(crate) value: Vec<u8>,
    pub(crate) times: Option<Timestamps>,
}

/// What a call gets that was made for it.
#[derive(Debug)]
pub(crate) enum Performed {
    /// Success.
    Done,
    /// A file, and whether programs that are executed keep it.
    File(OwnedFd, sys::CloseOnExec),
}

/// Why a call was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotPerformed {
    /// It gets this error.
    Errno(i32),
    /// What is there is not what was judged.
    Changed,
    /// It would wait, and can be tried again later.
    Waits,
}

impl From<Errno> for NotPerformed {
    fn from(error: Errno) -> Self {
        Self::Errno(error.raw_os_error())
    }
}

type Result<T> = std::result::Result<T, NotPerformed>;

/// Makes calls.
pub(crate) struct Performer {
    /// Names the descriptors of this process.
    descriptors: Option<OwnedFd>,
    /// What this process has and a run has not.
    capabilities: Option<CapabilitySets>,
    /// The only user and group of the run's user namespace, if it has one of its own.
    user: Option<(u32, u32)>,
}

/// A name in a directory.
struct Name<'a> {
    directory: OwnedFd,
    /// With a slash at its end where the call has one.
    name: Cow<'a, OsStr>,
}

impl Performer {
    pub(crate) fn new(user: Option<(u32, u32)>) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let capabilities = rustix::thread::capabilities(None).ok();
        Self {
            descriptors: rustix::fs::open("/proc/self/fd", flags, Mode::empty()).ok(),
            capabilities: capabilities.filter(|sets| !sets.effective.is_empty()),
            user,
        }
    }

    pub(crate) fn perform(&self, views: &Views, call: &Performance) -> Result<Performed> {
        let _unprivileged = Unprivileged::begin(self.capabilities.as_ref())?;
        if let Act::Open { flags, mode } = call.act {
            return self.open(views, call, flags, mode);
        }
        if call.inherited {
            return Err(Errno::ACCESS.into());
        }
        self.change(views, call).map(|()| Performed::Done)
    }

    fn change(&self, views: &Views, call: &Performance) -> Result<()> {
        match call.act {
            Act::MakeDirectory { mode } => {
                let Name { directory, name } = name(views, &call.first, Errno::EXIST)?;
                let _umask = Umask::of(&call.caller)?;
                Ok(rustix::fs::mkdirat(directory, &*name, bits(mode))?)
            }
            Act::MakeNode { mode } => {
                let Name { directory, name } = name(views, &call.first, Errno::EXIST)?;
                let kind = match mode & libc::S_IFMT {
                    0 => FileType::RegularFile,
                    kind => FileType::from_raw_mode(kind),
                };
                let allowed = [FileType::RegularFile, FileType::Fifo, FileType::Socket];
                if !allowed.contains(&kind) {
                    return Err(Errno::PERM.into());
                }
                let _umask = Umask::of(&call.caller)?;
                Ok(rustix::fs::mknodat(directory, &*name, kind, bits(mode), 0)?)
            }
            Act::SymbolicLink { .. } => {
                let Name { directory, name } = name(views, &call.first, Errno::EXIST)?;
                let target = call.arguments.text.as_slice();
                Ok(rustix::fs::symlinkat(target, directory, &*name)?)
            }
            Act::Link => self.link(views, call),
            Act::Remove { directory: is_directory } => {
                let name = name(views, &call.first, Errno::BUSY)?;
                is_free(views, &name)?;
                let how = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                Ok(rustix::fs::unlinkat(name.directory, &*name.name, how)?)
            }
            Act::Rename { flags } => {
                let from = name(views, &call.first, Errno::BUSY)?;
                let second = call.second.as_ref().ok_or(Errno::INVAL)?;
                let to = name(views, second, Errno::BUSY)?;
                is_free(views, &from)?;
                is_free(views, &to)?;
                let flags = RenameFlags::from_bits_retain(flags);
                let (old, new) = (&*from.name, &*to.name);
                Ok(rustix::fs::renameat_with(&from.directory, old, &to.directory, new, flags)?)
            }
            _ => {
                let object = Self::object(views, &call.first)?;
                self.change_object(object.as_fd(), call)
            }
        }
    }

    /// Changes what exists.
    fn change_object(&self, object: BorrowedFd<'_>, call: &Performance) -> Result<()> {
        let (fds, own) = (self.descriptors()?, DecInt::from_fd(object));
        let path = || format!("/proc/self/fd/{}", object.as_raw_fd());
        match call.act {
            Act::Truncate { length } => self.truncate(object, length, call.caller.pid),
            Act::ChangeMode { mode } => {
                Ok(rustix::fs::chmodat(fds, own, bits(mode), AtFlags::empty())?)
            }
            Act::ChangeOwner { user, group } => {
                let known = |id: u32, own: u32| id == u32::MAX || id == own;
                if self.user.is_some_and(|(uid, gid)| !known(user, uid) || !known(group, gid)) {
                    return Err(Errno::INVAL.into());
                }
                let user = (user != u32::MAX).then(|| Uid::from_raw(user));
                let group = (group != u32::MAX).then(|| Gid::from_raw(group));
                Ok(rustix::fs::chownat(object, "", user, group, AtFlags::EMPTY_PATH)?)
            }
            Act::ChangeTimes { .. } => {
                let times = call.arguments.times.clone().ok_or(Errno::INVAL)?;
                Ok(rustix::fs::utimensat(fds, own, &times, AtFlags::empty())?)
            }
            Act::SetAttribute { flags, .. } => {
                let Arguments { text, value, .. } = &call.arguments;
                let flags = XattrFlags::from_bits_retain(flags);
                Ok(rustix::fs::setxattr(path(), text.as_slice(), value, flags)?)
            }
            Act::RemoveAttribute { .. } => {
                Ok(rustix::fs::removexattr(path(), call.arguments.text.as_slice())?)
            }
            _ => Err(Errno::NOSYS.into()),
        }
    }

    fn link(&self, views: &Views, call: &Performance) -> Result<()> {
        let second = call.second.as_ref().ok_or(Errno::INVAL)?;
        let new = name(views, second, Errno::EXIST)?;
        let done = match &call.first {
            Place::At { .. } => {
                let old = name(views, &call.first, Errno::PERM)?;
                let none = AtFlags::empty();
                rustix::fs::linkat(&old.directory, &*old.name, &new.directory, &*new.name, none)
            }
            Place::Open(opened) => {
                is_of_the_run(views, opened)?;
                let own = DecInt::from_fd(&opened.object);
                let follow = AtFlags::SYMLINK_FOLLOW;
                rustix::fs::linkat(self.descriptors()?, own, &new.directory, &*new.name, follow)
            }
        };
        Ok(done?)
    }

    /// What a place names, to change it.
    fn object<'a>(views: &Views, place: &'a Place) -> Result<Held<'a>> {
        match place {
            Place::Open(opened) => {
                is_of_the_run(views, opened)?;
                Ok(Held::Theirs(opened.object.as_fd()))
            }
            Place::At { path, slash } => {
                let (directory, name) = views.parent(path)?;
                let Some(name) = name else { return Ok(Held::Ours(directory)) };
                let (object, seen) = views.look(directory.as_fd(), name)?;
                if *slash && seen.kind != FileType::Directory {
                    let changed = seen.kind == FileType::Symlink;
                    let error = NotPerformed::from(Errno::NOTDIR);
                    return Err(if changed { NotPerformed::Changed } else { error });
                }
                Ok(Held::Ours(object))
            }
        }
    }

    fn descriptors(&self) -> Result<BorrowedFd<'_>> {
        self.descriptors.as_ref().map(AsFd::as_fd).ok_or(Errno::ACCESS.into())
    }
}

/// Denies what a descriptor leads to if it is not what the run finds at its path: an inherited file
/// of the host has a path of the host.
fn is_of_the_run(views: &Views, opened: &Opened) -> Result<()> {
    let Some(path) = &opened.path else { return Ok(()) };
    let object = Seen::of(opened.object.as_fd())?;
    let (directory, name) = views.parent(path)?;
    let around = Seen::of(directory.as_fd())?;
    if object.mount == around.mount {
        return Ok(());
    }
    let there = name.map(|name| views.look(directory.as_fd(), name)).transpose()?;
    if there.is_some_and(|(_, there)| there.mount == object.mount) {
        return Ok(());
    }
    Err(Errno::ACCESS.into())
}

/// Something that is held by a descriptor.
enum Held<'a> {
    Ours(OwnedFd),
    Theirs(BorrowedFd<'a>),
}

impl AsFd for Held<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Ours(descriptor) => descriptor.as_fd(),
            Self::Theirs(descriptor) => *descriptor,
        }
    }
}

/// The directory and the name of a place. `tree` is the error for the root of a mounted tree.
fn name<'a>(views: &Views, place: &'a Place, tree: Errno) -> Result<Name<'a>> {
    let Place::At { path, slash } = place else { return Err(Errno::INVAL.into()) };
    let (directory, name) = views.parent(path)?;
    let name = name.ok_or(tree)?;
    let name = if *slash {
        let mut name = name.to_owned();
        name.push("/");
        name.into()
    } else {
        name.into()
    };
    Ok(Name { directory, name })
}

/// Denies what changes a name on which something is mounted in the run. The kernel denies that only
/// to processes in the same mount namespace; for others it takes the mount away.
fn is_free(views: &Views, Name { directory, name }: &Name<'_>) -> Result<()> {
    let bytes = name.as_bytes();
    let plain = OsStr::from_bytes(bytes.strip_suffix(b"/").unwrap_or(bytes));
    let seen = match views.look(directory.as_fd(), plain) {
        Ok((_, seen)) => seen,
        Err(Errno::NOENT) => return Ok(()),
        // A node of the tripwire is mounted there.
        Err(Errno::ACCESS) => return Err(Errno::BUSY.into()),
        Err(error) => return Err(error.into()),
    };
    if seen.mount != Seen::of(directory.as_fd())?.mount {
        return Err(Errno::BUSY.into());
    }
    Ok(())
}

fn bits(mode: u32) -> Mode {
    Mode::from_raw_mode((mode & 0o7777) as RawMode)
}

/// Gives up the capabilities of this thread for a while.
struct Unprivileged<'a>(Option<&'a CapabilitySets>);

impl<'a> Unprivileged<'a> {
    fn begin(all: Option<&'a CapabilitySets>) -> Result<Self> {
        if let Some(all) = all {
            let effective = CapabilitySet::empty();
            rustix::thread::set_capabilities(None, CapabilitySets { effective, ..*all })?;
        }
        Ok(Self(all))
    }
}

impl Drop for Unprivileged<'_> {
    fn drop(&mut self) {
        if let Some(all) = self.0 {
            // Without them the supervisor is only weaker.
            let _ = rustix::thread::set_capabilities(None, *all);
        }
    }
}

/// Has the umask of another process for a while. Not applied by hand: the kernel leaves it out where a
/// directory has default permissions of its own.
struct Umask(Mode);

impl Umask {
    fn of(caller: &Caller) -> Result<Self> {
        let umask = caller.umask().ok_or(Errno::ACCESS)?;
        Ok(Self(rustix::process::umask(Mode::from_raw_mode(umask as RawMode))))
    }
}

impl Drop for Umask {
    fn drop(&mut self) {
        rustix::process::umask(self.0);
    }
}
