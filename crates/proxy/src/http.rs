//! HTTP/1 in the clear.
//!
//! `head`, `response` and `body` read messages and do no I/O; `serve` judges a client's requests one
//! by one, `exchange` carries each to its server and the answer back. Whatever two readers could
//! read differently is refused: a request that is smuggled past this reader would reach a host that
//! nobody granted.

pub(crate) mod body;
mod exchange;
pub(crate) mod head;
pub(crate) mod reply;
pub(crate) mod response;
pub(crate) mod serve;
mod transfer;

/// A head that is longer is refused.
pub(crate) const HEAD_LIMIT: usize = 64 * 1024;
