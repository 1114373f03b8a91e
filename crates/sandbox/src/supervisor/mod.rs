//! The supervisor: starts the child, serves its requests, and ends the run.
//!
//! A single thread handles one event after the other, so that nothing happens between a violation
//! and the end of the run that it causes.

pub(crate) mod cgroup;
pub(crate) mod diverted;
pub(crate) mod drafts;
pub(crate) mod foreground;
pub(crate) mod git_lock;
pub(crate) mod granted_later;
mod keep;
pub(crate) mod kept_mounts;
pub(crate) mod mount_helper;
pub(crate) mod perform;
mod private_home;
mod serve;
pub(crate) mod streams;
mod strict_reads;
pub(crate) mod usage;
pub(crate) mod views;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime};

use model::{AbsPath, Base, Caller, Cause, Piece, Usual};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::available::{Attribution, Available, Enforcement, SelfTest};
use crate::child::cpu_affinity::CpuAffinity;
use crate::child::landlock_only::{self, LandlockOnly};
use crate::child::prefork::{First, Prefork};
use crate::child::{Child, Orders};
use crate::failure::{Failed, Step};
use crate::ipc::{self, Message};
use crate::launch::{End, Launch, Outcome, SandboxError};
use crate::monitor::{Monitor, Ruling};
use crate::network::listeners::Listeners;
use crate::network::socket_owners::SocketOwners;
use crate::observe::notify::Connects;
use crate::observe::planned_paths::PlannedPaths;
use crate::observe::program;
use crate::observe::tripwire::Tripwire;
use crate::probe;
use crate::supervisor::cgroup::Cgroup;
use crate::supervisor::diverted::Diverted;
use crate::supervisor::drafts::Drafts;
use crate::supervisor::foreground::Foreground;
use crate::supervisor::granted_later::RunNamespaces;
use crate::supervisor::keep::Keeping;
use crate::supervisor::kept_mounts::KeptMounts;
use crate::supervisor::mount_helper::MountHelper;
use crate::supervisor::perform::Performer;
use crate::supervisor::private_home::PrivateHome;
use crate::supervisor::serve::Waiting;
use crate::supervisor::streams::Streams;
use crate::supervisor::usage::{Activity, Usage};
use crate::supervisor::views::Views;
use crate::sys::{self, Cloned};
use crate::test_hooks::{Layer, Omitted};

/// How long the setup may take before it counts as stuck.
const SETUP_TIME: Duration = Duration::from_mins(1);

/// How long a command may take to end after SIGTERM was forwarded to it.
const GRACE: Duration = Duration::from_millis(600);

/// How long to wait until killed processes can no longer run.
const DYING_TIME: Duration = Duration::from_secs(10);

pub(crate) struct Supervisor<'a> {
    launch: &'a Launch<'a>,
    available: Available,
    /// The plan without mounts, where Landlock alone enforces it.
    landlock_only: Option<&'a LandlockOnly>,
    child: OwnedFd,
    child_pid: i32,
    socket: OwnedFd,
    signals: OwnedFd,
    device: Option<OwnedFd>,
    tripwire: Tripwire,
    planned_paths: PlannedPaths,
    /// The buffer for one request to the tripwire.
    request: Vec<u8>,
    listener: Option<OwnedFd>,
    /// Whether something may have been changed. True where calls are not intercepted.
    changed: bool,
    processes: Option<OwnedFd>,
    drafts: Drafts,
    diverted: Diverted,
    connects: Connects,
    /// The file system as the run sees it.
    views: Views,
    performer: Performer,
    private_home: PrivateHome,
    /// Calls that would wait, to be tried again.
    waiting: Waiting,
    /// The command, once it is known.
    command: Option<(OwnedFd, i32)>,
    foreground: Foreground,
    streams: Streams,
    cgroup: Option<Cgroup>,
    started: Option<Instant>,
    born: Instant,
    activity: Activity,
    /// When someone first asked for the end of the run.
    terminated: Option<Instant>,
    /// The run's namespaces, where something may have to be mounted later.
    namespaces: Option<RunNamespaces>,
    kept_mounts: Option<KeptMounts>,
    keeping: Keeping,
    mount_helper: Option<MountHelper>,
    /// Processes that open a named pipe for the run, and wait for its writer.
    pipes: Vec<i32>,
    /// Killed processes that can be waited for only when the device is closed.
    stopped: Vec<i32>,
    /// The thread whose open is being performed.
    performs_for: Option<u32>,
    /// Protective mounts of which is not known whether they were always there.
    uncovered: Vec<AbsPath>,
    cpu_affinity: CpuAffinity,
    /// The listeners, until the first connection.
    listeners: Option<Listeners>,
    socket_owners: SocketOwners,
}

