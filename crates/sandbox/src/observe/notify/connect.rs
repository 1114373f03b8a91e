//! `connect`: judged, and then performed by the supervisor.
//!
//! A call that is handed back to the kernel is read a second time, and a thread can have put another
//! address or another socket there meanwhile. Mounts do not catch that: a socket of the host that
//! appears during the run, in a directory that the run can read, can be connected to. So below level
//! `full` no `connect` is handed back. The supervisor takes the socket itself out of the process
//! (`pidfd_getfd`), and connects it to the address that it has judged; a socket at a path to the very
//! file that it has looked at. The file must be bound by the run itself, or granted.
//!
//! A server that asks who has connected (`SO_PEERCRED`) sees the supervisor: the same user, and a
//! process of another namespace, so process 0.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};
use std::{fs, io};

use model::{AbsPath, Kind, Net};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::read::{Taken, absolute, read_address, take};
use super::{CONTINUE, Judged, Watcher, errno};
use crate::child::mounts::open_without_links;
use crate::monitor::{Ruling, Source};
use crate::network::sock_diag::{SockDiag, UnixSocket};
use crate::observe::program::Program;
use crate::observe::syscalls::{self, Address};
use crate::sys::{self, Notification, Reply};
use crate::{Attempt, Operation};

/// `sockaddr_storage`, and `sockaddr_un`.
const LONGEST: u32 = 128;
const LONGEST_UNIX: usize = 110;

/// The sockets that a run without a network of its own can have bound. One more than this is not
/// recognised as the run's own.
const MOST_BOUND: usize = 65_536;

/// The ports that are remembered, to be named if a server listens there.
const MOST_NAMED_PORTS: usize = 256;

/// How many connections can wait. Each keeps descriptors of the supervisor, which it needs for more.
const MOST_WAITING: usize = 128;

/// Connections that the supervisor makes for the run.
#[derive(Debug, Default)]
pub(crate) struct Connects {
    /// Those that do not come about at once, because the server does not accept.
    waiting: Vec<Waiting>,
    /// The sockets that the run has bound, by number, where the network is the host's.
    bound: Vec<u32>,
    /// The ports that programs have asked for by number, a few.
    pub(super) named_ports: Vec<u16>,
    /// The host's sockets, if they had to be asked about.
    host: Option<SockDiag>,
}

#[derive(Debug)]
struct Waiting {
    /// The call, which has no answer yet.
    id: u64,
    notification: Box<Notification>,
    socket: Taken,
    to: To,
    /// When the process wants an answer, and which (`SO_SNDTIMEO`).
    until: Option<(Instant, i32)>,
}

/// What a socket is connected to.
#[derive(Debug)]
enum To {
    /// The address, as the process gave it.
    Bytes(Vec<u8>),
    /// A socket, by its file.
    File(OwnedFd),
}

impl To {
    fn address(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::File(file) => {
                let family = u16::try_from(libc::AF_UNIX).unwrap_or_default();
                let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
                [&family.to_ne_bytes(), path.as_bytes()].concat()
            }
        }
    }
}

impl Connects {
    /// How long to wait at most before [`Self::retry`].
    pub(crate) fn timeout(&self) -> Option<Duration> {
        (!self.waiting.is_empty()).then_some(Duration::from_millis(10))
    }

    /// Tries the connection again that has waited longest, and forgets those whose callers are gone.
    /// One in a turn: each try can take a millisecond, and other events wait for it.
    pub(crate) fn retry(&mut self, listener: Option<&OwnedFd>) {
        let Some(listener) = listener else { return self.waiting.clear() };
        self.waiting.retain(|one| sys::notification_is_valid(listener.as_fd(), one.id));
        if self.waiting.is_empty() {
            return;
        }
        let one = self.waiting.remove(0);
        let done = if is_established_later(&one.socket) {
            None
        } else {
            finish(sys::connect_briefly(one.socket.as_fd(), &one.to.address()), true)
        };
        let timed_out = || {
            let (_, errno) = one.until.filter(|(at, _)| *at <= Instant::now())?;
            Some(Reply::Errno(errno))
        };
        match done.or_else(timed_out) {
            Some(reply) => super::answer(listener, &one.notification, reply),
            None => self.waiting.push(one),
        }
    }

    /// The sockets of the host.
    pub(super) fn host(&mut self) -> Option<&SockDiag> {
        if self.host.is_none() {
            self.host = SockDiag::here().ok();
        }
        self.host.as_ref()
    }

