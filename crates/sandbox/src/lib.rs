//! The wall: a plan becomes namespaces, mounts, Landlock and seccomp around a process tree.
//!
//! The only crate with unsafe code. It decides nothing: what is allowed stands in the plan, and
//! what a refused attempt means is asked of the caller.

mod attempt;
pub mod calls;
pub mod filter;
pub mod tripwire;

pub use attempt::{Attempt, Operation};