/// Sends the first process its orders; starts one if there is none.
fn start_in_namespaces(
    launch: &Launch<'_>,
    available: &Available,
    prefork: Option<Prefork>,
    cgroup: Option<&Cgroup>,
) -> Result<(First, CpuAffinity), SandboxError> {
    let fail = |failed: Failed| {
        let diagnosis = probe::diagnose(&failed, available);
        SandboxError::Failed { failed, diagnosis }
    };
    let prefork =
        prefork.map_or_else(|| Prefork::start(launch.user, &Usual::default()), Ok).map_err(fail)?;
    let cpu_affinity = CpuAffinity::pin_to_one();
    let orders = Orders::new(launch, available, cgroup, &cpu_affinity);
    let first =
        prefork.send_orders(&orders).map_err(|error| fail(Failed::new(Step::Ipc, error)))?;
    Ok((first, cpu_affinity))
}

/// Starts the first process without namespaces. If the supervisor is killed, it kills everything.
fn start_landlock_only(
    launch: &Launch<'_>,
    available: &Available,
    landlock_only: Option<&LandlockOnly>,
    cgroup: Option<&Cgroup>,
) -> Result<(First, CpuAffinity), SandboxError> {
    let fail = |step, error: io::Error| SandboxError::Failed {
        failed: Failed::new(step, error),
        diagnosis: available.lacking.clone(),
    };
    let (socket, theirs) = ipc::pair().map_err(|error| fail(Step::Ipc, error))?;
    sys::adopt_orphans().map_err(|error| fail(Step::ParentDeath, error))?;
    let cpu_affinity = CpuAffinity::pin_to_one();
    let orders = Orders::new(launch, available, cgroup, &cpu_affinity);
    match sys::clone_into(0).map_err(|error| fail(Step::Fork, error))? {
        Cloned::Child => {
            drop(socket);
            Child::new(&orders, launch.user, theirs, landlock_only).run()
        }
        Cloned::Parent(process, pid) => Ok((First { process, pid, socket }, cpu_affinity)),
    }
}

/// What an event means for the run.
enum Next {
    GoOn,
    End(End),
    Fail(SandboxError),
}

impl<'a> Supervisor<'a> {
    pub(crate) fn start(
        launch: &'a Launch<'a>,
        available: Available,
        landlock_only: Option<&'a LandlockOnly>,
        prefork: Option<Prefork>,
    ) -> Result<Self, SandboxError> {
        let fail = |step, error: io::Error| SandboxError::Failed {
            failed: Failed::new(step, error),
            diagnosis: available.lacking.clone(),
        };
        let streams = Streams::remember();
        let signals = sys::signal_descriptor(&FORWARDED).map_err(|error| fail(Step::Ipc, error))?;
        let cgroup = Cgroup::create(&launch.plan.limits);
        sys::ignore_signal(libc::SIGTTOU);
        let namespaces = available.enforcement == Enforcement::Namespaces;
        let (first, cpu_affinity) = if namespaces {
            start_in_namespaces(launch, &available, prefork, cgroup.as_ref())?
        } else {
            start_landlock_only(launch, &available, landlock_only, cgroup.as_ref())?
        };
        let First { process: child, pid: child_pid, socket } = first;
        Ok(Self {
            launch,
            available,
            landlock_only,
            child,
            child_pid,
            socket,
            signals,
            device: None,
            tripwire: Tripwire::new(launch.user.0, launch.user.1),
            planned_paths: PlannedPaths::new(launch.plan),
            request: vec![0; Tripwire::REQUEST_SIZE],
            listener: None,
            changed: true,
            processes: None,
            drafts: Drafts::default(),
            diverted: Diverted::default(),
            connects: Connects::default(),
            views: Views::default(),
            performer: Performer::new(namespaces.then_some(launch.user)),
            private_home: PrivateHome::default(),
            waiting: Waiting::default(),
            command: None,
            foreground: Foreground::default(),
            streams,
            cgroup,
            started: None,
            born: Instant::now(),
            activity: Activity::default(),
            terminated: None,
            namespaces: None,
            kept_mounts: None,
            keeping: Keeping::default(),
            mount_helper: None,
            pipes: Vec::new(),
            stopped: Vec::new(),
            performs_for: None,
            uncovered: Vec::new(),
            listeners: None,
            socket_owners: SocketOwners::default(),
            cpu_affinity,
        })
    }

