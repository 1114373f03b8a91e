//! HTTP/1 without TLS.
//!
//! `head`, `response` and `body` parse messages and do no I/O. `serve` judges a client's requests one
//! by one, and `exchange` sends each to its server and the response back. A message that two parsers
//! could read differently is rejected: request smuggling could otherwise reach a host that is not
//! allowed.

pub(crate) mod body;
mod exchange;
pub(crate) mod head;
pub(crate) mod reply;
pub(crate) mod response;
pub(crate) mod serve;
mod transfer;

/// A longer head is rejected.
pub(crate) const HEAD_LIMIT: usize = 64 * 1024;
