//! Watched calls: what was tried is read from the waiting process, told, and left to the kernel.
//!
//! A process can change its memory while we read it. So going on is never a decision of ours: it
//! only hands the call to the kernel, whose mounts and rules decide. What we answer ourselves is
//! always a refusal, save for a file that was granted before it existed.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use model::{AbsPath, Kind, Net, Piece, Plan};

use crate::calls::{self, Address, Call, Described, PathArgument};
use crate::lock::Lock;
use crate::program::Program;
use crate::sys::{self, Notification, Reply};
use crate::warden::{Ruling, Warden};
use crate::{Attempt, Operation};

/// What a watched call gets.
pub(crate) enum Judged {
    /// This answer.
    Reply(Reply),
    /// None: the run must end.
    Stop,
    /// A granted file must be made first.
    Make(AbsPath, Operation),
    /// A file that nobody else sees.
    Lend,
}

/// Judges watched calls.
pub(crate) struct Watcher<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) warden: &'a mut dyn Warden,
    pub(crate) rehearsal: bool,
    /// Whether reads are watched too, because no tripwire sees them.
    pub(crate) reads: bool,
    /// Whether root directory and loopback are the run's own, and not the host's.
    pub(crate) own_root: bool,
}

/// The longest path that the kernel takes.
const PATH_MAX: usize = 4096;