    /// Notes a port that a program asks for. Zero means any port.
    pub(super) fn names_port(&mut self, port: u16) {
        let room = self.named_ports.len() < MOST_NAMED_PORTS;
        if port != 0 && room && !self.named_ports.contains(&port) {
            self.named_ports.push(port);
        }
    }

    /// Notes that the run is about to bind a socket.
    fn binds(&mut self, socket: &Taken) {
        let inode = rustix::fs::fstat(socket).ok().and_then(|stat| u32::try_from(stat.st_ino).ok());
        if let Some(inode) = inode
            && self.bound.len() < MOST_BOUND
            && !self.bound.contains(&inode)
        {
            self.bound.push(inode);
        }
    }

    /// Makes a connection, and answers the call; later, if it has to wait.
    fn make(&mut self, notification: &Notification, socket: Taken, to: To) -> Judged {
        match finish(sys::connect_briefly(socket.as_fd(), &to.address()), false) {
            Some(Reply::Done) => Judged::Done,
            Some(Reply::Errno(error)) => errno(error),
            // A connection is never continued and gives no descriptor.
            Some(Reply::Continue | Reply::Descriptor(_)) | None => {
                let until = sockopt::socket_timeout(&socket, sockopt::Timeout::Send).ok().flatten();
                let stream = matches!(to, To::File(_));
                let error = if stream { libc::EAGAIN } else { libc::EINPROGRESS };
                if self.waiting.len() >= MOST_WAITING {
                    return errno(error);
                }
                self.waiting.push(Waiting {
                    id: notification.id,
                    notification: Box::new(*notification),
                    socket,
                    to,
                    until: until.map(|time| (Instant::now() + time, error)),
                });
                Judged::Pending
            }
        }
    }
}

/// What a call gets for the result of a try; `None` if it has to wait.
fn finish(done: io::Result<()>, again: bool) -> Option<Reply> {
    match done.err().map(|error| error.raw_os_error().unwrap_or(libc::EACCES)) {
        None => Some(Reply::Done),
        Some(libc::EINTR) => None,
        // It came about between two tries.
        Some(libc::EISCONN) if again => Some(Reply::Done),
        Some(error) => Some(Reply::Errno(error)),
    }
}

