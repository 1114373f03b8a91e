//! The first process in its namespaces: what it does before there is a plan, and how two threads
//! of it then mount the plan.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use model::{Base, Net, Plan, Usual};

use super::{Built, Child, USUAL_FILTER, map_user};
use crate::child::Orders;
use crate::child::landlock::LandlockRules;
use crate::child::mounts::{Deferred, Entered, Spares, Staging};
use crate::child::prefork;
use crate::child::seccomp::{self, Program};
use crate::failure::{Failed, Step};
use crate::network::namespace::{EmptyNetwork, OwnNetwork};
use crate::supervisor::FORWARDED;
use crate::sys::{self, ExitOnPanic};
use crate::test_hooks::Layer;

/// More descriptors than most plans need.
const DESCRIPTORS: usize = 1024;

/// Numbers that the kernel does not give out again once it has used all.
const RESERVED_NUMBERS: u32 = 300;

/// Whether `pid_max` belongs to the namespace. In older kernels it is the host's.
fn has_own_pid_max() -> bool {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    number().zip(number()).is_some_and(|version| version >= (6, 14))
}

/// The kernel counts a user's inotify watches in all namespaces together. A run that took all of them
/// would take them from the user's editor, and from other supervisors. So it gets half.
fn leave_watches_to_the_host() {
    for (host, own) in [
        ("max_user_instances", "max_inotify_instances"),
        ("max_user_watches", "max_inotify_watches"),
    ] {
        let most = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{host}"));
        let Some(most) = most.ok().and_then(|text| text.trim().parse::<u32>().ok()) else {
            continue;
        };
        // It fails where `/proc/sys` is read-only.
        let _ = std::fs::write(format!("/proc/sys/user/{own}"), (most / 2).to_string());
    }
}

/// What is made before there are orders, for those that most runs get.
struct Ahead {
    spares: Spares,
    filter: Program,
}

/// The second thread of the first process, and the channels to and from it.
struct SecondThread {
    thread: io::Result<JoinHandle<()>>,
    hand_over: Sender<(&'static Child<'static>, Deferred<'static>)>,
    landlock: Receiver<Option<LandlockRules<'static>>>,
    network: Receiver<Option<OwnNetwork>>,
    entered: Sender<()>,
    rest: Receiver<Vec<String>>,
}

/// The other ends of the channels.
struct Answers {
    landlock: Sender<Option<LandlockRules<'static>>>,
    network: Sender<Option<OwnNetwork>>,
    entered: Receiver<()>,
    rest: Sender<Vec<String>>,
}

impl SecondThread {
    /// Starts it. Most runs have a network of their own, so its namespace is created at once.
    fn start() -> Self {
        let (hand_over, work) = mpsc::channel::<(&'static Child<'static>, Deferred<'static>)>();
        let (send_landlock, landlock) = mpsc::channel();
        let (send_network, network) = mpsc::channel();
        let (send_entered, entered) = mpsc::channel();
        let (send_rest, rest) = mpsc::channel();
        let answers =
            Answers { landlock: send_landlock, network: send_network, entered, rest: send_rest };
        let thread = std::thread::Builder::new().spawn(move || {
            // A panic must not leave a partly mounted tree in use.
            let _exit = ExitOnPanic;
            let empty = EmptyNetwork::create();
            let Ok((child, deferred)) = work.recv() else { return };
            if let Err(failed) = child.build_in_second_thread(empty, deferred, &answers) {
                child.fail(failed);
            }
        });
        Self { thread, hand_over, landlock, network, entered: send_entered, rest }
    }
}

/// Does what can be done before there is a plan, waits for orders, builds the sandbox, starts the
/// command in it, and waits for its end. Never returns.
pub(crate) fn wait_for_orders(socket: OwnedFd, user: (u32, u32), usual: &Usual) -> ! {
    let _exit = ExitOnPanic;
    // Signals are for the supervisor until the command has started.
    let blocked = sys::block_signals(&FORWARDED).map_err(|error| Failed::new(Step::Ipc, error));
    let parent_death =
        sys::die_with_parent().map_err(|error| Failed::new(Step::ParentDeath, error));
    // The descriptor table grows slowly once there are two threads.
    sys::make_room_for_descriptors(socket.as_fd(), DESCRIPTORS);
    let second = SecondThread::start();
    let ready = blocked.and(parent_death).and_then(|()| map_user(user));
    leave_watches_to_the_host();
    let ahead = Ahead {
        spares: ready.as_ref().map_or_else(|_| Spares::default(), |()| Spares::make(user, usual)),
        filter: seccomp::both(&USUAL_FILTER.0, USUAL_FILTER.1),
    };
    // Without orders the supervisor is gone, and no one is left to report to.
    let Ok(Some(orders)) = prefork::receive(&socket) else { sys::exit_now(1) };
    // They live as long as the process, and so does everything that borrows from them.
    let orders: &'static Orders<'static> = Box::leak(Box::new(orders));
    let child = Child::new(orders, user, socket, None);
    let child: &'static Child<'static> = Box::leak(Box::new(child));
    let failed = match ready.and_then(|()| child.enter_group()).and_then(|()| child.name_host()) {
        Err(failed) => failed,
        Ok(()) => {
            child.limit_process_numbers();
            if child.omits(Layer::Mounts) {
                let Ahead { mut spares, .. } = ahead;
                spares.give_up();
                child.start_unmounted()
            } else {
                child.mount_and_start(second, ahead)
            }
        }
    };
    child.fail(failed)
}

impl Child<'static> {
    /// The kernel does not count the processes of root against its limit. What it can limit since
    /// Linux 6.14 is how many numbers for processes and threads a namespace has.
    fn limit_process_numbers(&self) {
        let Some(most) = self.orders.plan.limits.processes else { return };
        if self.user.0 != 0 || !self.orders.cgroup.is_empty() || !has_own_pid_max() {
            return;
        }
        // It fails where the numbers of so many processors do not fit.
        let numbers = most.saturating_add(RESERVED_NUMBERS);
        let _ = std::fs::write("/proc/sys/kernel/pid_max", numbers.to_string());
    }

