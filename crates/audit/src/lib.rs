//! The audit: an append-only, hash-chained log of every decision.
//!
//! Owns the files of the log: how many short-lived processes write them at once, how the log is
//! repaired after a crash, how a change is detected, and which secrets are removed before anything
//! is written ([`redact`]). It makes no decisions and does not read the clock: the caller gives the
//! time.
//!
//! # What the log proves
//!
//! Every line carries the hash of the line before it, and the file `head` carries the hash of the
//! last one. So [`Log::verify`] detects a changed, removed, moved or inserted line, and a cut end.
//! A process that can write the directory can also write a whole new chain with its head. That is
//! detected only by comparing with a head that was stored elsewhere.
//!
//! Appending does not flush to the disk. A process that is killed at any point leaves a log that the
//! next append continues. A power cut can lose the newest records; verification then reports it.

mod append;
mod chain;
mod directory;
mod entry;
mod head;
mod lines;
mod log;
mod query;
mod record;
mod redact;
mod resume;
mod snapshot;
mod trace;
mod verify;

pub use append::{AppendError, Appended};
pub use directory::OpenError;
pub use entry::{Entry, HeadLoss, Line};
pub use log::Log;
pub use model::{Digest, NotADigest};
pub use query::{Filter, Found};
pub use record::redact_record;
pub use redact::redact;
pub use snapshot::ReadError;
pub use verify::{Fault, Report};
