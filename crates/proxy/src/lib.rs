//! The network boundary of a run.
//!
//! The net namespace of a run holds loopback and nothing else. Its listening sockets are made
//! inside and handed here as descriptors, so every connection out of it arrives in this crate: from
//! clients that know a proxy as HTTP, CONNECT or SOCKS 5 on one port, from all others through names
//! that resolve to made-up addresses, on the granted ports. All of them end in the same questions
//! to [`policy`]; this crate decides nothing itself, and writes nothing but bytes to sockets.
//!
//! ```text
//! client -> accept -> HTTP | SOCKS | transparent -> policy::connect -> dial (policy::dial) -+
//!                                                                                          |
//! server <- relay <- policy::server_name | policy::request_host <- sniff <- first bytes <---+
//! ```
//!
//! Everything from inside is hostile: heads, connections and memory are bounded, and whatever could
//! be read in two ways is refused. Loopback inside the namespace is not ours and never seen here.
//!
//! What this cannot see: the request inside TLS, so a server that serves several names under one
//! certificate may serve any of them; and the address behind a name when the user's own environment
//! names an upstream proxy, which then does the resolving.

mod client;
mod core;
mod dial;
mod dns;
mod gate;
mod http;
mod observer;
mod relay;
mod rules;
mod running;
mod sniff;
mod socks;
mod tls;
mod tunnel;
mod upstream;
mod wire;

pub use observer::{Answer, Connection, Heard, Observer, Refusal, Route};
pub use rules::{Resolve, Rules, SystemResolver};
pub use running::{Ended, Listeners, Place, Proxy, Running};
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
