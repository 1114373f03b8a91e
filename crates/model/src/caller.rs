//! [`Caller`]: somebody inside who came to a socket of the run's network.

use std::net::SocketAddr;

/// A client of one of the doors, by both ends of its connection. Together they name one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    /// By which protocol it came.
    pub transport: Transport,
    /// The client's own end.
    pub end: SocketAddr,
    /// The end at the door.
    pub door: SocketAddr,
}

/// How bytes are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// As a stream.
    Tcp,
    /// As datagrams.
    Udp,
}