    /// Handles events until the run has ended, then cleans up.
    pub(crate) fn watch(mut self, monitor: &mut dyn Monitor) -> Result<Outcome, SandboxError> {
        let goes_on = self.launch.meanwhile.is_none_or(|meanwhile| meanwhile());
        let mut next = if goes_on { self.can_perform_reads() } else { Next::End(End::Cancelled) };
        // From now on, until the command runs, one of the two processes always waits for the other. On
        // the same processor, no second one has to be woken each time.
        self.cpu_affinity.pin_also(self.child_pid);
        if matches!(next, Next::GoOn) {
            next = self.begin_to_keep(monitor);
        }
        while matches!(next, Next::GoOn) {
            next = self.handle_events(monitor);
        }
        self.kill();
        let (installed, temporary) = (self.installed(), self.temporary());
        let usage = self.clean_up();
        self.streams.restore();
        match next {
            Next::End(End::Exited { .. }) => self.foreground.take_back(),
            _ => self.foreground.take_back_as_it_was(),
        }
        let limited_by = self.cgroup.as_ref().map_or("process", Cgroup::describe);
        let reached = self.cgroup.as_ref().map(Cgroup::reached).unwrap_or_default();
        drop(self.cgroup.take());
        let changed = self.changed;
        let lost = self.drafts.left();
        let diverted = std::mem::take(&mut self.diverted);
        let mut uncovered = std::mem::take(&mut self.uncovered);
        uncovered.extend(self.kept_mounts.take().into_iter().flat_map(KeptMounts::uncovered));
        let end = match next {
            Next::End(end) => end,
            Next::Fail(error) => return Err(error),
            Next::GoOn => End::Lost,
        };
        Ok(Outcome {
            end,
            usage,
            limited_by,
            reached,
            changed,
            installed,
            temporary,
            lost,
            diverted,
            uncovered,
        })
    }

    /// Waits for events and handles them.
    fn handle_events(&mut self, monitor: &mut dyn Monitor) -> Next {
        let again = monitor.between_events();
        let ready = match self.wait(monitor, again) {
            Ok(ready) => ready,
            Err(error) => return Next::Fail(self.failed(Step::Ipc, error)),
        };
        for source in &ready {
            let next = match source {
                Source::Cancel => self.cancel(),
                Source::Device => self.serve_tripwire(monitor),
                Source::SeccompListener => self.serve_call(monitor),
                Source::SeccompListenerClosed => {
                    self.listener = None;
                    Next::GoOn
                }
                Source::Directories => self.keep_mounts(monitor),
                Source::Listeners => self.serve_network(monitor),
                Source::Network => self.handle_network(monitor),
                Source::Signals => self.forward_signals(),
                Source::Socket => self.receive(monitor),
                // The socket is read first: it may hold the child's last message.
                Source::Child if ready.contains(&Source::Socket) => Next::GoOn,
                Source::Child => match self.started {
                    Some(_) => Next::End(End::Lost),
                    None => Next::Fail(self.failed(Step::Ipc, io::Error::other("it exited"))),
                },
            };
            if !matches!(next, Next::GoOn) {
                return next;
            }
        }
        self.connects.retry(self.listener.as_ref());
        match self.serve_waiting(monitor) {
            Next::GoOn => {}
            next => return next,
        }
        if self.unwatched().is_some_and(|left| left.is_zero()) {
            match self.begin_to_keep_later(monitor) {
                Next::GoOn => {}
                next => return next,
            }
        }
        self.over_limit()
    }

