//! What a run asks of its supervisor: requests to the tripwire, and intercepted calls.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use model::AbsPath;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, RawMode};
use rustix::net::SocketAddrUnix;
use rustix::process::{Pid, PidfdFlags};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::{Next, Supervisor};
use crate::Operation;
use crate::available::{Attribution, Enforcement};
use crate::failure::Step;
use crate::monitor::{Monitor, Ruling};
use crate::observe::notify::{self, Caller, Judged, Watcher};
use crate::observe::syscalls::{self, Act, Address};
use crate::observe::tripwire::Served;
use crate::observe::tripwire_contents::RunContents;
use crate::supervisor::granted_later::{self, RunNamespaces};
use crate::supervisor::perform::{NotPerformed, Performed};
use crate::sys::{self, Notification, Reply};

/// How often a call is judged if what it names changes meanwhile, which only the host can do.
const MOST_TRIES: usize = 8;
/// How many waiting calls are tried in one turn, and how long until the next.
const MOST_AT_ONCE: usize = 32;
const SOON: Duration = Duration::from_millis(1);
const LATER: Duration = Duration::from_millis(30);

/// Calls that would wait for another process, such as an open of a fifo that nobody reads yet.
#[derive(Default)]
pub(super) struct Waiting {
    calls: VecDeque<(Notification, u32)>,
    /// How often those were tried that are being tried again, by their IDs.
    tried: HashMap<u64, u32>,
    next: Option<Instant>,
}

impl Waiting {
    /// Adds a call, or one that has been tried again in vain.
    fn add(&mut self, call: Notification) {
        let tries = self.tried.remove(&call.id).unwrap_or(0);
        self.calls.push_back((call, tries + 1));
        let pause = if tries < 20 { SOON } else { LATER };
        let next = Instant::now() + pause;
        self.next = Some(self.next.map_or(next, |due| due.min(next)));
    }

    /// How long until some have to be tried again.
    pub(super) fn due(&self) -> Option<Duration> {
        self.next.map(|next| next.saturating_duration_since(Instant::now()))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn take_due(&mut self) -> Vec<Notification> {
        if self.next.is_none_or(|next| next > Instant::now()) {
            return Vec::new();
        }
        let many = self.calls.len().min(MOST_AT_ONCE);
        self.next = (self.calls.len() > many).then(|| Instant::now() + SOON);
        let taken: Vec<_> = self.calls.drain(..many).collect();
        self.tried = taken.iter().map(|(call, tries)| (call.id, *tries)).collect();
        taken.into_iter().map(|(call, _)| call).collect()
    }
}

impl Supervisor<'_> {
    pub(super) fn serve_tripwire(&mut self, monitor: &mut dyn Monitor) -> Next {
        let Some(device) = &self.device else { return Next::GoOn };
        let length = match rustix::io::read(device, &mut self.request[..]) {
            Ok(length) => length,
            Err(rustix::io::Errno::NODEV) => {
                self.device = None;
                return Next::GoOn;
            }
            // The request was taken back, or there was none after all.
            Err(_) => return Next::GoOn,
        };
        let mut view = RunContents {
            planned_paths: &self.planned_paths,
            monitor,
            processes: self.processes.as_ref(),
            self_test: self.started.is_none(),
            performs_for: self.performs_for,
            views: &self.views,
        };
        let request = self.request.get(..length).unwrap_or_default();
        let served = self.tripwire.serve(request, &mut view);
        if served == Ok(Served::Stop) {
            return self.stop();
        }
        if self.started.is_some() {
            self.activity.happened();
        }
        let Ok(Served::Reply(reply)) = served else { return Next::GoOn };
        match rustix::io::write(device, reply) {
            // The caller may be gone, which does not matter.
            Ok(_) | Err(rustix::io::Errno::NOENT | rustix::io::Errno::NODEV) => Next::GoOn,
            // The caller would wait for ever.
            Err(error) => Next::Fail(self.failed(Step::Ipc, error.into())),
        }
    }

    pub(super) fn serve_call(&mut self, monitor: &mut dyn Monitor) -> Next {
        // Whatever the host has changed before this call was made is covered again.
        match self.keep_mounts(monitor) {
            Next::GoOn => {}
            next => return next,
        }
        let Some(listener) = &self.listener else { return Next::GoOn };
        let Ok(notification) = sys::receive_notification(listener.as_fd()) else {
            return Next::GoOn;
        };
        if self.started.is_some() {
            self.activity.happened();
            self.changed |= syscalls::may_change(&notification.data);
        }
        self.answer_call(notification, monitor)
    }

