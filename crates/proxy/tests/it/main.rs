//! The proxy over real sockets: what passes, what is refused, and what it withstands.

#![expect(clippy::missing_panics_doc, reason = "checks are there to panic")]

mod hostile;
mod http;
mod load;
mod names;
mod spellings;
mod support;
mod tls;
mod transparent;
mod upstream;
