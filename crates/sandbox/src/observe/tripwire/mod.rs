//! The tripwire: a file system that is the root of a sandbox and serves no data.
//!
//! What the sandbox may use is mounted over names of this tree; whatever else is looked at, opened
//! or changed arrives here while the caller is still blocked in its call. Owns the FUSE protocol,
//! bytes in and bytes out, and the table of nodes that the kernel remembers. Reads and writes no
//! descriptor, and decides nothing: what is where, and what a denied attempt gets, is asked of
//! the [`Contents`].
//!
//! What the mount must be like for this to hold:
//! - without `default_permissions`, or the kernel denies by the mode bits without a request;
//! - without `noexec` and `ro`, which deny before a request is sent;
//! - mounted in the PID namespace whose IDs the attempts shall have: that of the mounting thread
//!   counts, and a thread that has only unshared it is still outside;
//! - looked at once (`stat` of the root) before the sandbox runs where user 0 is not mapped: until
//!   then the kernel takes the root for a file of user 0 and silently denies creating files in it.

mod abi;
mod attempts;
mod contents;
mod listing;
mod nodes;
mod wire;

#[cfg(test)]
mod live;
#[cfg(test)]
mod tests;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::attempt::{Attempt, Operation};
use crate::monitor::Ruling;
use abi::{feature, field, opcode};
use nodes::{Kind, Nodes};
use wire::{Attributes, Entry, Reply, Request};

pub use contents::{Contents, Seen};

/// Bytes that the kernel does not send. A process of the run cannot cause this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Too short to say what it wants.
    #[error("a FUSE request of {0} bytes has no whole header")]
    Header(usize),
    /// Cut, or more than one.
    #[error("a FUSE request says that it has {said} bytes and has {got}")]
    Length {
        /// What its header says.
        said: u32,
        /// What arrived.
        got: usize,
    },
    /// The arguments end early.
    #[error("the arguments of a FUSE request with opcode {0} end early")]
    Arguments(u32),
    /// A name that no directory can hold.
    #[error("a FUSE request with opcode {0} has a name that no file can have")]
    Name(u32),
}

/// The server of one mount.
#[derive(Debug)]
pub struct Tripwire {
    nodes: Nodes,
    reply: Reply,
    owner: Owner,
}

impl Tripwire {
    /// How big a buffer a request may need. The kernel does not use a buffer of
    /// less than 8 KiB. Longer requests could only set an extended attribute; those fail with
    /// `E2BIG` by themselves.
    pub const REQUEST_SIZE: usize = 8 << 10;

    /// A server for a mount whose files all belong to this user and group, as the mount's own
    /// user namespace numbers them. They must be mapped there, or the kernel denies silently.
    pub fn new(uid: u32, gid: u32) -> Self {
        Self { nodes: Nodes::new(), reply: Reply::default(), owner: Owner { uid, gid } }
    }

    /// Takes note that a path is something else now, of the same kind or not.
    pub fn renew(&mut self, path: &Path) {
        self.nodes.renew(path);
    }