/// Whether a connection over TCP is still being made: the kernel says when to look again.
fn is_established_later(socket: &Taken) -> bool {
    let internet =
        matches!(sockopt::socket_domain(socket), Ok(AddressFamily::INET | AddressFamily::INET6));
    let mut polled = [PollFd::new(socket, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    internet && matches!(rustix::event::poll(&mut polled, Some(&now)), Ok(0))
}

impl Watcher<'_> {
    /// What becomes of a `connect`.
    pub(super) fn connect(
        &mut self,
        listener: BorrowedFd<'_>,
        notification: &Notification,
        (socket, address, length): (i32, u64, u32),
    ) -> Judged {
        // At level `full` the network and the sockets are the host's, and there is nothing to hold.
        if self.plan.network == Net::Host {
            return self.look_at(listener, notification, address, length);
        }
        let pid = notification.pid;
        let socket = match take(pid, socket) {
            Ok(socket) => socket,
            Err(rustix::io::Errno::BADF) => return errno(libc::EBADF),
            Err(_) => return errno(libc::EACCES),
        };
        if length > LONGEST {
            return errno(libc::EINVAL);
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        if !bytes.is_empty() {
            match sys::read_memory(pid, address, &mut bytes) {
                Ok(read) if read == bytes.len() => {}
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                    return errno(libc::EACCES);
                }
                _ => return errno(libc::EFAULT),
            }
        }
        // The process may have ended meanwhile, and its ID may have been reused.
        if !sys::notification_is_valid(listener, notification.id) {
            return errno(libc::EINTR);
        }
        match sockopt::socket_domain(&socket) {
            Ok(AddressFamily::UNIX) => self.connect_unix(notification, socket, bytes),
            Ok(AddressFamily::INET | AddressFamily::INET6) => {
                self.connect_internet(notification, socket, bytes)
            }
            // The kernel itself is at number 0; a group could be more than the run may listen to.
            Ok(AddressFamily::NETLINK) if bytes.iter().skip(4).all(|byte| *byte == 0) => {
                self.connects.make(notification, socket, To::Bytes(bytes))
            }
            Ok(_) => errno(libc::EACCES),
            Err(_) => errno(libc::ENOTSOCK),
        }
    }

    /// Notes the socket of a `bind` where nothing else shows whose it is.
    pub(super) fn binds(&mut self, pid: u32, socket: i32) {
        if !self.own_root
            && let Ok(socket) = take(pid, socket)
        {
            self.connects.binds(&socket);
        }
    }

    /// A connection that the kernel decides: only what it attempts is recorded.
    fn look_at(
        &mut self,
        listener: BorrowedFd<'_>,
        notification: &Notification,
        address: u64,
        length: u32,
    ) -> Judged {
        let pid = notification.pid;
        let read = read_address(listener, notification, address, length);
        let Some((Address::Path(path), _)) = read else { return CONTINUE };
        let Ok(named) = absolute(pid, libc::AT_FDCWD, &path) else { return CONTINUE };
        let Some(path) = self.leads(&named, true, pid) else { return CONTINUE };
        if self.plan.allows(&path, false) || path.as_path().symlink_metadata().is_err() {
            return CONTINUE;
        }
        self.refuse(pid, &path)
    }

    fn connect_internet(
        &mut self,
        notification: &Notification,
        socket: Taken,
        bytes: Vec<u8>,
    ) -> Judged {
        match syscalls::address(&bytes) {
            Address::Ip(target) => {
                let ip = target.ip().to_canonical();
                let own = self.own_root && self.is_ours(ip, target.port());
                // A datagram socket that is "connected" sends nothing yet; programs do that to learn
                // their own address.
                let stream = sockopt::socket_type(&socket) != Ok(SocketType::DGRAM);
                if !own && stream {
                    let program = Program::look_up_here(notification.pid);
                    return Judged::Ruled(self.monitor.deny_connection(target, &program));
                }
                if own && stream && ip.is_loopback() {
                    self.looks_for_server(SocketAddr::new(ip, target.port()), notification.pid);
                }
            }
            // Disconnects.
            Address::Unnamed => {}
            _ if self.own_root => {}
            _ => return errno(libc::EINVAL),
        }
        // Where Landlock decides about connections, it would not see this one.
        if !self.own_root && !matches!(syscalls::address(&bytes), Address::Unnamed) {
            return errno(libc::EACCES);
        }
        self.connects.make(notification, socket, To::Bytes(bytes))
    }

    fn connect_unix(
        &mut self,
        notification: &Notification,
        socket: Taken,
        bytes: Vec<u8>,
    ) -> Judged {
        match syscalls::address(&bytes) {
            Address::Path(_) if bytes.len() > LONGEST_UNIX => errno(libc::EINVAL),
            Address::Path(path) => {
                let pid = notification.pid;
                let named = match absolute(pid, libc::AT_FDCWD, &path) {
                    Ok(named) => named,
                    Err(error) => return errno(error),
                };
                let Some(path) = self.leads(&named, true, pid) else {
                    return errno(libc::EACCES);
                };
                match self.find_socket(&path, pid) {
                    Ok(file) => self.connects.make(notification, socket, To::File(file)),
                    Err(judged) => judged,
                }
            }
            // Names of the run's own network. Elsewhere Landlock keeps them inside, and would not
            // see this connection.
            Address::Abstract(name) if !self.own_root && !self.is_bound(&name) => {
                errno(libc::EPERM)
            }
            _ => self.connects.make(notification, socket, To::Bytes(bytes)),
        }
    }

    /// The file of a socket that may be connected to, or what the call gets instead.
    fn find_socket(&mut self, path: &AbsPath, pid: u32) -> Result<OwnedFd, Judged> {
        if !self.plan.allows(path, false) {
            return Err(match path.as_path().symlink_metadata() {
                Ok(_) => self.refuse(pid, path),
                Err(_) => errno(libc::ENOENT),
            });
        }
        let as_call = |error: io::Error| errno(error.raw_os_error().unwrap_or(libc::EACCES));
        let (file, private) = self.open_socket(path).map_err(as_call)?;
        let stat = rustix::fs::fstat(&file).map_err(|error| errno(error.raw_os_error()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(errno(libc::ECONNREFUSED));
        }
        if !root_may_write(&stat) {
            return Err(errno(libc::EACCES));
        }
        let granted = self.plan.unix_sockets.iter().any(|granted| path.is_within(granted));
        if private || granted || self.own(&file, &stat) == Some(Own::Receives) {
            return Ok(file);
        }
        // Servers that ended leave their files behind, and programs try whether that is so.
        Err(match probe(&file) {
            Some(rustix::io::Errno::CONNREFUSED) => errno(libc::ECONNREFUSED),
            Some(rustix::io::Errno::ACCESS) => errno(libc::EACCES),
            // A server of the run has a name before it listens. It may have begun since the first look.
            _ => match self.own(&file, &stat) {
                Some(Own::Receives) => return Ok(file),
                Some(Own::Idle) => errno(libc::ECONNREFUSED),
                None => self.refuse(pid, path),
            },
        })
    }

    /// What is at a path, as the run sees it, and whether the host cannot have put it there. No
    /// lookup may reach the tripwire, which this thread serves.
    fn open_socket(&self, path: &AbsPath) -> io::Result<(OwnedFd, bool)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let piece = self.plan.piece(path).filter(|_| self.own_root);
        if let Some(piece) = piece
            && matches!(piece.kind, Kind::Scratch | Kind::Overlay)
        {
            let view = self.views.tree(&piece.path).ok_or(io::ErrorKind::PermissionDenied)?;
            let below = path.as_path().strip_prefix(&piece.path).map_err(io::Error::other)?;
            let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            return Ok((rustix::fs::openat2(view, below, flags, Mode::empty(), how)?, true));
        }
        if !self.plan.shows(path) {
            return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED));
        }
        Ok((open_without_links(path.as_path(), flags)?, false))
    }

    /// Whether a process of the run has bound the socket, by one look at what the kernel lists.
    fn own(&mut self, file: &OwnedFd, stat: &Stat) -> Option<Own> {
        let sockets = self.sockets();
        let at = |device: u32| {
            let inode = stat.st_ino.to_le_bytes();
            let [a, b, c, d, ..] = inode;
            let place = Some((device, u32::from_le_bytes([a, b, c, d])));
            let mut bound = sockets.iter().filter(|socket| socket.file == place);
            let own = |socket: &UnixSocket| match socket {
                UnixSocket { receives: true, .. } => Some(Own::Receives),
                UnixSocket { idle: true, .. } => Some(Own::Idle),
                _ => None,
            };
            bound.find_map(own)
        };
        let device = rustix::fs::major(stat.st_dev) << 20 | rustix::fs::minor(stat.st_dev);
        // A subvolume of btrfs shows another device than its file system has.
        at(device).or_else(|| file_system(file).and_then(at))
    }

    /// Whether the run has bound an abstract name.
    fn is_bound(&mut self, name: &[u8]) -> bool {
        self.sockets().iter().any(|socket| socket.name.strip_prefix(b"\0") == Some(name))
    }

    /// The sockets of the run that have an address.
    fn sockets(&mut self) -> Vec<UnixSocket> {
        if self.own_root {
            let all = self.network.map(SockDiag::unix_sockets);
            return all.and_then(Result::ok).unwrap_or_default();
        }
        let all = self.connects.host().map(SockDiag::unix_sockets);
        let mut all = all.and_then(Result::ok).unwrap_or_default();
        all.retain(|socket| self.connects.bound.contains(&socket.inode));
        all
    }

    fn refuse(&mut self, pid: u32, path: &AbsPath) -> Judged {
        let operation = Operation::Connect;
        let attempt = Attempt { operation, path: path.as_path().to_path_buf(), pid };
        match self.rule(Source::Syscall, &attempt) {
            Judged::Ruled(Ruling::Continue) => errno(libc::EACCES),
            ruled => ruled,
        }
    }
}

/// A socket that a process of the run has bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    /// Something can be sent to it.
    Receives,
    /// It does not listen yet.
    Idle,
}

/// Root outside could connect to any socket. Inside it has no capabilities, so that it is an owner
/// like any other.
fn root_may_write(stat: &Stat) -> bool {
    if !rustix::process::geteuid().is_root() {
        return true;
    }
    let bit = match (stat.st_uid, stat.st_gid) {
        (0, _) => 0o200,
        (_, 0) => 0o020,
        _ => 0o002,
    };
    stat.st_mode & bit != 0
}

/// Why a datagram could not be sent to a socket. The server does not notice: a stream does not take
/// datagrams, and one that takes them gets none.
fn probe(file: &OwnedFd) -> Option<rustix::io::Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let connect = || {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        let address = rustix::net::SocketAddrUnix::new(OsStr::from_bytes(path.as_bytes()))?;
        rustix::net::connect(&socket, &address)
    };
    connect().err()
}

/// The device of the file system that a file is on, as the kernel knows it.
fn file_system(file: &OwnedFd) -> Option<u32> {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let id = stat.stx_mnt_id.to_string();
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(&id))?;
    let (major, minor) = line.split(' ').nth(2)?.split_once(':')?;
    Some(major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?)
}
