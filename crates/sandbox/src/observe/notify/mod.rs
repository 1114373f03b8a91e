//! Seccomp notifications: what a call tries is read from the waiting process and ruled on.
//!
//! A process can change its memory while it is read. So a call that changes something is never handed
//! back to the kernel, which would read the arguments again: it is read once, judged, and performed by
//! the supervisor on what was judged ([`crate::supervisor::perform`]), and so are connections. Reads are
//! handed back ([`Ruling::Continue`]), unless every open must be decided; mounts and Landlock rules
//! decide about them.

mod connect;
mod divert;
mod links;
mod listen;
mod place;
mod read;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use model::{AbsPath, Kind, Piece, Plan};
use rustix::fs::{FileType, OFlags};

pub(crate) use self::connect::Connects;
use self::links::Links;
pub(crate) use self::place::{Opened, Place};
pub(crate) use self::read::{Caller, path as read_path};
use self::read::{absolute, read_address};
use crate::child::stdio;
use crate::monitor::{self, Monitor, Ruling, Source};
use crate::network::sock_diag::SockDiag;
use crate::observe::program::Program;
use crate::observe::syscalls::{self, Act, Address, Call, Described, PathArgument};
use crate::supervisor::diverted::Diverted;
use crate::supervisor::drafts::Drafts;
use crate::supervisor::git_lock::GitLock;
use crate::supervisor::perform::Performance;
use crate::supervisor::views::Views;
use crate::sys::{self, CloseOnExec, Notification, Reply};
use crate::{Attempt, Operation};

/// What an intercepted call gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// This ruling.
    Ruled(Ruling),
    /// The supervisor makes the call.
    Perform(Box<Performance>),
    /// The same for `bind`, to a path: the address and the socket.
    Bind(Caller, i32, Vec<u8>),
    /// An open that is allowed because a standard descriptor is open on the same file.
    Inherited,
    /// Success, without the call.
    Done,
    /// An open for reading that the supervisor performs: of what, and with which flags.
    Read(PathArgument, u32),
    /// Something granted must be created first: what, how, and with which flags it is opened.
    Create(AbsPath, Operation, u32),
    /// A private file that no other process sees.
    Lend,
    /// The same, for the next version of a file.
    Draft(AbsPath),
    /// A private file in place of one that cannot be created.
    Divert(AbsPath),
    /// The same, to be opened again with these flags.
    DivertedAgain(AbsPath, u32),
    /// Success, once the draft has become the content of the file it is for.
    Publish(AbsPath, AbsPath),
    /// Nothing yet: [`Connects`] answers the call.
    Pending,
}

const CONTINUE: Judged = Judged::Ruled(Ruling::Continue);

fn errno(errno: i32) -> Judged {
    Judged::Ruled(Ruling::Errno(errno))
}

/// Judges intercepted calls.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the run")]
pub(crate) struct Watcher<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) monitor: &'a mut dyn Monitor,
    pub(crate) self_test: bool,
    /// Whether reads are judged too, because no tripwire sees them.
    pub(crate) reads: bool,
    /// Whether opens for reading are performed by the supervisor.
    pub(crate) performs_reads: bool,
    /// Whether the root directory and the loopback interface are the run's own.
    pub(crate) own_root: bool,
    /// The run's `/proc`.
    pub(crate) processes: Option<&'a OwnedFd>,
    /// The file system as the run sees it.
    pub(crate) views: &'a Views,
    pub(crate) drafts: &'a mut Drafts,
    pub(crate) diverted: &'a mut Diverted,
    pub(crate) connects: &'a mut Connects,
    /// The sockets of the run's own network.
    pub(crate) network: Option<&'a SockDiag>,
}

