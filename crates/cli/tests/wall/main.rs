//! The wall, tried from inside by real programs, as root and as an ordinary user.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "in a test, a failed step should stop the test"
)]

mod claude;
mod crowd;
mod cycle;
mod death;
mod degrade;
mod escapes;
mod faults;
mod git;
mod layers;
mod layouts;
mod limits;
mod network;
mod phases;
mod projects;
mod tools;
mod traces;
mod tty;
mod work;
mod yard;
