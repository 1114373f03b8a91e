//! What a run asks of its supervisor: requests to the tripwire, and intercepted calls.

use std::io;
use std::os::fd::AsFd;

use model::AbsPath;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};

use super::{Next, Supervisor};
use crate::Operation;
use crate::available::{Attribution, Enforcement};
use crate::failure::Step;
use crate::monitor::{Monitor, Ruling};
use crate::observe::notify::{self, Judged, Watcher};
use crate::observe::syscalls;
use crate::observe::tripwire::Served;
use crate::observe::tripwire_contents::RunContents;
use crate::supervisor::granted_later;
use crate::sys::{self, Reply};

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
        let mut watcher = Watcher {
            plan: self.launch.plan,
            monitor,
            self_test: self.started.is_none(),
            reads: self.available.attribution == Attribution::Notify,
            performs_reads: self.launch.performs_reads,
            own_root: self.available.enforcement == Enforcement::Namespaces,
            processes: self.processes.as_ref(),
            private: &self.private,
            drafts: &mut self.drafts,
            connects: &mut self.connects,
            network: self.socket_owners.diag(),
        };
        if self.started.is_some() {
            self.activity.happened();
            self.changed |= syscalls::may_change(&notification.data);
        }
        match watcher.judge(listener.as_fd(), &notification) {
            Judged::Ruled(Ruling::Stop) => return self.stop(),
            Judged::Ruled(Ruling::Continue) => {
                notify::answer(listener, &notification, Reply::Continue);
            }
            Judged::Ruled(Ruling::Errno(errno)) => {
                notify::answer(listener, &notification, Reply::Errno(errno));
            }
            Judged::Done => notify::answer(listener, &notification, Reply::Done),
            Judged::Read(argument, flags) => {
                return self.perform_read(&notification, argument, flags, monitor);
            }
            Judged::Create(path, operation, flags) => {
                let started = match &self.namespaces {
                    Some(namespaces) => granted_later::start(&path, operation, namespaces),
                    None => Err(io::Error::from_raw_os_error(libc::EACCES)),
                };
                let (ended, created) = match started {
                    Ok(granted_later::Created { created, helper }) => {
                        (self.serve_while(helper, monitor), Some(created))
                    }
                    Err(error) => (Err(error), None),
                };
                if let Some(listener) = &self.listener {
                    let exclusive = flags & libc::O_EXCL.cast_unsigned() != 0;
                    match (granted_later::reply(ended, operation), created) {
                        // Continuing would fail with EEXIST, because the file exists now.
                        (Reply::Continue, Some(created)) if exclusive => {
                            notify::lend_created(listener, &notification, created, flags);
                        }
                        (reply, _) => notify::answer(listener, &notification, reply),
                    }
                }
            }
            Judged::Pending => {}
            Judged::Lend => notify::lend(listener, &notification),
            Judged::Draft(path) => {
                notify::lend_file(listener, &notification, self.drafts.begin(&path));
            }
            Judged::Publish(draft, to) => {
                let done = self.publish(&draft, &to, monitor);
                if let Some(listener) = &self.listener {
                    let error = done.err().map(|error| error.raw_os_error().unwrap_or(libc::EIO));
                    let reply = error.map_or(Reply::Done, Reply::Errno);
                    notify::answer(listener, &notification, reply);
                }
            }
        }
        Next::GoOn
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
    fn serve_while(&mut self, helper: i32, monitor: &mut dyn Monitor) -> io::Result<i32> {
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
