//! What the proxy tells its owner, and what it asks.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use model::Reason;

/// Hears of every connection and every refusal.
///
/// Refusals, also of names, and new connections are told on a thread of their own and may take their
/// time: the client waits. Everything else is told on the proxy's own thread and must be quick.
pub trait Observer: Send + Sync {
    /// A connection was refused. The client has heard nothing yet.
    fn refused(&self, refusal: &Refusal) -> Answer;

    /// A connection to a server was made; it carries nothing until this returns.
    fn opened(&self, client: SocketAddr) {
        let _ = client;
    }

    /// A name was looked up that is not allowed; the client learns that it does not exist once
    /// this returns.
    fn looked_up(&self, name: &str, client: SocketAddr) {
        let _ = (name, client);
    }

    /// A client said something that is no proper protocol.
    fn malformed(&self, client: SocketAddr, why: &str) {
        let _ = (client, why);
    }

    /// A connection to a server came to its end.
    fn closed(&self, connection: &Connection) {
        let _ = connection;
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
    /// The client's end of its connection, inside the wall.
    pub client: SocketAddr,
    /// The rule, where it stands, why, and the way out.
    pub reason: Reason,
}

/// A connection that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The host that was asked for.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How the client came here.
    pub route: Route,
    /// The client's end of its connection, inside the wall.
    pub client: SocketAddr,
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