    /// Tries the calls again that would have waited.
    pub(super) fn serve_waiting(&mut self, monitor: &mut dyn Monitor) -> Next {
        for notification in self.waiting.take_due() {
            let Some(listener) = &self.listener else { return Next::GoOn };
            if !sys::notification_is_valid(listener.as_fd(), notification.id) {
                continue;
            }
            match self.answer_call(notification, monitor) {
                Next::GoOn => {}
                next => return next,
            }
        }
        Next::GoOn
    }

    fn answer_call(&mut self, notification: Notification, monitor: &mut dyn Monitor) -> Next {
        for _ in 0..MOST_TRIES {
            let Some(listener) = &self.listener else { return Next::GoOn };
            let mut watcher = Watcher {
                plan: self.launch.plan,
                monitor,
                self_test: self.started.is_none(),
                reads: self.available.attribution == Attribution::Notify,
                performs_reads: self.launch.performs_reads,
                own_root: self.available.enforcement == Enforcement::Namespaces,
                processes: self.processes.as_ref(),
                views: &self.views,
                drafts: &mut self.drafts,
                diverted: &mut self.diverted,
                connects: &mut self.connects,
                network: self.socket_owners.diag(),
            };
            let reply = match watcher.judge(listener.as_fd(), &notification) {
                Judged::Ruled(Ruling::Stop) => return self.stop(),
                Judged::Ruled(Ruling::Continue) => Reply::Continue,
                Judged::Ruled(Ruling::Errno(errno)) => Reply::Errno(errno),
                Judged::Inherited => Reply::Errno(libc::EACCES),
                Judged::Perform(call) => match self.performer.perform(&self.views, &call) {
                    Ok(Performed::Done) => {
                        self.follow_private(&call, monitor);
                        Reply::Done
                    }
                    Ok(Performed::File(file, close_on_exec)) => {
                        self.follow_private(&call, monitor);
                        let Some(listener) = &self.listener else { return Next::GoOn };
                        notify::hand_over(listener, &notification, file, close_on_exec);
                        return Next::GoOn;
                    }
                    Err(NotPerformed::Errno(errno)) => Reply::Errno(errno),
                    Err(NotPerformed::Waits) => {
                        self.waiting.add(notification);
                        return Next::GoOn;
                    }
                    // What is there now is judged anew.
                    Err(NotPerformed::Changed) => continue,
                },
                Judged::Bind(caller, socket, address) => {
                    let done = self.bind(&caller, (socket, &address), notification.id, monitor);
                    let error = done.err().map(|error| error.raw_os_error().unwrap_or(libc::EIO));
                    error.map_or(Reply::Done, Reply::Errno)
                }
                Judged::Done => Reply::Done,
                Judged::Pending => return Next::GoOn,
                Judged::Read(argument, flags) => {
                    return self.perform_read(&notification, argument, flags, monitor);
                }
                Judged::Create(path, operation, flags) => {
                    match self.create(&notification, &path, (operation, flags), monitor) {
                        // It exists now, and the call is judged anew.
                        Some(Reply::Continue) => continue,
                        Some(reply) => reply,
                        None => return Next::GoOn,
                    }
                }
                Judged::Lend => {
                    notify::lend(listener, &notification);
                    return Next::GoOn;
                }
                Judged::Divert(path) => {
                    let Notification { pid, data, .. } = &notification;
                    let umask = Caller::new(*pid).umask().unwrap_or(0o077);
                    let mode = match syscalls::act(i64::from(data.nr), data.args) {
                        Some(Act::Open { mode, .. }) => mode & !umask,
                        _ => 0o600,
                    };
                    let file = self.diverted.begin(&path, mode);
                    notify::lend_file(listener, &notification, file);
                    return Next::GoOn;
                }
                Judged::DivertedAgain(path, flags) => {
                    let file = self.diverted.open_again(&path, flags);
                    notify::lend_file(listener, &notification, file);
                    return Next::GoOn;
                }
                Judged::Draft(path) => {
                    notify::lend_file(listener, &notification, self.drafts.begin(&path));
                    return Next::GoOn;
                }
                Judged::Publish(draft, to) => {
                    let done = self.publish(&draft, &to, monitor);
                    let error = done.err().map(|error| error.raw_os_error().unwrap_or(libc::EIO));
                    error.map_or(Reply::Done, Reply::Errno)
                }
            };
            if let Some(listener) = &self.listener {
                notify::answer(listener, &notification, reply);
            }
            return Next::GoOn;
        }
        if let Some(listener) = &self.listener {
            notify::answer(listener, &notification, Reply::Errno(libc::ELOOP));
        }
        Next::GoOn
    }