    /// The name of the host says who the user works for. Where the run sees the host's own `/etc`,
    /// it must match that.
    fn name_host(&self) -> Result<(), Failed> {
        if self.orders.plan.base == Base::Host {
            return Ok(());
        }
        let named = rustix::system::sethostname(Plan::HOST_NAME.as_bytes());
        named.map_err(|error| Failed::new(Step::Namespaces, error.into()))
    }

    /// What the second thread does. If the first one no longer receives, it has failed and is about
    /// to report that.
    fn build_in_second_thread(
        &'static self,
        empty: Result<EmptyNetwork, Failed>,
        deferred: Deferred<'static>,
        answers: &Answers,
    ) -> Result<(), Failed> {
        self.cpu_affinity.avoid();
        let mut landlock = self.landlock_rules()?;
        let prepared = deferred.prepare(landlock.as_mut())?;
        let Ok(()) = answers.landlock.send(landlock) else { return Ok(()) };
        let own = self.orders.plan.network == Net::Own;
        let network = own.then(|| OwnNetwork::listen(empty?, &self.orders.plan)).transpose()?;
        let Ok(()) = answers.network.send(network) else { return Ok(()) };
        let attached = prepared.attach()?;
        self.send_trees(&attached.views)?;
        let Ok(()) = answers.entered.recv() else { return Ok(()) };
        let _ = answers.rest.send(attached.finish()?);
        Ok(())
    }

    /// Builds the file system and starts the command. The second thread prepares most of the mounts,
    /// on another processor if there is one.
    fn mount_and_start(&'static self, second: SecondThread, ahead: Ahead) -> Failed {
        let lost = || Failed::new(Step::Fork, io::Error::other("a thread ended early"));
        let SecondThread { thread, hand_over, landlock, network, entered, rest } = second;
        let Ahead { spares, filter } = ahead;
        let build = || {
            let thread = thread.map_err(|error| Failed::new(Step::Fork, error))?;
            let (mut mounts, deferred) =
                self.mount_root(Staging::begin(&self.orders.plan, spares)?)?;
            hand_over.send((self, deferred)).map_err(|_| lost())?;
            mounts.mount_pieces()?;
            // There is time for this while the other thread works.
            sys::drop_bounding_set();
            let program = self.program(Some(filter));
            let mut landlock = landlock.recv().map_err(|_| lost())?;
            landlock.iter_mut().try_for_each(|rules| mounts.allow(rules))?;
            let Entered { missing, views, umask } = mounts.enter()?;
            entered.send(()).map_err(|_| lost())?;
            self.send_trees(&views)?;
            self.send_views()?;
            self.enter_network(network.recv().map_err(|_| lost())?)?;
            // A fork copies only the calling thread, and a thread counts towards a small limit of
            // processes.
            if self.forks() || self.orders.plan.limits.processes.is_some_and(|most| most < 3) {
                thread.join().map_err(|_| lost())?;
            }
            Ok(Built { missing, landlock, umask: Some(umask), program, rest: Some(rest) })
        };
        match build() {
            Ok(built) => self.start(built),
            Err(failed) => failed,
        }
    }
}
