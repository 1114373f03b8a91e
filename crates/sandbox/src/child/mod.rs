//! What runs in the child: the first process of a run, which builds the sandbox and then only
//! waits, and the process that confines itself and executes the command.

mod build;
pub(crate) mod cpu_affinity;
pub(crate) mod landlock;
pub(crate) mod landlock_only;
pub(crate) mod mounts;
mod orders;
pub(crate) mod prefork;
pub mod seccomp;
pub(crate) mod stdio;

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use model::{AbsPath, Base, Net, Plan};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC};
use rustix::process::DumpableBehavior;
use serde::{Deserialize, Serialize};

use self::build::wait_for_orders;
pub(crate) use self::orders::Orders;
use crate::available::{Attribution, Enforcement, SelfTest};
use crate::child::cpu_affinity::CpuAffinity;
use crate::child::landlock::LandlockRules;
use crate::child::landlock_only::LandlockOnly;
use crate::child::mounts::{Deferred, Mounts, RootFs, Staging};
use crate::child::seccomp::{Closed, Program, Sockets, Watch};
use crate::failure::{Failed, Step};
use crate::ipc::{self, Message};
use crate::network::namespace::{EmptyNetwork, OwnNetwork};
use crate::supervisor::cgroup::Cgroup;
use crate::supervisor::granted_later::RunNamespaces;
use crate::sys::{self, ExitOnPanic, Resource};
use crate::test_hooks::Layer;

/// The first process of a run.
pub(crate) struct Child<'a> {
    orders: &'a Orders<'a>,
    user: (u32, u32),
    socket: OwnedFd,
    /// A directory to remove if the supervisor is killed.
    landlock_only: Option<&'a LandlockOnly>,
    cpu_affinity: CpuAffinity,
}

/// What the filter of most runs denies and watches.
const USUAL_FILTER: (Closed, Watch) = (
    Closed { user_namespaces: false, sockets: Sockets::Ordinary, host_processes: false },
    Watch::Changes,
);

/// What must be out of reach: tried from inside before the command runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Canary {
    /// A file that exists and that the plan does not allow.
    pub file: AbsPath,
    /// A port on the host's loopback that is listened on.
    pub port: u16,
}

/// What is left to apply to the process of the command, once the file system is complete.
struct Built<'a> {
    /// Pieces of the plan that could not be mounted.
    missing: Vec<String>,
    landlock: Option<LandlockRules<'a>>,
    /// The user's umask, where the setup needed another.
    umask: Option<Mode>,
    /// The seccomp filter, unless it is left out.
    program: Option<Program>,
    /// Receives what more could not be mounted, where a second thread is still mounting.
    rest: Option<Receiver<Vec<String>>>,
}

impl<'a> Child<'a> {
    pub(crate) fn new(
        orders: &'a Orders<'a>,
        user: (u32, u32),
        socket: OwnedFd,
        landlock_only: Option<&'a LandlockOnly>,
    ) -> Self {
        let cpu_affinity = CpuAffinity::from_orders(&orders.cpu_affinity);
        Self { orders, user, socket, landlock_only, cpu_affinity }
    }
    /// Starts the command where there are no namespaces, and waits for its end. Never returns.
    pub(crate) fn run(self) -> ! {
        let _exit = ExitOnPanic;
        let failed = match self.enter_group().and_then(|()| self.prepare_to_outlive()) {
            Err(failed) => failed,
            Ok(()) => self.start_unmounted(),
        };
        self.fail(failed)
    }

    fn omits(&self, layer: Layer) -> bool {
        self.orders.omitted.has(layer)
    }

    /// What the command inherits of the caller's environment: nothing.
    fn inherited(&self) -> Vec<(OsString, OsString)> {
        if self.omits(Layer::Environment) { std::env::vars_os().collect() } else { Vec::new() }
    }

    fn fail(&self, failed: Failed) -> ! {
        let _ = ipc::send(&self.socket, &Message::Failed(failed), &[]);
        self.exit_after_all()
    }

    /// Ends this process, and removes what no other process might.
    fn exit_after_all(&self) -> ! {
        if let Some(landlock_only) = self.landlock_only {
            landlock_only::remove(landlock_only.private.as_path());
        }
        sys::exit_now(1)
    }

    fn enter_group(&self) -> Result<(), Failed> {
        Cgroup::enter(&self.orders.cgroup).map_err(|error| Failed::new(Step::Limits, error))
    }

