//! What takes something away from a run stays mounted: the supervisor's side of
//! [`KeptMounts`](super::kept_mounts::KeptMounts) and [`MountHelper`].

use std::borrow::Cow;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::kept_mounts::KeptMounts;
use super::mount_helper::{Cover, Done, MountHelper, Order, Request};
use super::{Next, Supervisor};
use crate::available::{Attribution, Enforcement};
use crate::failure::{Failed, Step};
use crate::launch::SandboxError;
use crate::monitor::Monitor;
use crate::test_hooks::{Layer, Omitted};

/// How long the helper may take for one mount.
const HELPER_TIME: Duration = Duration::from_secs(10);

/// How long a run goes on before its protective mounts are watched, if no mount alone keeps anything
/// from it. Calls that write are decided by the plan, whatever is mounted. The kernel takes up to fifteen
/// milliseconds to close what watches, twice as long as a short run takes.
const UNWATCHED: Duration = Duration::from_millis(200);

/// Since when the protective mounts are watched.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// Not yet.
    #[default]
    Later,
    /// They are, as far as that is possible.
    Now,
    /// There are none.
    Never,
}

impl Supervisor<'_> {
    /// Begins to watch before the first mount is made, so that no change is missed, where a mount is
    /// all that keeps something from the run: what must not be read, and everything where calls are not
    /// intercepted.
    pub(super) fn begin_to_keep(&mut self, monitor: &mut dyn Monitor) -> Next {
        let omitted = Omitted::from_environment().has(Layer::KeptMounts);
        if self.available.enforcement != Enforcement::Namespaces || omitted {
            self.keeping = Keeping::Never;
            return Next::GoOn;
        }
        let alone = self.available.attribution == Attribution::Inferred;
        if alone || self.launch.hides_new_files || KeptMounts::hides(self.launch.plan) {
            return self.keep_from_now_on(monitor);
        }
        Next::GoOn
    }

    /// How long until the mounts have to be watched.
    pub(super) fn unwatched(&self) -> Option<Duration> {
        let started = self.started.filter(|_| self.keeping == Keeping::Later)?;
        Some(UNWATCHED.saturating_sub(started.elapsed()))
    }

    /// Begins to watch later, and looks for what is gone already.
    pub(super) fn begin_to_keep_later(&mut self, monitor: &mut dyn Monitor) -> Next {
        match self.keep_from_now_on(monitor) {
            Next::GoOn => {}
            next => return next,
        }
        let views = &self.views;
        if let Some(kept) = &mut self.kept_mounts {
            kept.look_again(|path| views.is_mount(path));
        }
        self.keep_mounts(monitor)
    }

    fn keep_from_now_on(&mut self, monitor: &mut dyn Monitor) -> Next {
        self.keeping = Keeping::Now;
        match KeptMounts::begin(self.launch.plan, monitor) {
            Ok(kept) => self.kept_mounts = kept,
            Err(error) if self.launch.hides_new_files => {
                return Next::Fail(self.failed(Step::Watch, error));
            }
            // Nothing is lost before the end, where all of it is compared.
            Err(_) => self.uncovered = KeptMounts::all(self.launch.plan),
        }
        Next::GoOn
    }

    /// Mounts again what is gone, and hides what has appeared and must not be read.
    pub(super) fn keep_mounts(&mut self, monitor: &mut dyn Monitor) -> Next {
        let Some(mut kept) = self.kept_mounts.take() else { return Next::GoOn };
        let mut next = Next::GoOn;
        for order in kept.orders(monitor) {
            match self.mount(&order, monitor) {
                Ok(done) => {
                    kept.note(&order, done);
                    if let (Cover::Hidden, Done::Failed(errno)) = (order.cover, done) {
                        next = self.not_hidden(&order, errno);
                        break;
                    }
                }
                Err(other) => {
                    next = other;
                    break;
                }
            }
        }
        self.kept_mounts = Some(kept);
        next
    }

    /// What must not be read can be read: the run ends.
    fn not_hidden(&self, order: &Order, errno: i32) -> Next {
        let failed = Failed::new(Step::Hide, io::Error::from_raw_os_error(errno))
            .about(order.path.display().to_string());
        let diagnosis = self.available.lacking.clone();
        Next::Fail(SandboxError::Failed { failed, diagnosis })
    }

    fn mount(&mut self, order: &Order, monitor: &mut dyn Monitor) -> Result<Done, Next> {
        if self.namespaces.is_none() {
            return Ok(Done::Absent);
        }
        let request = Request::Cover(Cow::Borrowed(order));
        Ok(self.ask_helper(&request, None, monitor)?.0)
    }

    /// Lets the helper do something, and answers the lookups that this causes.
    pub(super) fn ask_helper(
        &mut self,
        request: &Request<'_>,
        directory: Option<&OwnedFd>,
        monitor: &mut dyn Monitor,
    ) -> Result<(Done, Option<OwnedFd>), Next> {
        let helper = match (self.mount_helper.take(), &self.namespaces) {
            (Some(helper), _) => helper,
            (None, Some(namespaces)) => MountHelper::start(namespaces, self.device.is_some())
                .map_err(|error| Next::Fail(self.failed(Step::Fork, error)))?,
            (None, None) => return Ok((Done::Failed(libc::EACCES), None)),
        };
        let answer = self.wait_for_helper(&helper, request, directory, monitor);
        if let Ok(Ok(_)) = answer {
            self.mount_helper = Some(helper);
        } else {
            // The next request gets a new helper.
            self.stopped.push(helper.stop());
        }
        let failed = |error: io::Error| Done::Failed(error.raw_os_error().unwrap_or(libc::EIO));
        answer.map(|answer| answer.unwrap_or_else(|error| (failed(error), None)))
    }

    fn wait_for_helper(
        &mut self,
        helper: &MountHelper,
        request: &Request<'_>,
        directory: Option<&OwnedFd>,
        monitor: &mut dyn Monitor,
    ) -> Result<io::Result<(Done, Option<OwnedFd>)>, Next> {
        if let Err(error) = helper.send(request, directory) {
            return Ok(Err(error));
        }
        let since = Instant::now();
        loop {
            let left = HELPER_TIME.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Ok(Err(io::Error::from_raw_os_error(libc::ETIMEDOUT)));
            }
            let (answered, asked) = {
                let mut polled = vec![PollFd::new(helper.descriptor(), PollFlags::IN)];
                polled.extend(self.device.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
                let timeout = Timespec {
                    tv_sec: left.as_secs().cast_signed(),
                    tv_nsec: left.subsec_nanos().into(),
                };
                let _ = rustix::event::poll(&mut polled, Some(&timeout));
                let ready = |at: usize| {
                    polled.get(at).is_some_and(|polled: &PollFd<'_>| !polled.revents().is_empty())
                };
                (ready(0), ready(1))
            };
            if answered {
                return Ok(helper.receive());
            }
            if asked {
                match self.serve_tripwire(monitor) {
                    Next::GoOn => {}
                    next => return Err(next),
                }
            }
        }
    }
}