    /// Waits until an event source is ready.
    fn wait(&self, monitor: &dyn Monitor, again: Option<Duration>) -> io::Result<Vec<Source>> {
        let network = monitor.descriptors();
        let listeners = self.listeners.as_ref().map(Listeners::descriptors).unwrap_or_default();
        // Until the command starts there is nothing to keep from it.
        let kept = self.kept_mounts.as_ref().filter(|_| self.started.is_some());
        let single = [
            (Source::Cancel, self.launch.stop),
            (Source::Cancel, sys::forked_from()),
            (Source::Directories, kept.map(|kept| kept.descriptor().as_fd())),
            (Source::Device, self.device.as_ref().map(AsFd::as_fd)),
            (Source::SeccompListener, self.listener.as_ref().map(AsFd::as_fd)),
            (Source::Signals, Some(self.signals.as_fd())),
            (Source::Socket, Some(self.socket.as_fd())),
            (Source::Child, Some(self.child.as_fd())),
        ];
        let single =
            single.into_iter().filter_map(|(source, descriptor)| Some((source, descriptor?)));
        // A connection to a published port starts the service like one from inside, once the sockets for
        // it have all arrived.
        let published = self.listeners.as_ref().filter(|_| self.started.is_some());
        let published = published.map(|_| monitor.published()).unwrap_or_default();
        let listeners = listeners.into_iter().chain(published);
        let listeners = listeners.map(|socket| (Source::Listeners, socket));
        let network = network.into_iter().map(|event| (Source::Network, event));
        let waited: Vec<_> = single.chain(listeners).chain(network).collect();
        let mut polled: Vec<_> = waited
            .iter()
            .map(|(_, descriptor)| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
            .collect();
        let timeout = self.timeout().into_iter().chain(again).min().map(|time| Timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready: Vec<_> = waited
            .iter()
            .zip(&polled)
            .filter(|(_, polled)| !polled.revents().is_empty())
            .map(|((source, _), polled)| match source {
                // No process is left that could call; poll would report this again and again.
                Source::SeccompListener if !polled.revents().contains(PollFlags::IN) => {
                    Source::SeccompListenerClosed
                }
                source => *source,
            })
            .collect();
        ready.dedup();
        Ok(ready)
    }

    /// The first connection: only now is a proxy needed.
    fn serve_network(&mut self, monitor: &mut dyn Monitor) -> Next {
        let Some(listeners) = self.listeners.take() else { return Next::GoOn };
        match monitor.serve(listeners) {
            Ok(()) => Next::GoOn,
            Err(error) => Next::Fail(self.failed(Step::Listeners, error)),
        }
    }

    fn handle_network(&mut self, monitor: &mut dyn Monitor) -> Next {
        self.activity.happened();
        let processes = self.processes.as_ref();
        let who = |caller: &Caller| {
            let owner = processes.and_then(|view| self.socket_owners.find(view.as_fd(), caller));
            owner.unwrap_or_default()
        };
        match monitor.handle(&who) {
            Ruling::Stop => self.stop(),
            Ruling::Continue | Ruling::Errno(_) => Next::GoOn,
        }
    }

    /// Ends the run for a violation, before the call that caused it returns.
    fn stop(&self) -> Next {
        self.kill();
        Next::End(End::Violation)
    }

    /// The caller does not want the run any more.
    fn cancel(&self) -> Next {
        self.kill();
        Next::End(End::Cancelled)
    }

    /// How long to wait at most before limits have to be checked again.
    fn timeout(&self) -> Option<Duration> {
        let limits = &self.launch.plan.limits;
        if self.started.is_none() {
            return Some(SETUP_TIME.saturating_sub(self.born.elapsed()));
        }
        let idle = limits.idle_seconds.map(|_| Duration::from_millis(500));
        let grace = self.terminated.map(|since| GRACE.saturating_sub(since.elapsed()));
        let waiting = [self.connects.timeout(), self.waiting.due(), self.unwatched()];
        [self.wall_time_left(), idle, grace].into_iter().chain(waiting).flatten().min()
    }

    /// How much of `wall_seconds` is left.
    fn wall_time_left(&self) -> Option<Duration> {
        let most = Duration::from_secs(self.launch.plan.limits.wall_seconds?);
        Some(most.saturating_sub(self.started?.elapsed()))
    }

    fn over_limit(&mut self) -> Next {
        let limits = &self.launch.plan.limits;
        let Some(started) = self.started else {
            if self.born.elapsed() > SETUP_TIME {
                let stuck = io::Error::new(io::ErrorKind::TimedOut, "the setup took too long");
                return Next::Fail(self.failed(Step::Ipc, stuck));
            }
            return Next::GoOn;
        };
        if limits.wall_seconds.is_some_and(|most| started.elapsed().as_secs() >= most) {
            return Next::End(End::Limit("wall_seconds"));
        }
        if self.terminated.is_some_and(|since| since.elapsed() >= GRACE) {
            return Next::End(ended_by(libc::SIGTERM));
        }
        if let Some(most) = limits.idle_seconds
            && self.activity.idle_for(self.child_pid) >= Duration::from_secs(most)
        {
            return Next::End(End::Limit("idle_seconds"));
        }
        Next::GoOn
    }

    fn receive(&mut self, monitor: &mut dyn Monitor) -> Next {
        let (message, mut descriptors, sender) = match ipc::receive(&self.socket) {
            Ok(Some(received)) => received,
            Ok(None) if self.started.is_some() => return Next::End(End::Lost),
            Ok(None) => {
                return Next::Fail(
                    self.failed(Step::Ipc, io::Error::other("it closed its socket")),
                );
            }
            Err(error) => return Next::Fail(self.failed(Step::Ipc, error)),
        };
        match message {
            Message::Device => self.device = descriptors.pop(),
            Message::Trees(numbers) => {
                let pieces = &self.launch.plan.pieces;
                let path = |number: usize| pieces.get(number).map(|piece| piece.path.clone());
                self.views.add(numbers.into_iter().filter_map(path).zip(descriptors));
            }
            Message::Views => {
                self.processes = descriptors.pop();
                if let Some(failed) = descriptors.pop().and_then(|root| self.take_root(root)) {
                    return Next::Fail(failed);
                }
                self.namespaces = RunNamespaces::from_descriptors(descriptors);
            }
            Message::Listeners => {
                self.listeners = Listeners::add(self.listeners.take(), descriptors);
            }
            Message::Unconnected => {
                let listeners = self.listeners.iter_mut();
                listeners.for_each(|all| all.unconnected.append(&mut descriptors));
            }
            Message::SockDiag => self.socket_owners = SocketOwners::new(descriptors.pop()),
            Message::SeccompListener => {
                self.listener = descriptors.pop();
                self.changed = self.listener.is_none();
                self.listener.iter().for_each(|listener| sys::keep_to_caller(listener.as_fd()));
            }
            Message::NoSeccompListener => return self.without_listener(),
            Message::Ready { test, mut missing, landlock } => {
                self.available.landlock = landlock;
                missing.extend(self.landlock_only.iter().flat_map(|less| less.missing.clone()));
                if !test.holds() && !Omitted::from_environment().has(Layer::SelfTest) {
                    let what = test.succeeded().next().unwrap_or("trying").to_owned();
                    return Next::Fail(SandboxError::DoesNotHold(what));
                }
                return self.begin(monitor, sender, &test, &missing);
            }
            Message::Failed(failed) if failed.step == Step::Execute => {
                return Next::End(End::NotRun(failed));
            }
            Message::Failed(failed) => {
                let diagnosis = probe::diagnose(&failed, &self.available);
                return Next::Fail(SandboxError::Failed { failed, diagnosis });
            }
            Message::Stopped(signal) => self.suspend(signal),
            // It had no permission to run the command yet.
            Message::Exited(_) if self.started.is_none() => {
                let ended = io::Error::other("it exited before the command was started");
                return Next::Fail(self.failed(Step::Ipc, ended));
            }
            Message::Exited(status) => {
                let (code, signal) = (sys::exit_code(status), sys::end_signal(status));
                return Next::End(End::Exited { code, signal });
            }
        }
        Next::GoOn
    }

    /// Takes the run's root: what the run sees, or the tripwire, which nothing may be looked up in.
    fn take_root(&mut self, root: OwnedFd) -> Option<SandboxError> {
        if self.launch.plan.base == Base::Host {
            self.views.add([(AbsPath::root(), root)]);
            return None;
        }
        self.device.as_ref()?;
        let failed = self.views.avoid(root.as_fd()).err()?;
        Some(self.failed(Step::Tripwire, failed.into()))
    }

    fn without_listener(&mut self) -> Next {
        if self.launch.performs_reads {
            let taken = io::Error::from_raw_os_error(libc::EBUSY);
            return Next::Fail(self.failed(Step::StrictDeny, taken));
        }
        let taken = probe::listener_taken();
        if !self.available.lacking.contains(&taken) {
            self.available.lacking.push(taken);
        }
        if self.available.enforcement == Enforcement::Landlock {
            // Landlock cannot deny a name inside of what may be written; only intercepted calls can.
            let taken = io::Error::from_raw_os_error(libc::EBUSY);
            return Next::Fail(self.failed(Step::Watch, taken));
        }
        if self.available.attribution == Attribution::Notify {
            self.available.attribution = Attribution::Inferred;
        }
        Next::GoOn
    }

    /// The sandbox is complete: lets the command run.
    fn begin(
        &mut self,
        monitor: &mut dyn Monitor,
        sender: Option<i32>,
        test: &SelfTest,
        missing: &[String],
    ) -> Next {
        let Some(pid) = sender.and_then(Pid::from_raw) else {
            return Next::Fail(self.failed(Step::Ipc, io::Error::other("the sender is unknown")));
        };
        let command = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => (descriptor, pid.as_raw_nonzero().get()),
            Err(error) => return Next::Fail(self.failed(Step::Ipc, error.into())),
        };
        self.foreground.give_to(command.1);
        self.command = Some(command);
        let kept = match self.listener {
            // Now a mount is all that keeps something from the run.
            None if self.keeping == Keeping::Later => self.begin_to_keep_later(monitor),
            _ => self.keep_mounts(monitor),
        };
        if !matches!(kept, Next::GoOn) {
            return kept;
        }
        if self.views.is_empty() {
            // Without mounts the run sees what is there.
            match rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
                Ok(root) => self.views.add([(AbsPath::root(), root)]),
                Err(error) => return Next::Fail(self.failed(Step::Root, error.into())),
            }
        }
        self.begin_private_home(monitor);
        monitor.started(&self.available, test, missing);
        self.cpu_affinity.restore();
        self.started = Some(Instant::now());
        self.activity.happened();
        match ipc::permit_start(&self.socket) {
            Ok(()) => Next::GoOn,
            Err(error) => Next::Fail(self.failed(Step::Ipc, error)),
        }
    }