impl Watcher<'_> {
    pub(crate) fn judge(
        &mut self,
        listener: BorrowedFd<'_>,
        notification: &Notification,
    ) -> Judged {
        let go_on = Judged::Reply(Reply::Continue);
        if self.rehearsal {
            return go_on;
        }
        let pid = notification.pid;
        let data = &notification.data;
        let Some(described) = calls::describe(i64::from(data.nr), data.args) else { return go_on };
        let call = match described {
            Described::Path(call) => call,
            Described::OpenHow { directory, pointer, how, size } => {
                let mut bytes = [0; 24];
                let length = bytes.len().min(usize::try_from(size).unwrap_or(0));
                let Some(part) = bytes.get_mut(..length) else { return go_on };
                if sys::read_memory(pid, how, part).is_err() {
                    return go_on;
                }
                // The filter refuses this to all other calls; here it cannot see it.
                if calls::makes_set_id(&bytes) {
                    return Judged::Reply(Reply::Errno(libc::EPERM));
                }
                match calls::opened(directory, pointer, &bytes) {
                    Some(call) => call,
                    None => return go_on,
                }
            }
            Described::Execute { path, .. } => {
                Call { operation: Operation::Execute, path, second: None }
            }
            Described::Connect { socket, address, length } => {
                let Some(target) = read_address(listener, notification, address, length) else {
                    return go_on;
                };
                return self.connect(pid, socket, target);
            }
            Described::Bind { address, length } => {
                let Some(Address::Path(path)) =
                    read_address(listener, notification, address, length)
                else {
                    return go_on;
                };
                let Some(named) = absolute(pid, libc::AT_FDCWD, &path) else { return go_on };
                return self.path(Operation::MakeNode, &named, false, pid);
            }
        };
        if call.operation == Operation::Read && !self.reads {
            return go_on;
        }
        if self.links_across(&call, pid) {
            return go_on;
        }
        let lock = self.lock(&call, pid);
        for argument in call.paths() {
            let Some(named) = named(pid, argument) else { continue };
            // The process may have ended, and its number gone to another, while we looked.
            if !sys::notification_is_valid(listener, notification.id) {
                return go_on;
            }
            if let Some(lock) = &lock
                && lock.changes_nothing()
            {
                return Judged::Reply(lock.remove());
            }
            match self.path(call.operation, &named, argument.follow, pid) {
                Judged::Reply(Reply::Continue) => {}
                other => {
                    // Nobody else would take it away, and it would keep everybody out.
                    if let (Some(lock), Judged::Stop) = (lock, &other) {
                        lock.remove();
                    }
                    return other;
                }
            }
        }
        go_on
    }

    /// Whether a link would lead from one mount to another, which no kernel makes: `git clone` tries
    /// before it copies.
    fn links_across(&mut self, call: &Call, pid: u32) -> bool {
        let second = call.second.filter(|_| self.own_root && call.operation == Operation::Link);
        let Some(second) = second else { return false };
        let mut mount = |argument: PathArgument| {
            let path = self.leads(&named(pid, argument)?, argument.follow)?;
            let open = self.plan.allows(&path, true);
            self.plan.piece(&path).filter(|_| open).map(|piece| piece.path.clone())
        };
        matches!((mount(call.path), mount(second)), (Some(from), Some(to)) if from != to)
    }

    /// The lock file that a rename would put in the place of a file that cannot be written.
    fn lock(&mut self, call: &Call, pid: u32) -> Option<Lock> {
        let second = call.second.filter(|_| call.operation == Operation::Rename)?;
        let (from, to) = (named(pid, call.path)?, named(pid, second)?);
        let (from, to) = (self.leads(&from, false)?, self.leads(&to, false)?);
        let held = self.plan.allows(&to, false) && !self.plan.allows(&to, true);
        let ours = self.plan.allows(&from, true) && self.is_hosts(&from);
        (held && ours).then(|| Lock::of(&from, &to)).flatten()
    }

    fn path(&mut self, operation: Operation, named: &Path, follow: bool, pid: u32) -> Judged {
        let go_on = Judged::Reply(Reply::Continue);
        let Some(path) = self.leads(named, follow) else { return go_on };
        if path.as_path().starts_with("/proc") || path.as_path().starts_with("/dev") {
            return go_on;
        }
        let attempt = Attempt { operation, path: path.as_path().to_path_buf(), pid };
        let writes = operation.writes();
        if self.plan.allows(&path, writes) {
            if self.plan.late.contains(&path) && !path.as_path().exists() {
                let makes = matches!(operation, Operation::Create | Operation::MakeDirectory);
                return if makes { Judged::Make(path, operation) } else { go_on };
            }
            let guarded = writes && self.is_hosts(&path);
            if guarded
                && (self.moves_pinned(operation, &path) || self.warden.is_guarded(&path, operation))
            {
                return self.refuse(&attempt);
            }
            return go_on;
        }
        if self.is_on_the_way(operation, &path) {
            return go_on;
        }
        if self.warden.is_mere_lock(&path) {
            let taken = path.as_path().symlink_metadata().is_ok();
            match operation {
                Operation::Create if taken => return Judged::Reply(Reply::Errno(libc::EEXIST)),
                Operation::Create => return Judged::Lend,
                Operation::Remove if !taken => return Judged::Reply(Reply::Done),
                _ => {}
            }
        }
        // Whether or not a write could have worked, it was tried; a read of nothing is nothing.
        let exists = path.as_path().symlink_metadata().is_ok();
        let creates = matches!(
            operation,
            Operation::Create
                | Operation::MakeDirectory
                | Operation::MakeNode
                | Operation::SymbolicLink
                | Operation::Rename
                | Operation::Link
        );
        if !exists && (!creates || !path.parent().as_path().is_dir()) {
            return go_on;
        }
        if exists && operation == Operation::MakeDirectory {
            // `mkdir -p` makes what is there; it gets the answer that it expects.
            return Judged::Reply(Reply::Errno(libc::EEXIST));
        }
        if self.warden.is_habit(&path, operation) {
            self.warden.probed(&attempt, &Program::look_up_here(pid));
            let errno = if writes { libc::EACCES } else { libc::ENOENT };
            return Judged::Reply(Reply::Errno(errno));
        }
        self.refuse(&attempt)
    }

    /// Whether an address leads to the run's own network or to one of its doors.
    fn is_ours(&self, ip: std::net::IpAddr, port: u16) -> bool {
        let doors = &self.plan.doors;
        let made_up = |ip: std::net::Ipv4Addr| matches!(ip.octets(), [198, 18 | 19, ..]);
        match ip {
            _ if ip.is_loopback() || ip.is_unspecified() => true,
            // What is granted is granted on some ports and not on others.
            std::net::IpAddr::V4(ip) => {
                (made_up(ip) || doors.addresses.contains(&ip)) && doors.ports.contains(&port)
            }
            std::net::IpAddr::V6(_) => false,
        }
    }

    fn refuse(&mut self, attempt: &Attempt) -> Judged {
        let program = Program::look_up_here(attempt.pid);
        match self.warden.refused(attempt, &program) {
            Ruling::Refuse(errno) => Judged::Reply(Reply::Errno(errno)),
            Ruling::Stop => Judged::Stop,
        }
    }

    /// Whether this does no more than walk. The run's own root shows nothing but ways; the host's
    /// shows everything else too.
    fn is_on_the_way(&self, operation: Operation, path: &AbsPath) -> bool {
        match operation {
            // A place, and nothing of what is in it.
            Operation::Look => true,
            Operation::List | Operation::Read => self.own_root && self.plan.is_way(path),
            _ => false,
        }
    }

    /// Whether this moves a directory that must stay where it is. Where there are mounts, they hold
    /// it.
    fn moves_pinned(&self, operation: Operation, path: &AbsPath) -> bool {
        let pinned = |piece: &Piece| piece.kind == Kind::Pinned && piece.path == *path;
        operation == Operation::Rename && !self.own_root && self.plan.pieces.iter().any(pinned)
    }

    /// Whether a path is the host's, rather than private to the run.
    fn is_hosts(&self, path: &AbsPath) -> bool {
        let piece = self.plan.piece(path);
        piece.is_none_or(|piece| matches!(piece.kind, Kind::Write | Kind::Pinned | Kind::Read))
    }

    /// Where a path leads, links followed as the call would.
    fn leads(&mut self, named: &Path, follow: bool) -> Option<AbsPath> {
        let lexical = AbsPath::lexical(named).ok()?;
        // What is private to the run cannot be looked at from here.
        if self.plan.piece(&lexical).is_some_and(|piece| {
            matches!(piece.kind, Kind::Scratch | Kind::Overlay | Kind::Terminals | Kind::Device)
        }) {
            return Some(lexical);
        }
        if follow {
            return self.warden.resolve(named);
        }
        let name = named.file_name()?;
        Some(self.warden.resolve(named.parent()?)?.join(name))
    }

    fn connect(&mut self, pid: u32, socket: i32, target: Address) -> Judged {
        let go_on = Judged::Reply(Reply::Continue);
        match target {
            Address::Path(path) => {
                let Some(named) = absolute(pid, libc::AT_FDCWD, &path) else { return go_on };
                let Some(path) = self.leads(&named, true) else { return go_on };
                if self.plan.allows(&path, false) || path.as_path().symlink_metadata().is_err() {
                    return go_on;
                }
                let operation = Operation::Connect;
                let attempt = Attempt { operation, path: path.as_path().to_path_buf(), pid };
                if self.warden.is_habit(&path, operation) {
                    self.warden.probed(&attempt, &Program::look_up_here(pid));
                    return Judged::Reply(Reply::Errno(libc::ENOENT));
                }
                self.refuse(&attempt)
            }
            Address::Ip(target) if self.plan.network == Net::Own => {
                let ip = target.ip().to_canonical();
                let own = self.own_root && self.is_ours(ip, target.port());
                if own || !is_stream(pid, socket) {
                    return go_on;
                }
                match self.warden.connected(target, &Program::look_up_here(pid)) {
                    Ruling::Refuse(errno) => Judged::Reply(Reply::Errno(errno)),
                    Ruling::Stop => Judged::Stop,
                }
            }
            _ => go_on,
        }
    }
}

