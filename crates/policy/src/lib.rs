//! The rules, and the pure functions that judge a call by them.
//!
//! One pipeline serves the live hook, `explain` and the tests:
//!
//! ```text
//! tool call -> lower -> actions -> needs -> queries -> (the caller asks the machine)
//!                          \________________________________ facts -> evaluate -> Decision
//! ```
//!
//! Nothing here touches the file system, the environment or the clock. Nothing here can fail: a
//! denial is a result, and what cannot be known is a value.

mod build_files;
mod context;
mod dangerous;
mod evaluate;
mod lower;
mod needs;
mod network;
pub mod pattern;
pub mod protected;
mod rules;
mod settings;
mod shell;
mod sockets;
mod toolchain_files;

pub use build_files::{BuildFile, BuildFileTable, BuildFiles, build_files};
pub use context::{Context, HookedSettings, SettingsContext};
pub use dangerous::gives_too_much;
pub use evaluate::{evaluate, remedy, unix_remedy};
pub use lower::lower;
pub use needs::needs;
pub use network::{
    NetworkRules, ServerName, connect, dial, look_up, request_host, server_name, unreadable_host,
};
pub use pattern::{PathRule, PathRuleError};
pub use protected::{Acts, Cover, ProtectedName, protected_names, secret};
pub use rules::{
    AuditRules, Confinement, Environment, Filesystem, Git, Guard, Limits, Network, OnAuditFailure,
    OnError, Phase, Policy, Quarantine, QuarantineMode, Violation, ViolationAction,
};
pub use settings::{hooks_off, relocates_hook, wrong_shape};
pub use shell::{Outline, Scene, outline};
pub use sockets::{agent_sockets, gives_away};
pub use toolchain_files::{chooses_toolchain, names_no_program, toolchain_files};
