//! A run as a library: from a [`Request`] to a [`Report`], with [`Event`]s on the way.
//!
//! ```text
//! Request -> prepare: config, checks, survey, plan     (changes nothing on the machine)
//!         -> execute: sandbox + monitor                events: started, violation, connection …
//!         -> sweep                                     events: tampering, build_files_changed
//!         -> Report                                    event: stopped
//! ```
//!
//! ```no_run
//! use ringwall_run::{Event, Request, STOPPED, spawn};
//!
//! # fn main() -> Result<(), ringwall_run::Error> {
//! let mut request = Request::new(["make", "test"]);
//! request.options.workspace = Some("/home/me/project".into());
//! let mut run = spawn(&request)?;
//! for event in &mut run {
//!     if let Event::Violation { violation, .. } = event {
//!         eprintln!("{:?}: {}", violation.operation, violation.path);
//!     }
//! }
//! let report = run.wait()?;
//! assert_ne!(report.exit, STOPPED, "a violation stopped the command");
//! # Ok(())
//! # }
//! ```
//!
//! The configuration of the user and of the project applies as it does for `ringwall run`. The command
//! inherits standard input, output and error from the calling program.
//!
//! [`run`] runs in the calling process, which must have one thread. [`spawn`] starts a supervisor
//! process of its own for each run, also from a program with threads; it says what that program must
//! not do. Nothing here writes to a terminal: what a user should read is in the report.

mod answer;
mod aside;
mod bounded;
mod build_files;
mod checkout;
mod checks;
mod committed;
mod created;
mod events;
mod execute;
mod frozen;
mod git_locks;
mod git_state;
mod hard_links;
mod host_permissions;
mod kept;
mod later;
mod layers;
mod learn;
mod lossless;
mod monitor;
mod network;
mod new_names;
mod note;
mod place;
mod prepare;
mod private_files;
mod publish;
mod references;
mod remedies;
mod report;
mod request;
mod scan;
mod sockets;
mod spawn;
mod survey;
mod suspects;
mod sweep;
mod user;
mod worktree;
mod writer;

pub use agents::Agent;
pub use answer::Answer;
pub use build_files::{BuildFileChange, Change};
pub use checks::socket_named;
pub use config::setup::Options;
pub use events::{
    Changed, Class, Counts, Ending, Event, KeptAside, KeptName, Mechanism, Tampering, Violation,
};
pub use execute::{ALLOW_NOTE, RUN_ENDED, run};
pub use kept::{Kept, KeptFile};
pub use layers::{Removed, Which, remove_layers};
pub use model::{Level, Plan, Reason, Remedy, Rule};
pub use monitor::{Observer, Sink};
pub use note::{Recovered, recover};
pub use policy::ViolationAction;
pub use prepare::{Prepared, prepare};
pub use report::{Report, STOPPED};
pub use request::{Error, ErrorKind, Request};
pub use sandbox::{
    Attribution, Available, Enforcement, Lack, Operation, Program, Requested, Usage,
};
pub use spawn::{Canceller, Handle, spawn};
pub use suspects::Suspect;
pub use writer::Writer;