    /// Serves one request.
    pub fn serve<'a>(
        &'a mut self,
        request: &[u8],
        contents: &mut impl Contents,
    ) -> Result<Served<'a>, Malformed> {
        let request = Request::parse(request)?;
        self.reply.begin();
        match self.answer(&request, contents) {
            Ok(Outcome::Reply) => Ok(Served::Reply(self.reply.finish(request.unique))),
            Ok(Outcome::Nothing) => Ok(Served::Nothing),
            Ok(Outcome::Stop) => Ok(Served::Stop),
            Err(Fault::Errno(errno)) => Ok(Served::Reply(self.reply.refuse(request.unique, errno))),
            Err(Fault::Malformed(malformed)) => Err(malformed),
        }
    }

    fn answer(
        &mut self,
        request: &Request<'_>,
        contents: &mut impl Contents,
    ) -> Result<Outcome, Fault> {
        match request.opcode {
            opcode::INIT => self.start(request),
            opcode::LOOKUP => self.look_up(request, contents),
            opcode::FORGET => {
                self.nodes.forget(request.node, request.u64_at(field::FORGET_LOOKUPS)?);
                Ok(Outcome::Nothing)
            }
            opcode::BATCH_FORGET => {
                request.forgotten()?.for_each(|(node, count)| self.nodes.forget(node, count));
                Ok(Outcome::Nothing)
            }
            opcode::GETATTR => {
                let (_, kind) = self.node(request.node)?;
                let attributes = self.owner.attributes(request.node, kind);
                self.reply.attributes_for(&attributes, LONG_SECONDS);
                Ok(Outcome::Reply)
            }
            opcode::READLINK => self.read_link(request, contents),
            // That it can be opened would tell that it is there.
            opcode::OPENDIR => match self.node(request.node)? {
                (path, Kind::Directory | Kind::PrivateDirectory) => {
                    ask(contents, Attempt { operation: Operation::List, path, pid: request.pid })
                }
                _ => {
                    self.reply.zeros(OPENED_LENGTH);
                    Ok(Outcome::Reply)
                }
            },
            opcode::READDIR | opcode::READDIRPLUS => match self.node(request.node)? {
                (path, Kind::Way) => self.list(request, &path, contents),
                (path, Kind::Directory) => {
                    ask(contents, Attempt { operation: Operation::List, path, pid: request.pid })
                }
                _ => Err(Fault::Errno(libc::ENOTDIR)),
            },
            opcode::STATFS => {
                self.statfs();
                Ok(Outcome::Reply)
            }
            opcode::INTERRUPT | opcode::NOTIFY_REPLY => Ok(Outcome::Nothing),
            opcode::RELEASE | opcode::RELEASEDIR | opcode::FLUSH | opcode::DESTROY => {
                Ok(Outcome::Reply)
            }
            _ => self.refuse(request, contents),
        }
    }

    /// Agrees on the version and on what both sides can do.
    fn start(&mut self, request: &Request<'_>) -> Result<Outcome, Fault> {
        let major = request.u32_at(field::INIT_MAJOR)?;
        let minor = request.u32_at(field::INIT_MINOR)?;
        let readahead = request.u32_at(field::INIT_MAX_READAHEAD)?;
        let offered = request.u32_at(field::INIT_FLAGS)?;
        if major < MAJOR || (major == MAJOR && minor < OLDEST_MINOR) {
            return Err(Fault::Errno(libc::EPROTO));
        }
        self.reply.u32(MAJOR);
        self.reply.u32(if major == MAJOR { minor.min(NEWEST_MINOR) } else { NEWEST_MINOR });
        self.reply.u32(readahead);
        self.reply.u32(offered & FEATURES);
        self.reply.u16(MOST_IN_BACKGROUND);
        self.reply.u16(MOST_IN_BACKGROUND / 4 * 3); // more than this counts as congestion
        self.reply.u32(MAX_WRITE);
        self.reply.u32(1); // times are exact to one nanosecond
        self.reply.zeros(36); // nothing of what came after 7.31
        Ok(Outcome::Reply)
    }

    fn look_up(
        &mut self,
        request: &Request<'_>,
        contents: &mut impl Contents,
    ) -> Result<Outcome, Fault> {
        let name = request.name_at(0)?;
        let path = self.nodes.child(request.node, name).ok_or(Fault::Errno(libc::ESTALE))?;
        if path.as_os_str().len() > LONGEST_PATH {
            return Err(Fault::Errno(libc::ENAMETOOLONG));
        }
        let seen = contents.look(&path, request.pid);
        // Programs look for the same files again and again, each time they start.
        if seen == Seen::Absent(libc::ENOENT) {
            self.reply.absent(ABSENT_SECONDS);
            return Ok(Outcome::Reply);
        }
        let kind = kind_of(seen, &path, contents)?;
        // The one error that lets a mount point live when the kernel only wanted to make sure.
        let number = self.nodes.remember(&path, kind).ok_or(Fault::Errno(libc::ENOMEM))?;
        self.reply.entry(&self.owner.entry(number, kind));
        Ok(Outcome::Reply)
    }

    fn read_link(
        &mut self,
        request: &Request<'_>,
        contents: &mut impl Contents,
    ) -> Result<Outcome, Fault> {
        let (path, Kind::Link(_)) = self.node(request.node)? else {
            return Err(Fault::Errno(libc::EINVAL));
        };
        let target = contents.target(&path).ok_or(Fault::Errno(libc::ENOENT))?;
        if target.as_os_str().len() > LONGEST_PATH {
            return Err(Fault::Errno(libc::ENAMETOOLONG));
        }
        self.reply.bytes(target.as_os_str().as_bytes());
        Ok(Outcome::Reply)
    }

    /// An empty file system of no size.
    fn statfs(&mut self) {
        self.reply.zeros(5 * 8); // blocks and files, all and free
        self.reply.u32(4096); // block size
        self.reply.u32(255); // longest name
        self.reply.u32(4096); // fragment size
        self.reply.zeros(7 * 4);
    }

    /// Everything that would change or open something, and requests that need no answer.
    fn refuse(
        &self,
        request: &Request<'_>,
        contents: &mut impl Contents,
    ) -> Result<Outcome, Fault> {
        // After ENOSYS the kernel stops asking and helps itself: ACCESS then succeeds (what matters,
        // opening, is still asked), the rest fails.
        let Some(tried) = attempts::tried(request, &self.nodes)? else {
            return Err(Fault::Errno(libc::ENOSYS));
        };
        let attempt = |path| Attempt { operation: tried.operation, path, pid: request.pid };
        let first = ask(contents, attempt(tried.path));
        match tried.second {
            // Both paths are reported, and the first one's error counts, unless the run ends.
            Some(second) if !matches!(first, Ok(Outcome::Stop)) => {
                match ask(contents, attempt(second)) {
                    Ok(Outcome::Stop) => Ok(Outcome::Stop),
                    _ => first,
                }
            }
            _ => first,
        }
    }

    fn node(&self, number: u64) -> Result<(PathBuf, Kind), Fault> {
        let node = self.nodes.get(number).map(|(path, kind)| (path.to_owned(), kind));
        node.ok_or(Fault::Errno(libc::ESTALE))
    }
}

