//! A caller with several threads starts a run in a process of its own, and ends it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use model::{
    AbsPath, Base, Caller, Kind, Level, Limits, Link, Net, OutboundPorts, Piece, Plan,
    PrivateLayer, Unresolvable, WhyTemporary,
};
use ringwall_sandbox::{
    self as sandbox, Attempt, Available, Canary, End, Enforcement, Journal, Launch, Links,
    Listeners, NetworkEvents, Operation, Program, Requested, Rules, Ruling, SelfTest,
};
use rustix::process::{Pid, WaitOptions};

/// Denies everything, and says on a pipe that the command has started.
struct Strict(std::fs::File);

impl Rules for Strict {
    fn resolve(&mut self, path: &Path, _: Links<'_>) -> Result<AbsPath, Unresolvable> {
        AbsPath::lexical(path).map_err(|error| Unresolvable::Refused(error.to_string()))
    }
    fn is_probe(&self, _: &AbsPath, _: Operation) -> bool {
        false
    }
    fn is_guarded(&mut self, _: &AbsPath, _: Operation) -> bool {
        false
    }
    fn is_draft(&self, _: &AbsPath) -> bool {
        false
    }
    fn is_lock_only(&self, _: &AbsPath) -> bool {
        false
    }
    fn directories_to_watch(&mut self) -> (Vec<PathBuf>, bool) {
        (Vec::new(), false)
    }
    fn is_hidden(&mut self, _: &Path) -> bool {
        false
    }
    fn deny(&mut self, _: &Attempt, _: &Program) -> Ruling {
        Ruling::Errno(rustix::io::Errno::ACCESS.raw_os_error())
    }
    fn deny_connection(&mut self, _: SocketAddr, _: &Program) -> Ruling {
        Ruling::Errno(rustix::io::Errno::NETUNREACH.raw_os_error())
    }
}

impl Journal for Strict {
    fn started(&mut self, _: &Available, _: &SelfTest, _: &[String]) {
        self.0.write_all(b"s").unwrap();
    }
    fn probed(&mut self, _: &Attempt, _: &Program) {}
}

impl NetworkEvents for Strict {
    fn serve(&mut self, _: Listeners) -> io::Result<()> {
        Ok(())
    }
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
    fn handle(&mut self, _: &dyn Fn(&Caller) -> Program) -> Ruling {
        Ruling::Continue
    }
}

fn path(path: impl AsRef<Path>) -> AbsPath {
    AbsPath::lexical(path.as_ref()).unwrap()
}

/// Programs of the system, and nothing else.
fn plan() -> Plan {
    let piece = |(at, kind, directory): (&str, Kind, bool)| Piece {
        path: path(at),
        kind,
        directory,
        why: model::Cause::Workspace,
    };
    let pieces = [
        ("/dev", Kind::Scratch, true),
        ("/dev/null", Kind::Device, false),
        ("/proc", Kind::Processes, true),
        ("/tmp", Kind::Scratch, true),
        ("/usr", Kind::Read, true),
    ];
    let links = ["/bin", "/lib", "/lib64"];
    let link = |at: &str| {
        let target = std::fs::read_link(at).ok()?;
        Some(Link { path: path(at), target })
    };
    Plan {
        cwd: path("/tmp"),
        workspace: path("/tmp"),
        home: path("/tmp"),
        level: Level::Readwrite,
        base: Base::Nothing,
        pieces: pieces.map(piece).to_vec(),
        links: links.into_iter().filter_map(link).collect(),
        copies: Vec::new(),
        granted_later: Vec::new(),
        publish: Vec::new(),
        unix_sockets: Vec::new(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        network: Net::Own,
        ports: OutboundPorts::default(),
        limits: Limits {
            memory: None,
            private_files: None,
            processes: None,
            asked: false,
            file_size: None,
            descriptors: 1024,
            wall_seconds: None,
            idle_seconds: None,
        },
        layer: PrivateLayer::Temporary(WhyTemporary::Fresh),
    }
}

/// What the supervisor exits with, by how its run ended.
const CANCELLED: u8 = 3;
const OTHER: u8 = 4;
const NO_SANDBOX: u8 = 5;

fn supervise(stop: &OwnedFd, started: std::fs::File) -> u8 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    let canary = Canary { file: path(outside.path()), port: listener.local_addr().unwrap().port() };
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let launch = Launch {
        plan: &plan(),
        command: &[OsString::from("sleep"), "600".into()],
        requested: Requested::default(),
        minimum: Enforcement::Namespaces,
        canary: &canary,
        user: (user.as_raw(), group.as_raw()),
        hides_new_files: false,
        program_dirs: &[],
        performs_reads: false,
        meanwhile: None,
        stop: Some(stop.as_fd()),
    };
    match sandbox::run(&launch, None, &mut Strict(started)) {
        Ok(outcome) if outcome.end == End::Cancelled => CANCELLED,
        Ok(_) => OTHER,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error:?}");
            NO_SANDBOX
        }
    }
}

/// Starts a supervisor, and waits until its command runs.
fn start(stop: &OwnedFd) -> (OwnedFd, i32) {
    let (started, starter) = rustix::pipe::pipe().unwrap();
    let starter = std::fs::File::from(starter);
    let stop = stop.try_clone().unwrap();
    let supervisor = sandbox::fork_supervisor(move || supervise(&stop, starter)).unwrap();
    let mut byte = [0];
    let read = std::fs::File::from(started).read(&mut byte).unwrap();
    assert_eq!((read, byte), (1, *b"s"), "the command was not started");
    supervisor
}

fn exit_status(pid: i32) -> Option<i32> {
    let pid = Pid::from_raw(pid);
    rustix::process::waitpid(pid, WaitOptions::empty()).unwrap().unwrap().1.exit_status()
}

fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap()
}

#[test]
fn a_run_ends_when_its_caller_says_so() {
    assert!(!sandbox::is_single_threaded(), "the test harness has threads");
    let stop = eventfd();
    let (_, pid) = start(&stop);
    rustix::io::write(&stop, &1_u64.to_ne_bytes()).unwrap();
    assert_eq!(exit_status(pid), Some(CANCELLED.into()));
}

#[test]
fn a_run_ends_with_the_process_that_forked_it() {
    let (ended, end) = rustix::pipe::pipe().unwrap();
    let (_, pid) = sandbox::fork_supervisor(move || {
        let (_, pid) = start(&eventfd());
        // Only the supervisor holds this end now, and with it what it started.
        drop(end);
        u8::from(pid <= 0)
    })
    .unwrap();
    assert_eq!(exit_status(pid), Some(0));
    let rest = std::fs::File::from(ended).read(&mut [0]).unwrap();
    assert_eq!(rest, 0, "the pipe ends when every process of the run has");
}