    /// Creates what was granted before it existed. `None` if the call has been answered.
    fn create(
        &mut self,
        notification: &Notification,
        path: &AbsPath,
        (operation, flags): (Operation, u32),
        monitor: &mut dyn Monitor,
    ) -> Option<Reply> {
        let started = match &self.namespaces {
            Some(namespaces) => granted_later::start(path, operation, namespaces),
            None => Err(io::Error::from_raw_os_error(libc::EACCES)),
        };
        let (ended, created) = match started {
            Ok(granted_later::Created { created, helper }) => {
                (self.serve_while(helper, monitor), Some(created))
            }
            Err(error) => (Err(error), None),
        };
        let listener = self.listener.as_ref()?;
        let exclusive = flags & libc::O_EXCL.cast_unsigned() != 0;
        match (granted_later::reply(ended, operation), created) {
            // Continuing would fail with EEXIST, because the file exists now.
            (Reply::Continue, Some(created)) if exclusive => {
                notify::lend_created(listener, notification, created, flags);
                None
            }
            (reply, _) => Some(reply),
        }
    }

    /// Binds a socket of the run to a path, in a process that sees the paths of the run: the socket
    /// remembers the address as it was given. The run changes no path meanwhile, because all its
    /// changes wait for this thread.
    fn bind(
        &mut self,
        caller: &Caller,
        (socket, address): (i32, &[u8]),
        id: u64,
        monitor: &mut dyn Monitor,
    ) -> io::Result<()> {
        let Address::Path(path) = syscalls::address(address) else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        let address = SocketAddrUnix::new(path)?;
        let socket = caller.take(socket).ok_or(io::Error::from_raw_os_error(libc::EBADF))?;
        let directory = rustix::fs::open(
            format!("/proc/{}/cwd", caller.pid),
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let umask = caller.umask().ok_or(io::ErrorKind::PermissionDenied)?;
        let own_root = self.available.enforcement == Enforcement::Namespaces;
        let namespaces = own_root.then(|| RunNamespaces::of(caller.pid)).transpose()?;
        // All of that is the caller's, and not of a process that got its ID.
        let listener = self.listener.as_ref().ok_or(io::ErrorKind::NotFound)?;
        if !sys::notification_is_valid(listener.as_fd(), id) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let helper = granted_later::start_helper(namespaces.as_ref(), || {
            let none = CapabilitySet::empty();
            let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
            rustix::thread::set_capabilities(None, none)?;
            rustix::process::umask(Mode::from_raw_mode(umask as RawMode));
            rustix::process::fchdir(&directory)?;
            Ok(rustix::net::bind(&socket, &address)?)
        })?;
        match self.serve_while(helper, monitor)? {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Writes a draft into the file it is for, which may have to be created.
    fn publish(
        &mut self,
        draft: &AbsPath,
        to: &AbsPath,
        monitor: &mut dyn Monitor,
    ) -> io::Result<()> {
        if self.launch.plan.granted_later.contains(to) && to.as_path().symlink_metadata().is_err() {
            let namespaces = self.namespaces.as_ref().ok_or(io::ErrorKind::PermissionDenied)?;
            let created = granted_later::start(to, Operation::Create, namespaces)?;
            match self.serve_while(created.helper, monitor)? {
                0 => {}
                errno => return Err(io::Error::from_raw_os_error(errno)),
            }
        }
        self.drafts.publish(draft, to)?;
        self.drafts.forget(draft);
        Ok(())
    }

    /// Waits for a helper in the run's namespaces. It looks paths up there, and this thread must
    /// answer the lookups that reach the tripwire.
    pub(super) fn serve_while(
        &mut self,
        helper: i32,
        monitor: &mut dyn Monitor,
    ) -> io::Result<i32> {
        let pid = Pid::from_raw(helper).ok_or(io::ErrorKind::NotFound)?;
        let process = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        loop {
            let asked = {
                let mut polled = vec![PollFd::new(&process, PollFlags::IN)];
                polled.extend(self.device.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
                match rustix::event::poll(&mut polled, None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                let ready = |at: usize| {
                    polled.get(at).is_some_and(|polled: &PollFd<'_>| !polled.revents().is_empty())
                };
                if ready(0) {
                    return sys::wait_for(helper);
                }
                ready(1)
            };
            if asked {
                // If it ends the run, the next turn of the loop sees that the child is gone.
                let _ = self.serve_tripwire(monitor);
            }
        }
    }
}
