//! What the proxy tells its owner, and what it asks.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use model::{Caller, Reason};
use tokio::sync::oneshot;

/// Hears of every connection and every refusal.
///
/// Refusals, also of names, are told on a thread of their own and may take their time: the client
/// waits. Everything else is told on the proxy's own thread and must be quick.
pub trait Observer: Send + Sync {
    /// A connection was refused. The client has heard nothing yet.
    fn refused(&self, refusal: &Refusal) -> Answer;

    /// A client may have the connection it asks for, which is about to be made. It carries nothing
    /// until `heard` is dropped. Either [`Self::closed`] or [`Self::failed`] follows.
    fn opening(&self, number: u64, client: &Caller, heard: Heard) {
        let _ = (number, client, heard);
    }

    /// A connection that was about to be made was not.
    fn failed(&self, number: u64) {
        let _ = number;
    }

    /// A name was looked up that is not allowed; the client learns that it does not exist once
    /// this returns.
    fn looked_up(&self, name: &str, client: &Caller) {
        let _ = (name, client);
    }

    /// A client said something that is no proper protocol.
    fn malformed(&self, client: &Caller, why: &str) {
        let _ = (client, why);
    }

    /// A connection to a server came to its end.
    fn closed(&self, connection: &Connection) {
        let _ = connection;
    }
}

/// Holds a client back as long as somebody holds this: one that is served at once is gone before
/// anybody can see who it was.
#[derive(Debug)]
pub struct Heard {
    _client: oneshot::Sender<()>,
}

impl Heard {
    /// With what waits for its end.
    pub(crate) fn new() -> (Self, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self { _client: sender }, receiver)
    }
}

/// What a refusal leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The client is told why.
    Refuse,
    /// Everything is being stopped: the client hears nothing, and all connections end.
    Stop,
}

/// A connection that was not made, or was ended before anything reached the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The host, or the text that names none.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How the client came here.
    pub route: Route,
    /// Who asked for it.
    pub client: Caller,
    /// The rule, where it stands, why, and the way out.
    pub reason: Reason,
}

/// A connection that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Its number, as it was told when it was about to be made.
    pub number: u64,
    /// The host that was asked for.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How the client came here.
    pub route: Route,
    /// Who asked for it.
    pub client: Caller,
    /// The address that was dialled: the server's, or the upstream proxy's.
    pub address: SocketAddr,
    /// Bytes from the client to the server.
    pub sent: u64,
    /// Bytes from the server to the client.
    pub received: u64,
    /// How long it stood.
    pub duration: Duration,
}

/// How a client came to the proxy.
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
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Connect => "connect",
            Self::Socks => "socks",
            Self::Transparent => "transparent",
        })
    }
}
