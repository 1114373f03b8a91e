//! The wall: a plan becomes namespaces, mounts, Landlock and seccomp around a process tree.
//!
//! The only crate with unsafe code. It decides nothing: what is allowed stands in the plan, and
//! what a refused attempt means is asked of the caller.

mod acts;
mod ahead;
mod attempt;
pub mod calls;
mod cover;
mod diag;
mod doors;
mod drafts;
mod failure;
pub mod filter;
mod foreground;
mod got;
mod group;
mod inside;
mod late;
mod launch;
mod lock;
mod mounts;
mod network;
mod notify;
mod owners;
mod probe;
mod processors;
mod program;
mod rights;
mod skeleton;
mod standard;
mod supervisor;
mod sys;
mod talk;
mod terrain;
pub mod tripwire;
mod unmounted;
mod usage;
mod warden;

pub use acts::{Act, Targets, try_all};
pub use ahead::Ahead;
pub use attempt::{Attempt, Operation};
pub use doors::Doors;
pub use failure::{Failed, Step};
pub use got::{Asked, Attribution, Enforcement, Got, Lack, SelfTest};
pub use inside::{Canary, Layer};
pub use launch::{End, Launch, Outcome, WallError, run};
pub use program::Program;
pub use rights::version as landlock_version;
pub use sys::{borrow_descriptor, look_up_hosts_without_loading};
pub use usage::Usage;
pub use warden::{Links, News, Ruling, Warden};
