//! The proxy over real sockets: what passes, what is refused, and what it withstands.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "checks, and what helps them, are there to fail"
)]

extern crate ringwall_proxy as proxy;

mod hostile;
mod http;
mod load;
mod names;
mod openings;
mod spellings;
mod support;
mod tls;
mod transparent;
mod upstream;
