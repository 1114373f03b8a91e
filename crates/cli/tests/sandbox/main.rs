//! The wall, tried from inside by real programs, as root and as an ordinary user.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::duration_suboptimal_units,
    clippy::indexing_slicing,
    clippy::manual_is_multiple_of,
    clippy::needless_for_each,
    clippy::redundant_closure_for_method_calls,
    clippy::redundant_closure,
    clippy::print_stderr,
    reason = "in a test, a failed step should stop the test"
)]

mod after_a_crash;
mod bounded;
mod checkout;
mod claude;
mod crowd;
mod cycle;
mod daily;
mod death;
mod degrade;
mod denials;
mod escapes;
mod existence;
mod faults;
mod git;
mod git_links;
mod git_settings;
mod git_state;
mod grants;
mod host_permissions;
mod host_replaces;
mod hostile;
mod interactive;
mod kept;
mod layers;
mod limits;
mod names;
mod network;
mod other_names;
mod performed_calls;
mod phases;
mod planted;
mod private_layers;
mod projects;
mod shared_limits;
mod small_holes;
mod soak;
mod spares;
mod toolchain_secrets;
mod tools;
mod traces;
mod tty;
mod unix_sockets;
mod variables;
mod work;
