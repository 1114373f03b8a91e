//! Behind namespaces: what is done before there is a plan, and how it then becomes a tree, by two
//! threads of the first process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use model::Net;

use super::{Built, Child, map_user};
use crate::child::Orders;
use crate::child::landlock::LandlockRules;
use crate::child::mounts::{Bench, Entered, Later};
use crate::child::prefork;
use crate::child::seccomp::Program;
use crate::failure::{Failed, Step};
use crate::network::namespace::{EmptyNetwork, OwnNetwork};
use crate::supervisor::FORWARDED;
use crate::sys::{self, ExitOnPanic};
use crate::test_hooks::Layer;

/// What is done beside the tree.
pub(super) struct Rest {
    /// Parts of the plan that are not there.
    pub(super) missing: Vec<String>,
    pub(super) program: Option<Program>,
}

/// More descriptors than most plans need.
const ROOM: usize = 1024;

/// The second thread of the first process, and what it is waiting for and waited for.
struct Beside {
    thread: io::Result<JoinHandle<()>>,
    hand_over: Sender<(&'static Child<'static>, Later<'static>)>,
    made: Receiver<Option<LandlockRules<'static>>>,
    network: Receiver<Option<OwnNetwork>>,
    entered: Sender<()>,
    rest: Receiver<Rest>,
}

/// The other ends.
struct Answers {
    made: Sender<Option<LandlockRules<'static>>>,
    network: Sender<Option<OwnNetwork>>,
    entered: Receiver<()>,
    rest: Sender<Rest>,
}

impl Beside {
    /// Starts it. Whatever the run turns out to be, it is likely to want a network of its own.
    fn start() -> Self {
        let (hand_over, work) = mpsc::channel::<(&'static Child<'static>, Later<'static>)>();
        let (tell_made, made) = mpsc::channel();
        let (tell_network, network) = mpsc::channel();
        let (tell_entered, entered) = mpsc::channel();
        let (tell_rest, rest) = mpsc::channel();
        let answers = Answers { made: tell_made, network: tell_network, entered, rest: tell_rest };
        let thread = std::thread::Builder::new().spawn(move || {
            // Half a tree is the end of the process.
            let _exit = ExitOnPanic;
            let empty = EmptyNetwork::make();
            let Ok((child, later)) = work.recv() else { return };
            if let Err(failed) = child.build_beside(empty, later, &answers) {
                child.fail(failed);
            }
        });
        Self { thread, hand_over, made, network, entered: tell_entered, rest }
    }
}

/// Does what can be done before anybody knows for what, waits for orders, builds the wall, starts
/// the command behind it, and waits for its end. Never returns.
pub(crate) fn wait_for_orders(socket: OwnedFd, user: (u32, u32)) -> ! {
    let _exit = ExitOnPanic;
    // For the supervisor, until the command can have them.
    let held = sys::hold_signals(&FORWARDED).map_err(|error| Failed::new(Step::Ipc, error));
    let bond = sys::die_with_parent().map_err(|error| Failed::new(Step::ParentDeath, error));
    // The table cannot grow quickly once there are two threads.
    sys::make_room_for_descriptors(socket.as_fd(), ROOM);
    let beside = Beside::start();
    let ready = held.and(bond).and_then(|()| map_user(user));
    // Nobody is left to be told if there are none.
    let Ok(Some(orders)) = prefork::receive(&socket) else { sys::exit_now(1) };
    // They last as long as the process, and so does everything that is made of them.
    let orders: &'static Orders<'static> = Box::leak(Box::new(orders));
    let child = Child::new(orders, user, socket, None);
    let child: &'static Child<'static> = Box::leak(Box::new(child));
    let failed = match ready.and_then(|()| child.enter_group()) {
        Err(failed) => failed,
        Ok(()) if child.omits(Layer::Mounts) => child.start_unmounted(),
        Ok(()) => child.mount_and_start(beside),
    };
    child.fail(failed)
}

impl Child<'static> {
    /// What the second thread does. Whoever does not listen to it any more has failed, and is about
    /// to say so.
    fn build_beside(
        &'static self,
        empty: Result<EmptyNetwork, Failed>,
        later: Later<'static>,
        answers: &Answers,
    ) -> Result<(), Failed> {
        self.cpu_affinity.leave();
        let mut rights = self.rights()?;
        let stock = later.make(rights.as_mut())?;
        let Ok(()) = answers.made.send(rights) else { return Ok(()) };
        let own = self.orders.plan.network == Net::Own;
        let network = own.then(|| OwnNetwork::furnish(empty?, &self.orders.plan)).transpose()?;
        let Ok(()) = answers.network.send(network) else { return Ok(()) };
        let placed = stock.place()?;
        self.send_private(&placed.private)?;
        let Ok(()) = answers.entered.recv() else { return Ok(()) };
        let missing = placed.finish()?;
        let _ = answers.rest.send(Rest { missing, program: self.program() });
        Ok(())
    }

    /// Puts the file system together and starts the command. Most of what lies on the floor is made
    /// beside that, on another processor if there is one.
    fn mount_and_start(&'static self, beside: Beside) -> Failed {
        let lost = || Failed::new(Step::Fork, io::Error::other("a thread ended early"));
        let Beside { thread, hand_over, made, network, entered, rest } = beside;
        let build = || {
            let thread = thread.map_err(|error| Failed::new(Step::Fork, error))?;
            let (mut mounts, later) = self.floor(Bench::begin(&self.orders.plan)?)?;
            let bare = self.orders.hides_new_files.then(|| mounts.bare_root()).transpose();
            let bare = bare.map_err(|error| Failed::new(Step::Root, error))?;
            hand_over.send((self, later)).map_err(|_| lost())?;
            mounts.lay()?;
            // There is time for this while the other thread is at work.
            sys::drop_bounding_set();
            let mut rights = made.recv().map_err(|_| lost())?;
            rights.iter_mut().try_for_each(|rights| mounts.allow(rights))?;
            let Entered { missing, private, umask } = mounts.enter()?;
            entered.send(()).map_err(|_| lost())?;
            self.send_private(&private)?;
            self.send_views(bare)?;
            self.enter_network(network.recv().map_err(|_| lost())?)?;
            // A fork copies what one thread sees, and a run that may have two processes has them
            // for itself.
            if self.forks() || self.orders.plan.limits.processes.is_some_and(|most| most < 3) {
                thread.join().map_err(|_| lost())?;
            }
            Ok(Built { missing, rights, umask: Some(umask), rest: Some(rest) })
        };
        match build() {
            Ok(built) => self.start(built),
            Err(failed) => failed,
        }
    }
}