impl Watcher<'_> {
    pub(crate) fn judge(
        &mut self,
        listener: BorrowedFd<'_>,
        notification: &Notification,
    ) -> Judged {
        if self.self_test {
            return CONTINUE;
        }
        let pid = notification.pid;
        let data = &notification.data;
        let Some(described) = syscalls::describe(i64::from(data.nr), data.args) else {
            return CONTINUE;
        };
        let call = match described {
            Described::Path(call) if call.operation.writes() => {
                return self.change(listener, notification, call);
            }
            Described::Path(call) => call,
            Described::Execute { path, .. } => {
                Call { operation: Operation::Execute, path, second: None, flags: 0 }
            }
            Described::Connect { socket, address, length } => {
                return self.connect(listener, notification, (socket, address, length));
            }
            Described::Listen { socket } => {
                self.listens(notification.pid, socket);
                return CONTINUE;
            }
            Described::Bind { socket, address, length } => {
                return self.bind(listener, notification, socket, (address, length));
            }
        };
        if call.operation == Operation::Read && !self.reads {
            return self.perform(&call);
        }
        let first = self.argument(call.path, pid);
        // The process may have ended meanwhile, and its ID may have been reused.
        if !sys::notification_is_valid(listener, notification.id) {
            return CONTINUE;
        }
        match self.call(&call, first.as_ref(), None, pid) {
            CONTINUE => self.perform(&call),
            other => other,
        }
    }

    /// What becomes of a call that reads and that nothing speaks against.
    fn perform(&self, call: &Call) -> Judged {
        if self.performs_reads && call.operation == Operation::Read {
            return Judged::Read(call.path, call.flags);
        }
        CONTINUE
    }

    /// Judges a call that changes something.
    fn change(
        &mut self,
        listener: BorrowedFd<'_>,
        notification: &Notification,
        call: Call,
    ) -> Judged {
        let Notification { pid, data, .. } = *notification;
        let Some(act) = syscalls::act(i64::from(data.nr), data.args) else {
            return errno(libc::ENOSYS);
        };
        if matches!(act, Act::Truncate { length: ..0 }) {
            return errno(libc::EINVAL);
        }
        let caller = Caller::new(pid);
        let read = |watcher: &mut Self| -> Result<_, i32> {
            let arguments = read::arguments(pid, act)?;
            let first = watcher.place(call.path, act, false, &caller)?;
            let second = call.second.map(|second| watcher.place(second, act, true, &caller));
            Ok((first, second.transpose()?, arguments))
        };
        let (mut first, second, arguments) = match read(self) {
            Ok(read) => read,
            Err(error) => return errno(error),
        };
        // The process may have ended meanwhile, and its ID may have been reused.
        if !sys::notification_is_valid(listener, notification.id) {
            return errno(libc::EACCES);
        }
        let second_path = second.as_ref().and_then(Place::path);
        let inherited = match self.call(&call, first.path(), second_path, pid) {
            CONTINUE => false,
            Judged::Inherited => {
                if let (Place::At { path, .. }, Act::Open { .. }) = (&first, act) {
                    let Some(opened) = Opened::inherited(path) else { return errno(libc::EACCES) };
                    first = Place::Open(opened);
                }
                true
            }
            other => return other,
        };
        Judged::Perform(Box::new(Performance { act, first, second, arguments, inherited, caller }))
    }

    /// Judges a `bind`. One to a path leaves a socket there and is performed; of any other kind it
    /// is handed back, because Landlock lets the run create no socket file.
    fn bind(
        &mut self,
        listener: BorrowedFd<'_>,
        notification: &Notification,
        socket: i32,
        (address, length): (u64, u32),
    ) -> Judged {
        let pid = notification.pid;
        self.binds(pid, socket);
        let Some((address, bytes)) = read_address(listener, notification, address, length) else {
            return CONTINUE;
        };
        if let Address::Ip(address) = address {
            self.connects.names_port(address.port());
        }
        let Address::Path(path) = address else { return CONTINUE };
        let caller = Caller::new(pid);
        let named = match absolute(pid, libc::AT_FDCWD, &path) {
            Ok(named) => named,
            Err(error) => return errno(error),
        };
        let Some(path) = self.leads(&named, false, pid) else { return errno(libc::EACCES) };
        match self.path(Operation::MakeNode, &path, pid, 0) {
            CONTINUE => Judged::Bind(caller, socket, bytes),
            other => other,
        }
    }

    /// Judges a call by where its paths lead, as far as that is known.
    fn call(
        &mut self,
        call: &Call,
        first: Option<&AbsPath>,
        second: Option<&AbsPath>,
        pid: u32,
    ) -> Judged {
        if self.links_across(call.operation, first, second) {
            return errno(libc::EXDEV);
        }
        if let Some(judged) = first.and_then(|first| self.divert(call, first, second)) {
            return judged;
        }
        if let Some(judged) = first.and_then(|first| self.draft(call, first, second, pid)) {
            return judged;
        }
        let lock = self.lock(call.operation, first, second);
        if let Some(lock) = &lock
            && lock.changes_nothing()
        {
            return match lock.remove() {
                Ok(()) => Judged::Done,
                Err(error) => errno(error.raw_os_error().unwrap_or(libc::EIO)),
            };
        }
        if let (Some(lock), Some(second)) = (&lock, second)
            && lock.record(|old, new| self.monitor.records(second, old, new)).unwrap_or(false)
        {
            return Judged::Done;
        }
        if let Some((first, second)) = first.zip(second)
            && self.brings_link(call, first, second)
        {
            let path = second.as_path().to_path_buf();
            return self.rule(Source::Guarded, &Attempt { operation: call.operation, path, pid });
        }
        for path in first.into_iter().chain(second) {
            match self.path(call.operation, path, pid, call.flags) {
                CONTINUE => {}
                other => {
                    // The killed git would leave the lock behind, and block every later one.
                    if let (Some(lock), Judged::Ruled(Ruling::Stop)) = (lock, &other) {
                        let _ = lock.remove();
                    }
                    return other;
                }
            }
        }
        if self.moves_a_mount(call, first, second) {
            return errno(libc::EBUSY);
        }
        if let Some((first, second)) = first.zip(second)
            && call.operation == Operation::Rename
        {
            let exchanges = call.flags & libc::RENAME_EXCHANGE != 0;
            let noted = self.monitor.moves(first, second)
                && (!exchanges || self.monitor.moves(second, first));
            if !noted {
                return errno(libc::EACCES);
            }
        }
        CONTINUE
    }

    /// Whether this moves a link, or a directory that may hold some, to where none may come. Nothing
    /// of the run can put another thing in place before the call is made.
    fn brings_link(&self, call: &Call, first: &AbsPath, second: &AbsPath) -> bool {
        let comes = |from: &AbsPath, to: &AbsPath| {
            let found = || from.as_path().symlink_metadata();
            self.plan.allows(to, true)
                && self.monitor.keeps_links_out(to)
                && found().is_ok_and(|found| {
                    let inside = found.is_dir() && self.monitor.keeps_links_out(from);
                    found.is_symlink() || (found.is_dir() && !inside)
                })
        };
        let exchanges = call.flags & libc::RENAME_EXCHANGE != 0;
        matches!(call.operation, Operation::Rename | Operation::Link)
            && (comes(first, second) || (exchanges && comes(second, first)))
    }

    /// Whether a hard link would cross mounts, which the kernel denies: `git clone` tries that before
    /// it copies.
    fn links_across(
        &self,
        operation: Operation,
        first: Option<&AbsPath>,
        second: Option<&AbsPath>,
    ) -> bool {
        let mount = |path: &AbsPath, write| {
            let open = self.plan.allows(path, write);
            self.plan.piece(path).filter(|_| open).map(|piece| &piece.path)
        };
        let from = first.and_then(|path| mount(path, false));
        let to = second.and_then(|path| mount(path, true));
        self.own_root && operation == Operation::Link && from.zip(to).is_some_and(|(a, b)| a != b)
    }

    /// Whether this renames or removes a place where something is mounted, which the kernel denies
    /// as long as it still is.
    fn moves_a_mount(
        &self,
        call: &Call,
        first: Option<&AbsPath>,
        second: Option<&AbsPath>,
    ) -> bool {
        let mounted = |path: &AbsPath| {
            let is = |piece: &Piece| piece.path == *path && piece.kind == Kind::Pinned;
            self.plan.pieces.iter().any(is) && self.plan.allows(path, true)
        };
        self.own_root
            && matches!(call.operation, Operation::Rename | Operation::Remove)
            && first.into_iter().chain(second).any(mounted)
    }

    /// What becomes of a call on a draft, if it is one.
    fn draft(
        &mut self,
        call: &Call,
        draft: &AbsPath,
        to: Option<&AbsPath>,
        pid: u32,
    ) -> Option<Judged> {
        if !call.operation.writes() {
            return None;
        }
        if !self.drafts.has(draft) {
            let begins = call.operation == Operation::Create
                && call.flags & libc::O_CREAT.cast_unsigned() != 0
                && !self.plan.allows(draft, true)
                && self.monitor.is_draft(draft);
            return begins.then(|| Judged::Draft(draft.clone()));
        }
        let exclusive = call.flags & libc::O_EXCL.cast_unsigned() != 0;
        Some(match call.operation {
            Operation::Create if exclusive => errno(libc::EEXIST),
            Operation::Create => Judged::Draft(draft.clone()),
            Operation::Rename => {
                let to = to?;
                // `mv` first tries RENAME_NOREPLACE, and would look for the draft if that failed.
                if call.flags & !libc::RENAME_NOREPLACE != 0 {
                    return Some(errno(libc::EINVAL));
                }
                // The supervisor writes it, on the host: only into a single file that was granted,
                // and into nothing else that the run may write.
                let single = self.plan.single_files().any(|file| file == to);
                if single && !self.monitor.is_guarded(to, Operation::Rename) {
                    Judged::Publish(draft.clone(), to.clone())
                } else if self.plan.allows(to, true) {
                    errno(libc::EXDEV)
                } else {
                    self.path(Operation::Rename, to, pid, 0)
                }
            }
            Operation::Remove => {
                self.drafts.forget(draft);
                Judged::Done
            }
            Operation::ChangeMode | Operation::ChangeTimes | Operation::ChangeOwner => Judged::Done,
            _ => errno(libc::EACCES),
        })
    }

    /// The lock file of git that a rename would put in place of a file that must not be written.
    fn lock(
        &self,
        operation: Operation,
        from: Option<&AbsPath>,
        to: Option<&AbsPath>,
    ) -> Option<GitLock> {
        let (from, to) = from.zip(to).filter(|_| operation == Operation::Rename)?;
        let held = self.plan.allows(to, false) && !self.plan.allows(to, true);
        let ours = self.plan.allows(from, true) && self.is_hosts(from);
        (held && ours).then(|| GitLock::of(from, to)).flatten()
    }

    /// What becomes of an operation on one path.
    fn path(&mut self, operation: Operation, path: &AbsPath, pid: u32, flags: u32) -> Judged {
        let writes = operation.writes();
        if path.as_path().starts_with("/proc") || path.as_path().starts_with("/dev") {
            return if writes { self.special(operation, path) } else { CONTINUE };
        }
        let attempt = Attempt { operation, path: path.as_path().to_path_buf(), pid };
        if self.plan.allows(path, writes) {
            if self.plan.granted_later.contains(path) && !path.as_path().exists() {
                let makes = matches!(operation, Operation::Create | Operation::MakeDirectory);
                return if makes {
                    Judged::Create(path.clone(), operation, flags)
                } else if writes {
                    errno(libc::ENOENT)
                } else {
                    CONTINUE
                };
            }
            let guarded = writes && self.is_hosts(path);
            if guarded
                && (self.moves_pinned(operation, path) || self.monitor.is_guarded(path, operation))
            {
                return self.rule(Source::Guarded, &attempt);
            }
            return CONTINUE;
        }
        if self.views.private(path).is_some() && self.monitor.may_be_private(path) {
            // A link cannot be mounted.
            let links = operation == Operation::SymbolicLink && self.is_top_of_private(path);
            return if links { errno(libc::EPERM) } else { CONTINUE };
        }
        if self.is_on_the_way(operation, path) {
            return CONTINUE;
        }
        if self.monitor.is_lock_only(path) {
            let taken = path.as_path().symlink_metadata().is_ok();
            match operation {
                Operation::Create if taken => return errno(libc::EEXIST),
                Operation::Create => return Judged::Lend,
                Operation::Remove if !taken => return Judged::Done,
                _ => {}
            }
        }
        // A write is an attempt whether or not it could succeed; a read of a missing file is not.
        let looked = path.as_path().symlink_metadata();
        let exists = looked.is_ok();
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
            // Not even the user may search the directories above some paths.
            let absent = looked.err().and_then(|error| error.raw_os_error());
            return match absent {
                Some(libc::EACCES) => errno(libc::EACCES),
                _ if writes => errno(absent.unwrap_or(libc::ENOENT)),
                _ => CONTINUE,
            };
        }
        if exists && operation == Operation::MakeDirectory {
            // `mkdir -p` creates directories that exist, and expects this answer.
            return errno(libc::EEXIST);
        }
        let opens = matches!(
            operation,
            Operation::Read | Operation::Write | Operation::Create | Operation::Truncate
        );
        let access = opens.then(|| stdio::access(path.as_path())).flatten().unwrap_or_default();
        let inherited = if writes { access.write } else { access.read };
        if inherited {
            // `echo > /dev/stderr`: an inherited file can be opened by that name as well.
            return if writes { Judged::Inherited } else { CONTINUE };
        }
        self.rule(Source::Syscall, &attempt)
    }

    /// What becomes of a change in `/proc` or `/dev`, which belong to the run.
    fn special(&self, operation: Operation, path: &AbsPath) -> Judged {
        let opens = matches!(operation, Operation::Write | Operation::Create | Operation::Truncate);
        match self.plan.allows(path, true) {
            true => CONTINUE,
            // Of a link of `/proc` itself, or between file systems.
            false if operation == Operation::Link => errno(libc::EXDEV),
            false if opens && path.as_path().starts_with("/dev") => Judged::Inherited,
            false if self.own_root => errno(libc::EROFS),
            false => errno(libc::EACCES),
        }
    }

    /// Whether an address leads to the run's own network or to one of its listeners.
    fn is_ours(&self, ip: std::net::IpAddr, port: u16) -> bool {
        let ports = &self.plan.ports;
        let made_up = |ip: std::net::Ipv4Addr| matches!(ip.octets(), [198, 18 | 19, ..]);
        match ip {
            _ if ip.is_loopback() || ip.is_unspecified() => true,
            // Addresses are granted on some ports only.
            std::net::IpAddr::V4(ip) => {
                (made_up(ip) || ports.addresses.contains(&ip)) && ports.ports.contains(&port)
            }
            std::net::IpAddr::V6(_) => false,
        }
    }

    fn rule(&mut self, source: Source, attempt: &Attempt) -> Judged {
        let program = || Program::look_up_here(attempt.pid);
        Judged::Ruled(monitor::rule(self.monitor, source, attempt, program))
    }

    /// Whether this only walks towards a granted path. The run's own root shows nothing else there;
    /// the host's root shows everything.
    fn is_on_the_way(&self, operation: Operation, path: &AbsPath) -> bool {
        match operation {
            // Shows that the path exists, and nothing of what is in it.
            Operation::Look => true,
            Operation::List | Operation::Read => self.own_root && self.plan.is_way(path),
            _ => false,
        }
    }

    /// Whether a private path of the home directory is one that has to be mounted by itself.
    fn is_top_of_private(&self, path: &AbsPath) -> bool {
        self.plan.is_way(&path.parent()) || path.parent() == self.plan.home
    }

    /// Whether this renames a pinned directory. Where there are mounts, they prevent that.
    fn moves_pinned(&self, operation: Operation, path: &AbsPath) -> bool {
        let pinned = |piece: &Piece| piece.kind == Kind::Pinned && piece.path == *path;
        operation == Operation::Rename && !self.own_root && self.plan.pieces.iter().any(pinned)
    }

    /// Whether a path is on the host, rather than private to the run.
    fn is_hosts(&self, path: &AbsPath) -> bool {
        let piece = self.plan.piece(path);
        piece.is_none_or(|piece| matches!(piece.kind, Kind::Write | Kind::Pinned | Kind::Read))
    }

    /// Where the path of an argument leads.
    fn argument(&mut self, argument: PathArgument, pid: u32) -> Option<AbsPath> {
        let text = read::path(pid, argument.pointer).ok()?;
        let named = absolute(pid, argument.directory, &text).ok()?;
        self.leads(&named, argument.follow, pid)
    }

    /// Where a path leads, links followed as the call would.
    fn leads(&mut self, named: &Path, follow: bool, pid: u32) -> Option<AbsPath> {
        let links = Links::new(self.plan, self.processes, self.views, pid);
        let links = |path: &AbsPath| links.at(path);
        if follow {
            return self.monitor.resolve(named, &links).ok();
        }
        let name = named.file_name()?;
        Some(self.monitor.resolve(named.parent()?, &links).ok()?.join(name))
    }
}