    /// Starts the command on the host's own file system.
    fn start_unmounted(&self) -> Failed {
        let build = || {
            if self.orders.enforcement == Enforcement::Namespaces
                && self.orders.plan.network == Net::Own
            {
                let empty = EmptyNetwork::create()?;
                self.enter_network(Some(OwnNetwork::listen(empty, &self.orders.plan)?))?;
            }
            let mut landlock = self.landlock_rules()?;
            for piece in &self.orders.plan.pieces {
                landlock.iter_mut().try_for_each(|rules| rules.allow_there(piece))?;
            }
            let program = self.program(None);
            Ok(Built { missing: Vec::new(), landlock, umask: None, program, rest: None })
        };
        match build() {
            Ok(built) => self.start(built),
            Err(failed) => failed,
        }
    }

    /// `None` where Landlock is not available, or is left out.
    fn landlock_rules(&self) -> Result<Option<LandlockRules<'_>>, Failed> {
        if self.omits(Layer::Landlock) {
            return Ok(None);
        }
        LandlockRules::new(&self.orders.plan, self.orders.enforcement)
    }

    fn enter_network(&self, network: Option<OwnNetwork>) -> Result<(), Failed> {
        let Some(network) = network else { return Ok(()) };
        network.enter().map_err(|error| Failed::new(Step::Namespaces, error))?;
        for some in network.listeners.descriptors().chunks(sys::MOST_DESCRIPTORS) {
            self.send(&Message::Listeners, some)?;
        }
        let unconnected: Vec<_> = network.listeners.unconnected.iter().map(AsFd::as_fd).collect();
        for some in unconnected.chunks(sys::MOST_DESCRIPTORS) {
            self.send(&Message::Unconnected, some)?;
        }
        network
            .sock_diag
            .iter()
            .try_for_each(|sock_diag| self.send(&Message::SockDiag, &[sock_diag.descriptor()]))
    }

    fn mount_root<'b>(&self, staging: Staging<'b>) -> Result<(Mounts<'b>, Deferred<'b>), Failed> {
        let root_fs = if self.orders.attribution == Attribution::Tripwire {
            RootFs::Tripwire
        } else {
            RootFs::Empty
        };
        // The supervisor alone serves the tripwire: a copy of the device in this process would keep
        // the mount alive after the supervisor has died.
        staging.mount_root(&root_fs, self.user, |device| {
            // Sent before the mount, so that the supervisor serves the first request.
            self.send(&Message::Device, &[device.as_fd()])
        })
    }

    fn send_trees(&self, trees: &[(usize, OwnedFd)]) -> Result<(), Failed> {
        for some in trees.chunks(sys::MOST_DESCRIPTORS) {
            let numbers = some.iter().map(|(number, _)| *number).collect();
            let views: Vec<_> = some.iter().map(|(_, view)| view.as_fd()).collect();
            self.send(&Message::Trees(numbers), &views)?;
        }
        Ok(())
    }

    fn send_views(&self) -> Result<(), Failed> {
        let failed = |error: rustix::io::Errno| Failed::new(Step::Processes, error.into());
        let processes = rustix::fs::open("/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(failed)?;
        // On any other file system the supervisor could end up waiting for itself.
        if rustix::fs::fstatfs(&processes).map_err(failed)?.f_type != PROC_SUPER_MAGIC {
            return Err(failed(rustix::io::Errno::NODEV));
        }
        let namespaces =
            RunNamespaces::here().map_err(|error| Failed::new(Step::Namespaces, error))?;
        let [user, mount] = namespaces.descriptors();
        let root = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| Failed::new(Step::Root, error.into()))?;
        self.send(&Message::Views, &[user, mount, root.as_fd(), processes.as_fd()])
    }

    fn send(&self, message: &Message, descriptors: &[BorrowedFd<'_>]) -> Result<(), Failed> {
        ipc::send(&self.socket, message, descriptors).map_err(|error| Failed::new(Step::Ipc, error))
    }

    fn start(&self, built: Built<'_>) -> ! {
        // The run must not read this process's memory or environment.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
        if !self.omits(Layer::Environment) {
            sys::wipe_environment();
        }
        if let Err(failed) = drop_capabilities() {
            self.fail(failed);
        }
        if self.orders.enforcement == Enforcement::Landlock {
            self.start_and_outlive(built);
        }
        // Dropping capabilities has cleared the parent-death signal.
        if let Err(error) = sys::die_with_parent() {
            self.fail(Failed::new(Step::ParentDeath, error));
        }
        let command = if self.forks() {
            self.fork_command(built)
        } else {
            sys::start_on_our_memory(|| self.become_command(built))
        };
        match command {
            Ok(command) => self.wait(command),
            Err(error) => self.fail(Failed::new(Step::Fork, error)),
        }
    }

    /// Whether the command starts in a forked process, with its own copy of the memory. Where
    /// `execve` is intercepted, the supervisor reads the arguments from the calling process, and the
    /// memory of this one is not readable.
    fn forks(&self) -> bool {
        self.orders.enforcement == Enforcement::Landlock
            || self.orders.attribution == Attribution::Notify
    }

    fn fork_command(&self, built: Built<'_>) -> io::Result<i32> {
        match sys::fork()? {
            Some(command) => Ok(command),
            None => {
                // Readable again: the supervisor must see the arguments of intercepted calls.
                let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable);
                self.become_command(built)
            }
        }
    }

    /// Without a PID namespace, no other process ends with this one. So it must survive the
    /// supervisor, and signals to the supervisor's process group must not reach it.
    fn prepare_to_outlive(&self) -> Result<(), Failed> {
        rustix::process::setpgid(None, None)
            .map_err(|error| Failed::new(Step::ParentDeath, error.into()))?;
        sys::adopt_orphans().map_err(|error| Failed::new(Step::ParentDeath, error))?;
        if let Some(landlock_only) = self.landlock_only {
            landlock_only.make().map_err(|error| Failed::new(Step::Storage, error))?;
        }
        Ok(())
    }

    /// Waits for the supervisor's end as well, and then kills everything itself.
    fn start_and_outlive(&self, built: Built<'_>) -> ! {
        let ends = match sys::signal_descriptor(&[libc::SIGCHLD]) {
            Ok(ends) => ends,
            Err(error) => self.fail(Failed::new(Step::ParentDeath, error)),
        };
        let command = match self.fork_command(built) {
            Ok(command) => command,
            Err(error) => self.fail(Failed::new(Step::Fork, error)),
        };
        loop {
            let mut events = [
                PollFd::new(&ends, PollFlags::IN),
                // Nothing is read here: messages are for the command. Only a hang-up matters.
                PollFd::new(&self.socket, PollFlags::empty()),
            ];
            let _ = rustix::event::poll(&mut events, None);
            let [ended, left] = &events;
            if !left.revents().is_empty() {
                sys::kill_descendants(&[]);
                self.exit_after_all();
            }
            if ended.revents().is_empty() {
                continue;
            }
            while sys::next_signal(ends.as_fd()).is_some() {}
            while let Ok((pid @ 1.., status)) = sys::wait_any_now() {
                // The supervisor kills this process after all others.
                self.report_status(command, pid, status);
            }
        }
    }

    /// The first process of a PID namespace inherits every orphan, and its end kills all others.
    fn wait(&self, command: i32) -> ! {
        // The supervisor may be busy on that processor when this process ends.
        self.cpu_affinity.restore();
        loop {
            match sys::wait_any() {
                Ok((pid, status)) => {
                    if self.report_status(command, pid, status) {
                        sys::exit_now(0);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => sys::exit_now(1),
            }
        }
    }

    /// Reports a change of the command's state. Returns whether the command has ended.
    fn report_status(&self, command: i32, pid: i32, status: i32) -> bool {
        if pid != command {
            return false;
        }
        let stopped = sys::is_stopped(status);
        let message = if stopped {
            Message::Stopped(sys::stop_signal(status))
        } else {
            Message::Exited(status)
        };
        let _ = ipc::send(&self.socket, &message, &[]);
        !stopped
    }

    fn become_command(&self, built: Built<'_>) -> ! {
        let failed = match self.confine(built) {
            Ok(()) => execute(&self.orders.plan, &self.orders.command, &self.inherited()),
            Err(failed) => failed,
        };
        self.fail(failed)
    }

    /// What only the process that becomes the command can do, up to the permission to start.
    fn confine(&self, built: Built<'_>) -> Result<(), Failed> {
        let Built { mut missing, landlock, umask, program, rest } = built;
        let _ = rustix::process::setpgid(None, None);
        if self.orders.enforcement == Enforcement::Landlock {
            sys::die_with_parent().map_err(|error| Failed::new(Step::ParentDeath, error))?;
        }
        self.limit().map_err(|error| Failed::new(Step::Limits, error))?;
        rustix::process::chdir(self.orders.plan.cwd.as_path()).map_err(|error| {
            Failed::new(Step::Directory, error.into()).about(self.orders.plan.cwd.to_string())
        })?;
        umask.map(rustix::process::umask);
        self.take_own_nulls();
        let landlock = landlock.map_or(Ok(0), LandlockRules::enforce)?;
        // The kernel takes a while to compile it; the second thread mounts meanwhile.
        program.map_or(Ok(()), |program| self.install(&program))?;
        // The self-test must see the file system as the command will.
        if let Some(rest) = rest {
            let lost = || Failed::new(Step::Mount, io::Error::other("a thread ended early"));
            missing.extend(rest.recv().map_err(|_| lost())?);
        }
        if !self.omits(Layer::Descriptors) {
            sys::close_on_exec_from(3).map_err(|error| Failed::new(Step::Descriptors, error))?;
        }
        sys::reset_signals();
        let test = self.try_forbidden();
        self.send(&Message::Ready { test, missing, landlock }, &[])?;
        match ipc::await_permission(&self.socket) {
            Ok(true) => {
                // Until now the supervisor answered, or waited for, most of what this process did.
                self.cpu_affinity.restore();
                Ok(())
            }
            _ => sys::exit_now(1),
        }
    }

    /// Root could change the mode of the host's `/dev/null` through a descriptor. The run's own
    /// device is the same, on a mount that cannot be changed.
    fn take_own_nulls(&self) {
        if self.user.0 != 0 || self.orders.enforcement == Enforcement::Landlock {
            return;
        }
        for (descriptor, mode) in stdio::nulls() {
            if let Ok(own) = rustix::fs::open("/dev/null", mode | OFlags::CLOEXEC, Mode::empty()) {
                sys::replace_standard(descriptor, own.as_fd());
            }
        }
    }

    fn limit(&self) -> io::Result<()> {
        let limits = &self.orders.plan.limits;
        // A core file would carry memory out of the run. With 1 instead of 0 there is none either, and
        // the kernel does not start the program that `core_pattern` may name, which runs on the host.
        sys::limit(Resource::Core, 1)?;
        // The kernel counts a user's pending signals in all namespaces together.
        sys::halve_limit(Resource::PendingSignals)?;
        sys::lower_limit(Resource::Descriptors, limits.descriptors)?;
        if let Some(size) = limits.file_size {
            sys::lower_limit(Resource::FileSize, size.0)?;
        }
        if self.orders.cgroup.is_empty() {
            if let Some(processes) = limits.processes {
                sys::lower_limit(Resource::Processes, u64::from(processes))?;
            }
            if let Some(memory) = limits.memory {
                sys::lower_limit(Resource::Data, memory.0)?;
            }
        }
        Ok(())
    }

    /// The seccomp filter, unless it is left out. The usual one may be there already.
    fn program(&self, usual: Option<Program>) -> Option<Program> {
        let program = || match (usual, self.closed(), self.watched()) {
            (Some(usual), closed, Some(watch)) if (closed, watch) == USUAL_FILTER => usual,
            (_, closed, Some(watch)) => seccomp::both(&closed, watch),
            (_, closed, None) => seccomp::closed(&closed),
        };
        (!self.omits(Layer::Seccomp)).then(program)
    }

    fn closed(&self) -> Closed {
        let sockets = match (self.orders.enforcement, self.orders.plan.network) {
            (Enforcement::Landlock, Net::Own) => Sockets::StreamsOnly,
            _ => Sockets::Ordinary,
        };
        let host_processes = self.orders.enforcement == Enforcement::Landlock;
        Closed { user_namespaces: false, sockets, host_processes }
    }

    fn watched(&self) -> Option<Watch> {
        match self.orders.attribution {
            Attribution::Tripwire if self.orders.performs_reads => Some(Watch::Opens),
            Attribution::Tripwire => Some(Watch::Changes),
            Attribution::Notify => Some(Watch::Everything),
            Attribution::Inferred => None,
        }
    }

    fn install(&self, program: &Program) -> Result<(), Failed> {
        let close = |program: &Program| {
            let done = sys::install_filter(&program.0, false);
            done.map(drop).map_err(|error| Failed::new(Step::Seccomp, error))
        };
        if self.watched().is_none() {
            return close(program);
        }
        match sys::install_filter(&program.0, true) {
            Ok(Some(listener)) => {
                self.send(&Message::SeccompListener, &[listener.as_fd()])?;
                if self.omits(Layer::Landlock) { Ok(()) } else { landlock::deny_names() }
            }
            // An outer sandbox holds the only listener that the kernel allows.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                close(&seccomp::closed(&self.closed()))?;
                self.send(&Message::NoSeccompListener, &[])
            }
            Ok(None) => {
                Err(Failed::new(Step::Watch, io::Error::other("the kernel gave no listener")))
            }
            Err(error) => Err(Failed::new(Step::Watch, error)),
        }
    }

    /// Tries what must fail, confined exactly as the command will be.
    fn try_forbidden(&self) -> SelfTest {
        let file = &self.orders.canary.file;
        let open = |flags: OFlags| {
            rustix::fs::open(file.as_path(), flags | OFlags::CLOEXEC, Mode::empty())
        };
        let mut tried =
            vec![(format!("writing {file}"), open(OFlags::WRONLY | OFlags::APPEND).is_err())];
        // Where the whole host can be read and no mounts hide parts of it, reading is allowed.
        if self.orders.enforcement == Enforcement::Namespaces
            || self.orders.plan.base == Base::Nothing
        {
            let denied = open(OFlags::RDONLY).is_err();
            tried.push((format!("reading {file}"), denied));
        }
        if self.orders.plan.network == Net::Own {
            let port = self.orders.canary.port;
            tried.push((format!("connecting to the host's 127.0.0.1:{port}"), !connects(port)));
        }
        SelfTest { tried }
    }
}

