//! `ringwall run`, between the policy and the kernel: looks at the machine, rules on what is
//! refused, tells what happened, and clears up.

mod births;
pub(crate) mod events;
mod finds;
mod git_config;
pub(crate) mod keeper;
mod learn;
pub(crate) mod made;
mod network;
mod report;
pub(crate) mod survey;
pub(crate) mod sweep;
mod who;
mod worktree;

pub(crate) use report::{STOPPED, ended, not_built, refusal};