const MAJOR: u32 = 7;

/// Linux 5.4. What is used here is older still.
const OLDEST_MINOR: u32 = 31;

/// The newest minor version that was read for changes in these requests.
const NEWEST_MINOR: u32 = 45;

/// What is taken of what the kernel offers. Planned names come with their listing, and the targets
/// of links stay in the kernel: path walks that end on granted paths ask nothing after the first.
const FEATURES: u32 = feature::ATOMIC_O_TRUNC
    | feature::DO_READDIRPLUS
    | feature::PARALLEL_DIROPS
    | feature::CACHE_SYMLINKS;

/// Nothing that the kernel does in the background ever comes here.
const MOST_IN_BACKGROUND: u16 = 12;

/// The kernel's own minimum. Nothing can be written.
const MAX_WRITE: u32 = 4096;

/// `struct fuse_open_out`.
const OPENED_LENGTH: usize = 16;

/// How long the kernel need not ask again about a name that is not there.
const ABSENT_SECONDS: u64 = 1;

/// `PATH_MAX` without its NUL.
const LONGEST_PATH: usize = 4095;

/// How long the kernel need not ask again for what does not change during a run.
const LONG_SECONDS: u64 = 24 * 60 * 60;

/// What a request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served<'a> {
    /// These bytes, to be written to the device.
    Reply(&'a [u8]),
    /// Nothing: the kernel does not wait for a reply.
    Nothing,
    /// Nothing, although the caller waits: the run must end. A killed thread stays in its call
    /// until it gets a reply or `/dev/fuse` is closed, so the supervisor must close it after the
    /// kill.
    Stop,
}

/// What becomes of a request that is not denied.
enum Outcome {
    Reply,
    Nothing,
    Stop,
}

/// Why a request is not served.
enum Fault {
    Malformed(Malformed),
    Errno(i32),
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// Whom all files belong to.
#[derive(Debug, Clone, Copy)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    fn attributes(self, node: u64, kind: Kind) -> Attributes {
        let (permissions, links, size) = match kind {
            Kind::Way | Kind::Directory | Kind::PrivateDirectory => (0o555, 2, 0),
            // All of them: a file that cannot be run by its mode is denied without a request.
            Kind::File | Kind::MountPoint | Kind::PrivateFile => (0o777, 1, 0),
            // The kernel cuts the target at this size.
            Kind::Link(length) => (0o777, 1, length),
        };
        let mode = kind.format() | permissions;
        Attributes { node, size, mode, links, uid: self.uid, gid: self.gid }
    }

    /// The name of what is not planned is looked up anew each time, so that each attempt is seen.
    /// Its attributes may stay, since they say nothing but what it is.
    fn entry(self, node: u64, kind: Kind) -> Entry {
        Entry {
            attributes: self.attributes(node, kind),
            name_seconds: if kind.is_planned() { LONG_SECONDS } else { 0 },
            attribute_seconds: LONG_SECONDS,
        }
    }
}

fn kind_of(seen: Seen, path: &Path, contents: &mut impl Contents) -> Result<Kind, Fault> {
    Ok(match seen {
        Seen::Absent(errno) => return Err(Fault::Errno(refusal(errno))),
        Seen::Hidden => return Err(Fault::Errno(libc::ENOENT)),
        Seen::Way => Kind::Way,
        Seen::Directory => Kind::Directory,
        Seen::File => Kind::File,
        Seen::MountPoint => Kind::MountPoint,
        Seen::PrivateDirectory => Kind::PrivateDirectory,
        Seen::PrivateFile => Kind::PrivateFile,
        Seen::Link => {
            let length = contents.target(path).map_or(0, |target| target.as_os_str().len());
            Kind::Link(u32::try_from(length).unwrap_or(u32::MAX))
        }
    })
}

fn ask(contents: &mut impl Contents, attempt: Attempt) -> Result<Outcome, Fault> {
    match contents.attempt(attempt) {
        Ruling::Errno(errno) => Err(Fault::Errno(refusal(errno))),
        Ruling::Continue => Err(Fault::Errno(libc::EACCES)),
        Ruling::Stop => Ok(Outcome::Stop),
    }
}

/// An error that really denies. Success is not one, and neither is what the kernel would not
/// take. After ENOSYS it would stop asking and let things pass; after EINTR it would take the
/// mounts away from a name whose removal was tried.
fn refusal(errno: i32) -> i32 {
    match errno {
        libc::ENOSYS | libc::EINTR => libc::EACCES,
        1..512 => errno,
        _ => libc::EACCES,
    }
}