/// The address that a waiting call names.
fn read_address(
    listener: BorrowedFd<'_>,
    notification: &Notification,
    address: u64,
    length: u32,
) -> Option<Address> {
    let mut bytes = [0; 128];
    let length = bytes.len().min(length as usize);
    let part = bytes.get_mut(..length)?;
    sys::read_memory(notification.pid, address, part).ok()?;
    sys::notification_is_valid(listener, notification.id).then(|| calls::address(part))
}

/// Whether a process's socket is for a stream. A datagram socket that is "connected" sends nothing
/// yet; programs do that to learn their own address.
fn is_stream(pid: u32, socket: i32) -> bool {
    let stolen = || -> Option<OwnedFd> {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed())?;
        let process =
            rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
        let flags = rustix::process::PidfdGetfdFlags::empty();
        rustix::process::pidfd_getfd(process, socket, flags).ok()
    };
    let kind = stolen().map(|socket| rustix::net::sockopt::socket_type(&socket));
    !matches!(kind, Some(Ok(kind)) if kind != rustix::net::SocketType::STREAM)
}

/// The path that an argument names, made absolute, links not yet followed.
fn named(pid: u32, argument: PathArgument) -> Option<PathBuf> {
    let path = match argument.pointer {
        0 if argument.empty_means_directory => PathBuf::new(),
        pointer => read_path(pid, pointer)?,
    };
    if path.as_os_str().is_empty() {
        return argument
            .empty_means_directory
            .then(|| directory(pid, argument.directory))
            .flatten();
    }
    if argument.rooted {
        let root = directory(pid, argument.directory)?;
        let below = path.strip_prefix("/").unwrap_or(&path).to_path_buf();
        return Some(root.join(below));
    }
    absolute(pid, argument.directory, &path)
}

