//! The audit: an append-only, hash-chained log of every decision.
//!
//! Owns the log's files, how many short-lived processes write them at once, how a crash is
//! repaired, how a change is found, and what must never reach the disk ([`redact`]). Does not
//! decide anything, and does not read the clock: the caller says when.
//!
//! # What the log proves
//!
//! Every line carries the hash of the line before it, and the file `head` carries the hash of the
//! last one. A changed, removed, moved or inserted line, or a cut end, therefore shows in
//! [`Log::verify`]. Whoever can write the directory can also write a whole new chain with its
//! head, and that shows only against a head that was noted elsewhere.
//!
//! Nothing is flushed to the disk on each call. A process that is killed at any point leaves a log
//! that the next append continues; a power cut may lose the newest records, and the verification
//! then says so.

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
