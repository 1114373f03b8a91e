//! The sandbox: a plan becomes namespaces, mounts, Landlock and seccomp around a process tree.
//!
//! The only crate with unsafe code, all of it in `sys.rs`. It makes no policy: the plan says what
//! is allowed, and a [`Monitor`] rules on every attempt that is not.
//!
//! - `child`: what runs in the first process of a run, up to `execve` of the command.
//! - `supervisor`: the event loop outside, and what it does for the run.
//! - `observe`: how an attempt becomes known (tripwire file system, seccomp notifications).
//! - `network`: the run's own network namespace and its listeners.

mod attempt;
mod available;
mod child;
mod failure;
mod forbidden_acts;
mod ipc;
mod launch;
mod monitor;
mod network;
mod observe;
mod probe;
mod supervisor;
mod sys;
mod test_hooks;

pub use attempt::{Attempt, Operation};
pub use available::{Attribution, Available, Enforcement, Lack, Requested, SelfTest};
pub use child::landlock::version as landlock_version;
pub use child::prefork::Prefork;
pub use child::{Canary, seccomp};
pub use failure::{Failed, Step};
pub use forbidden_acts::{Act, Targets, try_all};
pub use launch::{End, Launch, Outcome, SandboxError, run};
pub use monitor::{Journal, Links, Monitor, NetworkEvents, Rules, Ruling};
pub use network::listeners::Listeners;
pub use observe::program::Program;
pub use observe::{syscalls, tripwire};
pub use supervisor::diverted::Diverted;
pub use supervisor::usage::Usage;
pub use sys::{
    borrow_descriptor, end_is_wanted, fork_supervisor, is_single_threaded,
    look_up_hosts_without_loading,
};