/// Answers an open with a file that no other process sees.
pub(crate) fn lend(listener: &OwnedFd, notification: &Notification) {
    let file = rustix::fs::memfd_create("lock", rustix::fs::MemfdFlags::CLOEXEC);
    lend_file(listener, notification, file.map_err(io::Error::from));
}

/// Answers an exclusive open with the file that was just created for it.
pub(crate) fn lend_created(
    listener: &OwnedFd,
    notification: &Notification,
    created: OwnedFd,
    flags: u32,
) {
    let append = OFlags::from_bits_retain(flags) & OFlags::APPEND;
    let set = rustix::fs::fcntl_setfl(&created, append);
    lend_file(listener, notification, set.map(|()| created).map_err(io::Error::from));
}

/// Lends a regular file that stands in for another.
pub(crate) fn lend_file(
    listener: &OwnedFd,
    notification: &Notification,
    file: io::Result<OwnedFd>,
) {
    let lent = file.and_then(|file| {
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        sys::lend(listener.as_fd(), notification.id, file.as_fd(), CloseOnExec(true))
    });
    if lent.is_err() {
        answer(listener, notification, Reply::Errno(libc::EACCES));
    }
}

/// Lends a file that was opened for the caller. This process has closed it by the time the call
/// returns: a program that was just written cannot be executed while somebody can write it.
pub(crate) fn hand_over(
    listener: &OwnedFd,
    notification: &Notification,
    file: OwnedFd,
    close_on_exec: CloseOnExec,
) {
    let given =
        sys::give_descriptor(listener.as_fd(), notification.id, file.as_fd(), close_on_exec);
    drop(file);
    let reply = match given {
        Ok(number) => Reply::Descriptor(number),
        Err(error) => Reply::Errno(error.raw_os_error().unwrap_or(libc::EACCES)),
    };
    answer(listener, notification, reply);
}

/// Answers a waiting call. Its process may be gone, which does not matter.
pub(crate) fn answer(listener: &OwnedFd, notification: &Notification, reply: Reply) {
    let done = sys::answer_notification(listener.as_fd(), notification.id, reply);
    // A call without an answer would wait for ever.
    if done.is_err() {
        let refusal = Reply::Errno(libc::EACCES);
        let _ = sys::answer_notification(listener.as_fd(), notification.id, refusal);
    }
}
