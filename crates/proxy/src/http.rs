//! HTTP/1 in the clear.
//!
//! `head` and `body` read messages and do no I/O; `serve` carries requests and responses between a
//! client and the servers it asks for. Whatever two readers could read differently is refused: a
//! request that is smuggled past this reader would reach a host that nobody granted.

pub(crate) mod body;
pub(crate) mod head;
pub(crate) mod reply;
pub(crate) mod response;
pub(crate) mod serve;

/// A head that is longer is refused.
pub(crate) const HEAD_LIMIT: usize = 64 * 1024;
