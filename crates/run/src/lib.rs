//! A run as a library: from a [`Request`] to a [`Report`], with [`Event`]s on the way.
//!
//! ```text
//! Request -> prepare: config, checks, survey, plan     (changes nothing on the machine)
//!         -> execute: sandbox + monitor                events: started, violation, connection …
//!         -> sweep                                     events: tampering
//!         -> Report                                    event: stopped
//! ```
//!
//! [`run`] runs in the calling process, which must have one thread. [`spawn`] starts a supervisor
//! process of its own for each run and works from any program. Nothing here writes to a terminal:
//! what a user should read is in the report.

mod checks;
mod created;
mod events;
mod execute;
mod learn;
mod monitor;
mod network;
mod new_names;
mod prepare;
mod report;
mod request;
mod scan;
mod spawn;
mod survey;
mod sweep;
mod user;
mod worktree;
mod writer;

pub use events::{Class, Counts, Ending, Event, Mechanism, Tampering, Violation};
pub use execute::run;
pub use monitor::Sink;
pub use prepare::{Prepared, prepare};
pub use report::{Report, STOPPED};
pub use request::{Error, ErrorKind, Request};
pub use spawn::{Canceller, Handle, spawn};
pub use writer::Writer;