fn connects(port: u16) -> bool {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    );
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    socket.is_ok_and(|socket| rustix::net::connect(&socket, &address).is_ok())
}

/// Maps the user and group to themselves, and no others.
fn map_user((uid, gid): (u32, u32)) -> Result<(), Failed> {
    let write = |path: &str, text: String| {
        std::fs::write(path, text).map_err(|error| Failed::new(Step::IdMap, error))
    };
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Drops every capability for good, and every way to gain one.
fn drop_capabilities() -> Result<(), Failed> {
    use rustix::thread::{CapabilitiesSecureBits as Bits, CapabilitySet, CapabilitySets};
    let fail = |error: rustix::io::Errno| Failed::new(Step::Capabilities, error.into());
    rustix::thread::set_no_new_privs(true).map_err(fail)?;
    // A process that may not do this has no capabilities to lose.
    let _ = rustix::thread::set_capabilities_secure_bits(
        Bits::NO_ROOT | Bits::NO_ROOT_LOCKED | Bits::NO_SETUID_FIXUP | Bits::NO_SETUID_FIXUP_LOCKED,
    );
    sys::drop_bounding_set();
    let _ = rustix::thread::clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, none).map_err(fail)
}

/// Replaces this process by the command. Returns only if that fails.
fn execute(plan: &Plan, command: &[OsString], inherited: &[(OsString, OsString)]) -> Failed {
    let text = |text: &OsStr| CString::new(text.as_bytes()).unwrap_or_default();
    let arguments: Vec<_> = command.iter().map(|word| text(word)).collect();
    let variables = plan.environment.iter().chain(inherited);
    let environment: Vec<_> = variables
        .map(|(name, value)| {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            text(&pair)
        })
        .collect();
    let pointers = |texts: &[CString]| {
        let null = std::iter::once(std::ptr::null());
        texts.iter().map(|text| text.as_ptr()).chain(null).collect::<Vec<_>>()
    };
    let Some(program) = command.first() else {
        return Failed::new(Step::Execute, io::Error::from_raw_os_error(libc::ENOENT));
    };
    let (argv, envp) = (pointers(&arguments), pointers(&environment));
    let mut error = io::Error::from_raw_os_error(libc::ENOENT);
    for candidate in programs(program, &plan.environment) {
        let tried = sys::execute(&text(candidate.as_os_str()), &argv, &envp);
        // The error of a program that exists but cannot be executed is more useful.
        if tried.kind() != io::ErrorKind::NotFound && tried.kind() != io::ErrorKind::NotADirectory {
            error = tried;
        }
    }
    Failed::new(Step::Execute, error).about(program.to_string_lossy().into_owned())
}

/// The paths to try for a program: the name itself, or the directories of `PATH`.
fn programs(program: &OsStr, environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    if program.is_empty() || program.as_bytes().contains(&b'/') {
        return vec![program.into()];
    }
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    let dirs = path.into_iter().flat_map(std::env::split_paths);
    dirs.filter(|dir| dir.is_absolute()).map(|dir| dir.join(Path::new(program))).collect()
}
