//! [`Observer`]: what the proxy reports to its owner.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use model::{Caller, Reason};
use tokio::sync::oneshot;

/// Gets a report of every connection and every denial.
///
/// Denials, including those of DNS lookups, are reported on a separate thread and may block, while
/// the client waits. Everything else is reported on the proxy's own thread and must be quick.
pub trait Observer: Send + Sync {
    /// A connection was denied. The client has not been answered yet.
    fn refused(&self, refusal: &Refusal) -> Answer;

    /// An allowed connection is about to be made. It carries no data until `hold` is dropped. Either
    /// [`Self::closed`] or [`Self::failed`] follows.
    fn opening(&self, number: u64, client: &Caller, hold: ClientHold) {
        let _ = (number, client, hold);
    }

    /// A connection that was about to be made failed.
    fn failed(&self, number: u64) {
        let _ = number;
    }

    /// A client looked up a name that is not allowed. It gets the answer "no such name" once this
    /// returns.
    fn looked_up(&self, name: &str, client: &Caller) {
        let _ = (name, client);
    }

    /// A client sent bytes that are not valid in its protocol.
    fn malformed(&self, client: &Caller, why: &str) {
        let _ = (client, why);
    }

    /// A connection to a server ended.
    fn closed(&self, connection: &Connection) {
        let _ = connection;
    }
}

/// Delays a client until this is dropped. A client that is served at once may exit before its process
/// can be found.
#[derive(Debug)]
pub struct ClientHold {
    _client: oneshot::Sender<()>,
}

impl ClientHold {
    /// Together with the receiver that waits for the drop.
    pub(crate) fn new() -> (Self, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self { _client: sender }, receiver)
    }
}

/// What the proxy does after a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The client gets an answer that says why.
    Refuse,
    /// The run is being stopped: the client gets no answer, and all connections end.
    Stop,
}

/// A connection that was not made, or was ended before anything reached the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The host, or the text that is not a valid host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How the client reached the proxy.
    pub route: Route,
    /// The client.
    pub client: Caller,
    /// The rule, where it is set, why, and what to do instead.
    pub reason: Reason,
}

/// A connection that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Its number, as reported when it was about to be made.
    pub number: u64,
    /// The host that the client requested; of a published port, the client's own.
    pub host: String,
    /// The port; of a published port, the one inside.
    pub port: u16,
    /// How the client reached the proxy.
    pub route: Route,
    /// The client.
    pub client: Caller,
    /// The address that was dialled: the server's, or the upstream proxy's. Of a published port, the
    /// one outside.
    pub address: SocketAddr,
    /// Bytes from the client to the server.
    pub sent: u64,
    /// Bytes from the server to the client.
    pub received: u64,
    /// How long it was open.
    pub duration: Duration,
}

/// How a client reached the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// A plain HTTP request to the proxy.
    Http,
    /// CONNECT.
    Connect,
    /// SOCKS 5.
    Socks,
    /// A connection to a made-up address.
    Transparent,
    /// From the host, to a published port.
    Published,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Connect => "connect",
            Self::Socks => "socks",
            Self::Transparent => "transparent",
            Self::Published => "published",
        })
    }
}