    /// Opens for reading are performed where all of them are intercepted, and in namespaces of the run.
    fn can_perform_reads(&self) -> Next {
        let Available { enforcement, attribution, .. } = self.available;
        let can = enforcement == Enforcement::Namespaces && attribution != Attribution::Inferred;
        if !self.launch.performs_reads || can {
            return Next::GoOn;
        }
        let error = io::Error::other("it needs namespaces and intercepted calls");
        Next::Fail(self.failed(Step::StrictDeny, error))
    }

    fn forward_signals(&mut self) -> Next {
        while let Some((signal, _)) = sys::next_signal(self.signals.as_fd()) {
            let Some((command, _)) = &self.command else {
                // There is no command yet to forward it to, so the run ends.
                if [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&signal) {
                    return Next::End(ended_by(signal));
                }
                continue;
            };
            if signal == libc::SIGTERM {
                sys::want_end();
                self.terminated.get_or_insert_with(Instant::now);
            }
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = rustix::process::pidfd_send_signal(command, signal);
            }
        }
        Next::GoOn
    }

    /// The command was stopped: stops this process as well, until it is continued.
    fn suspend(&mut self, signal: i32) {
        let Some((_, pid)) = &self.command else { return };
        if self.foreground.suspend(*pid, signal, self.wall_time_left()) {
            self.activity.happened();
        }
    }

    fn kill(&self) {
        match self.landlock_only {
            None => drop(rustix::process::pidfd_send_signal(&self.child, Signal::KILL)),
            // The first process stays until everything is cleaned up, in case this one is killed.
            Some(_) => self.kill_descendants(),
        }
    }

    fn kill_descendants(&self) {
        let janitor = self.cgroup.as_ref().and_then(Cgroup::janitor);
        let spared: Vec<_> = janitor.into_iter().chain([self.child_pid]).collect();
        sys::kill_descendants(&spared);
    }

    /// Waits until the child, and with it everything inside, is gone.
    fn clean_up(&mut self) -> Usage {
        // The last process to hold a mount has to take it down. That should be the child.
        self.views.clear();
        self.waiting.clear();
        (self.namespaces, self.listeners) = (None, None);
        self.stopped.extend(self.mount_helper.take().map(MountHelper::stop));
        self.wait_until_dying();
        self.processes = None;
        // A call that waits for an answer returns only when the descriptors are closed.
        self.device = None;
        self.listener = None;
        self.pipes.drain(..).chain(self.stopped.drain(..)).for_each(sys::kill_child);
        if let Some(landlock_only) = self.landlock_only {
            landlock_only::remove(landlock_only.private.as_path());
            let _ = rustix::process::pidfd_send_signal(&self.child, Signal::KILL);
        }
        let usage = Usage::of_child(self.child_pid);
        if let Some(landlock_only) = self.landlock_only {
            // What the child was about to start, and to create, when it was killed.
            self.kill_descendants();
            landlock_only::remove(landlock_only.private.as_path());
        }
        usage
    }

    /// Waits until no process inside can continue. The end of the first process kills all others,
    /// but not at once; a call that fails before that would return to its program.
    fn wait_until_dying(&self) {
        let Some(processes) = &self.processes else { return };
        let since = Instant::now();
        while since.elapsed() < DYING_TIME && !program::all_dying(processes.as_fd()) {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// The programs that were installed in private directories since the command was started.
    fn installed(&self) -> Vec<AbsPath> {
        let elapsed = self.started.filter(|_| self.changed).map(|started| started.elapsed());
        let Some(since) = elapsed.and_then(|elapsed| SystemTime::now().checked_sub(elapsed)) else {
            return Vec::new();
        };
        let plan = self.launch.plan;
        let is_private = |dir: &&AbsPath| plan.piece(dir).is_some_and(Piece::is_layered);
        let dirs = self.launch.program_dirs.iter().filter(is_private);
        dirs.flat_map(|dir| self.views.new_programs(dir, since)).collect()
    }

    /// The files that are left in private directories for temporary files.
    fn temporary(&self) -> Vec<AbsPath> {
        let pieces = self.launch.plan.pieces.iter();
        let dirs = pieces.filter(|piece| matches!(piece.why, Cause::Temporary));
        let here = dirs.filter(|_| self.changed && self.landlock_only.is_none());
        here.flat_map(|piece| self.views.files(&piece.path)).collect()
    }

    fn failed(&self, step: Step, error: io::Error) -> SandboxError {
        SandboxError::Failed {
            failed: Failed::new(step, error),
            diagnosis: self.available.lacking.clone(),
        }
    }
}

/// The end of a run by a signal to this process, with the status that a shell would show.
fn ended_by(signal: i32) -> End {
    End::Exited { code: u8::try_from(128 + signal).unwrap_or(1), signal: Some(signal) }
}

/// A source of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Cancel,
    Device,
    SeccompListener,
    SeccompListenerClosed,
    Directories,
    Listeners,
    Network,
    Signals,
    Socket,
    Child,
}

/// Signals that are forwarded to the command.
pub(crate) const FORWARDED: [i32; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];