fn absolute(pid: u32, from: i32, path: &Path) -> Option<PathBuf> {
    if path.is_absolute() {
        return Some(path.to_path_buf());
    }
    Some(directory(pid, from)?.join(path))
}

/// The path of a process's descriptor, or of its working directory.
fn directory(pid: u32, descriptor: i32) -> Option<PathBuf> {
    let link = match descriptor {
        libc::AT_FDCWD => format!("/proc/{pid}/cwd"),
        descriptor => format!("/proc/{pid}/fd/{descriptor}"),
    };
    let path = std::fs::read_link(link).ok()?;
    path.is_absolute().then_some(path)
}

/// A string in the memory of a process.
fn read_path(pid: u32, pointer: u64) -> Option<PathBuf> {
    const PAGE: u64 = 4096;
    let mut path = Vec::new();
    let mut at = pointer;
    while path.len() < PATH_MAX {
        // A page at a time: the next one may not be there.
        let length = usize::try_from(PAGE - at % PAGE).ok()?;
        let mut part = vec![0; length];
        let read = sys::read_memory(pid, at, &mut part).ok()?;
        let part = part.get(..read)?;
        match part.iter().position(|byte| *byte == 0) {
            Some(end) => {
                path.extend_from_slice(part.get(..end)?);
                return Some(PathBuf::from(OsString::from_vec(path)));
            }
            None => path.extend_from_slice(part),
        }
        at += PAGE - at % PAGE;
    }
    None
}

/// Answers an open with a file that nobody else sees.
pub(crate) fn lend(listener: &OwnedFd, notification: &Notification) {
    let file = rustix::fs::memfd_create("lock", rustix::fs::MemfdFlags::CLOEXEC);
    let lent = file
        .map_err(std::io::Error::from)
        .and_then(|file| sys::lend(listener.as_fd(), notification.id, file.as_fd()));
    if lent.is_err() {
        answer(listener, notification, Reply::Errno(libc::EACCES));
    }
}

/// Answers a waiting call. It may be gone, which is no matter.
pub(crate) fn answer(listener: &OwnedFd, notification: &Notification, reply: Reply) {
    let done = sys::answer_notification(listener.as_fd(), notification.id, reply);
    // A call that gets no answer would wait for ever.
    if done.is_err() {
        let refusal = Reply::Errno(libc::EACCES);
        let _ = sys::answer_notification(listener.as_fd(), notification.id, refusal);
    }
}
