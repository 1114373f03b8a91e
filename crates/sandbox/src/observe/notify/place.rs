//! [`Place`]: what a path argument of an intercepted call means, read once.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libc::c_int;
use model::{AbsPath, Unresolvable};
use rustix::fs::{Mode, OFlags};

use super::Watcher;
use super::links::Links;
use super::read::{self, Caller};
use crate::child::stdio;
use crate::observe::syscalls::{Act, PathArgument};

/// Where a path argument leads.
#[derive(Debug)]
pub(crate) enum Place {
    /// To a path without links, which need not exist.
    At {
        /// The path.
        path: AbsPath,
        /// Whether the argument ends with a slash, so that only a directory will do.
        slash: bool,
    },
    /// To what a descriptor of the caller is open on.
    Open(Opened),
}

/// What a descriptor of the caller is open on.
#[derive(Debug)]
pub(crate) struct Opened {
    /// It, without any access to it.
    pub(crate) object: OwnedFd,
    /// Its path, if it has or had one.
    pub(crate) path: Option<AbsPath>,
    /// How the caller's own descriptor is open, as `open` takes it.
    pub(crate) access: u32,
}

impl Opened {
    /// The file at a path of the host, by the standard descriptor that is open on it.
    pub(super) fn inherited(path: &AbsPath) -> Option<Self> {
        let (descriptor, access) = stdio::open_on(path.as_path())?;
        let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let object = rustix::fs::open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let access = match (access.read, access.write) {
            (true, true) => libc::O_RDWR,
            (false, true) => libc::O_WRONLY,
            (true, false) => libc::O_RDONLY,
            (false, false) => return None,
        };
        Some(Self { object, path: Some(path.clone()), access: access.cast_unsigned() })
    }
}

impl Place {
    /// The path that is judged.
    pub(crate) fn path(&self) -> Option<&AbsPath> {
        match self {
            Self::At { path, .. } => Some(path),
            Self::Open(opened) => opened.path.as_ref(),
        }
    }
}

impl Act {
    /// Whether a call works on a name in a directory, and never follows what is there.
    fn is_about_names(self, second: bool) -> bool {
        match self {
            Self::MakeDirectory { .. }
            | Self::MakeNode { .. }
            | Self::SymbolicLink { .. }
            | Self::Remove { .. }
            | Self::Rename { .. } => true,
            Self::Link => second,
            _ => false,
        }
    }

    /// The error for a path that ends with no name: `/`, `.` or `..`.
    fn without_name(self, last: &[u8]) -> c_int {
        match self {
            Self::Rename { .. } => libc::EBUSY,
            Self::Remove { directory: true } => match last {
                b"." => libc::EINVAL,
                b".." => libc::ENOTEMPTY,
                _ => libc::EBUSY,
            },
            Self::Remove { directory: false } => libc::EISDIR,
            _ => libc::EEXIST,
        }
    }
}

impl Watcher<'_> {
    /// Where an argument of a call leads, or the error that the call gets.
    pub(super) fn place(
        &mut self,
        argument: PathArgument,
        act: Act,
        second: bool,
        caller: &Caller,
    ) -> Result<Place, c_int> {
        let text = match argument.pointer {
            0 if argument.empty_means_directory => PathBuf::new(),
            pointer => read::path(caller.pid, pointer)?,
        };
        if text.as_os_str().is_empty() {
            if !argument.empty_means_directory {
                return Err(libc::ENOENT);
            }
            return caller.opened(argument.directory).map(Place::Open);
        }
        let named = read::absolute(caller.pid, argument.directory, &text)?;
        let bytes = text.as_os_str().as_bytes();
        let trimmed = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let slash = trimmed < bytes.len();
        let last = bytes.get(..trimmed).unwrap_or_default();
        let last = last.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let has_name = !matches!(last, b"" | b"." | b"..");
        let names = act.is_about_names(second);
        if names && !has_name {
            return Err(act.without_name(last));
        }
        if !names && (argument.follow || slash || !has_name) {
            let by_name = |descriptor| {
                let opened = caller.opened(descriptor).map(Place::Open);
                opened.map_err(|error| if error == libc::EBADF { libc::ENOENT } else { error })
            };
            if let Some(descriptor) = caller.descriptor_named(&named) {
                return by_name(descriptor);
            }
            let (path, descriptor) = self.follow(&named, caller)?;
            return descriptor.map_or(Ok(Place::At { path, slash }), by_name);
        }
        let parent = named.parent().unwrap_or(Path::new("/"));
        let (parent, _) = self.follow(parent, caller)?;
        Ok(Place::At { path: parent.join(OsStr::from_bytes(last)), slash })
    }

    /// Where a path leads, links followed, and the caller's descriptor if a link of `/proc` to that is
    /// the last of them.
    fn follow(&mut self, named: &Path, caller: &Caller) -> Result<(AbsPath, Option<c_int>), c_int> {
        let climbs = named.components().any(|part| part == std::path::Component::ParentDir);
        if !climbs
            && let Ok(path) = AbsPath::lexical(named)
            && self.views.is_plain(&path)
        {
            return Ok((path, None));
        }
        let links = Links::new(self.plan, self.processes, self.views, caller.pid);
        let found = self.monitor.resolve(named, &|path: &AbsPath| links.at(path));
        let path = found.map_err(|why| match why {
            Unresolvable::Loop => libc::ELOOP,
            Unresolvable::TooLong => libc::ENAMETOOLONG,
            Unresolvable::NotADirectory => libc::ENOTDIR,
            Unresolvable::ClimbsFromMissing => libc::ENOENT,
            Unresolvable::Refused(_) => libc::EACCES,
        })?;
        let descriptor = links.descriptor(&path);
        Ok((path, descriptor))
    }
}

impl Caller {
    /// What one of its descriptors is open on, or its working directory.
    fn opened(&self, descriptor: c_int) -> Result<Opened, c_int> {
        let link = read::link(self.pid, descriptor);
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let object = rustix::fs::open(&link, flags, Mode::empty())
            .map_err(|error| read::no_descriptor(error.raw_os_error()))?;
        let text = std::fs::read_link(&link).map_err(|_| libc::EACCES)?;
        let bytes = text.as_os_str().as_bytes();
        // What is said of a removed file may also be its name. Without it, the rules are stricter.
        let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
        let has_path = bytes.starts_with(b"/") && !bytes.starts_with(b"/memfd:");
        let path = has_path.then(|| AbsPath::lexical(Path::new(OsStr::from_bytes(bytes))).ok());
        let path = match path {
            Some(None) => return Err(libc::EACCES),
            path => path.flatten(),
        };
        Ok(Opened { object, path, access: self.access(descriptor) })
    }

    /// The descriptor that a path names, as `/dev/fd/3` does.
    fn descriptor_named(&self, path: &Path) -> Option<c_int> {
        let text = path.to_str()?;
        let number = match text {
            "/dev/stdin" => "0",
            "/dev/stdout" => "1",
            "/dev/stderr" => "2",
            _ => text
                .strip_prefix("/dev/fd/")
                .or_else(|| text.strip_prefix("/proc/self/fd/"))
                .or_else(|| text.strip_prefix("/proc/thread-self/fd/"))
                .or_else(|| {
                    let rest = text.strip_prefix("/proc/")?;
                    let (process, number) = rest.split_once("/fd/")?;
                    (process.parse().ok() == self.number_inside()).then_some(number)
                })?,
        };
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
    }
}
