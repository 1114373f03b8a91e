//! [`Caller`]: a client inside the sandbox that connected to a listener of the run's network.

use std::net::SocketAddr;

/// A client of a listener, by both ends of its connection. Together they name one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The protocol.
    pub transport: Transport,
    /// The client's own end.
    pub end: SocketAddr,
    /// The listener's end.
    pub listener: SocketAddr,
}

/// How bytes are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// As a stream.
    Tcp,
    /// As datagrams.
    Udp,
}
