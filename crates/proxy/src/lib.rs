//! The network boundary of a run.
//!
//! The network namespace of a run has only a loopback interface. Its listening sockets are created
//! inside it and passed to this crate as file descriptors, so every connection out of the namespace
//! arrives here. Clients that are configured for a proxy use HTTP, CONNECT or SOCKS 5 on one port.
//! All others look up a name, get a made-up address for it, and connect to that address on an allowed
//! port. Every connection is judged by the same functions of [`policy`]; this crate decides nothing
//! itself, and writes nothing but bytes to sockets.
//!
//! ```text
//! client -> accept -> HTTP | SOCKS | transparent -> policy::connect -> dial (policy::dial) -+
//!                                                                                          |
//! server <- relay <- policy::server_name | policy::request_host <- sniff <- first bytes <---+
//! ```
//!
//! All input from the namespace is treated as hostile: the size of request heads, the number of
//! connections and the memory are limited, and input that can be read in two ways is rejected.
//! Connections between processes inside the namespace do not pass through here. Connections from the host
//! to a published port do, in the other direction; they are not judged, because the user asked for them.
//!
//! Limits: requests inside TLS are not visible, so a server with several names in one certificate
//! can serve any of them. If the user's environment sets an upstream proxy, that proxy resolves
//! names, so the address behind a name is not visible either.

mod client;
mod core;
mod dial;
mod dns;
mod gate;
mod http;
mod observer;
mod publish;
mod relay;
mod rules;
mod running;
mod sniff;
mod socks;
mod tls;
mod tunnel;
mod upstream;
mod wire;

pub use observer::{Answer, ClientHold, Connection, Observer, Refusal, Route};
pub use rules::{Resolve, Rules, SystemResolver};
pub use running::{Ended, Listeners, Place, Proxy, Published, Running};
pub use upstream::{Upstream, UpstreamError};

#[doc(hidden)]
pub mod testing {
    //! The parsers, for fuzzing.

    pub use crate::dns::message::{Code, Question};
    pub use crate::http::body::chunk_line;
    pub use crate::http::head::{Request, head_end};
    pub use crate::http::response::Response;
    pub use crate::sniff::sniff;
    pub use crate::socks::{greeting, request as socks_request};
    pub use crate::tls::{Hello, client_hello};
}
