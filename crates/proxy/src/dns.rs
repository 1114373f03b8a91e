//! The DNS server of the sandbox.
//!
//! It resolves nothing. An allowed name gets a made-up address that exists only in the sandbox, and a
//! connection to that address shows which name was meant. No query leaves the machine.

pub(crate) mod book;
pub(crate) mod message;
pub(crate) mod serve;
