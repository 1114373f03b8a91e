//! [`Warden`]: whoever knows the policy. The supervisor asks, and does what it is told.

use std::path::Path;

use model::{AbsPath, Caller};

use crate::available::{Available, SelfTest};
use crate::observe::program::Program;
use crate::{Attempt, Operation};

/// Where the link at a path leads for somebody inside, or why there is none, where that differs from
/// what stands there on the host.
pub type Links<'a> = &'a dyn Fn(&AbsPath) -> Option<std::io::Result<std::path::PathBuf>>;

/// Answers the supervisor's questions while a run goes on.
pub trait Warden {
    /// Where a path leads, with links followed: those of the host, and where the run sees something
    /// else, those it finds. `None` if that cannot be told.
    fn resolve(&mut self, path: &Path, links: Links<'_>) -> Option<AbsPath>;

    /// Whether trying this is habit: refused and noted, never a reason to stop.
    fn is_habit(&self, path: &AbsPath, operation: Operation) -> bool;

    /// Whether this must be refused although it is done to ground that can be written: a name that
    /// must not come into being, or go.
    fn is_guarded(&mut self, path: &AbsPath, operation: Operation) -> bool;

    /// Whether a file that cannot be made would be the next version of one that may be written.
    fn is_draft(&self, path: &AbsPath) -> bool;

    /// Whether a file that cannot be made would be a lock and nothing else. Whoever makes it gets
    /// one, and nothing comes of it.
    fn is_mere_lock(&self, path: &AbsPath) -> bool;

    /// The directories in which something may appear that must not be read.
    fn directories_to_watch(&mut self) -> Vec<std::path::PathBuf>;

    /// Whether something that appeared must not be read.
    fn is_hidden(&mut self, path: &Path) -> bool;

    /// Something was refused that counts.
    fn refused(&mut self, attempt: &Attempt, program: &Program) -> Ruling;

    /// Something was refused that does not count.
    fn probed(&mut self, attempt: &Attempt, program: &Program);

    /// Somebody inside wants out for the first time: the sockets of the run's network are the
    /// warden's from now on.
    fn knocked(&mut self, doors: crate::Listeners) -> std::io::Result<()>;

    /// What to wait on for news of the network.
    fn news(&self) -> Vec<std::os::fd::BorrowedFd<'_>>;

    /// Takes the news. `who` finds the program behind a caller.
    fn hear_news(&mut self, who: &dyn Fn(&Caller) -> Program) -> News;

    /// A connection outside the run's own network was tried.
    fn connected(&mut self, target: std::net::SocketAddr, program: &Program) -> Ruling;

    /// The wall stands and was tried from inside; the command is about to run.
    fn started(&mut self, got: &Available, test: &SelfTest, missing: &[String]);
}

/// What news of the network mean for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It goes on.
    GoOn,
    /// It ends: something was tried that must not be.
    Stop,
}

/// What becomes of the run after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// It goes on; the call fails with this error.
    Refuse(i32),
    /// It ends before the call returns.
    Stop,
}
