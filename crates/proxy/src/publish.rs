//! Published ports: connections from the host are carried to servers inside.
//!
//! A socket belongs to the network namespace in which it was created. So those that connect to servers
//! are created inside before the command starts, and are used again for one connection after the other:
//! `connect` to `AF_UNSPEC` returns a TCP socket to its first state.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::{Caller, Transport};
use rustix::net::AddressFamily;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::core::Core;
use crate::observer::{Connection, Route};
use crate::relay;
use crate::wire::Wire;

/// Sockets of the run's network that are not connected.
pub(crate) struct Sockets {
    v4: Mutex<Vec<OwnedFd>>,
    v6: Mutex<Vec<OwnedFd>>,
    /// One for each connection that can be open at once.
    turns: Arc<Semaphore>,
}

impl Sockets {
    pub(crate) fn new(sockets: Vec<OwnedFd>) -> Self {
        let is_v6 = |socket: &OwnedFd| {
            matches!(rustix::net::sockopt::socket_domain(socket), Ok(AddressFamily::INET6))
        };
        let (v6, v4): (Vec<_>, Vec<_>) = sockets.into_iter().partition(is_v6);
        let turns = Arc::new(Semaphore::new(v4.len()));
        Self { v4: Mutex::new(v4), v6: Mutex::new(v6), turns }
    }

    /// Connects to the server at a port inside, whichever of the two loopback addresses it has.
    async fn connect(&self, port: u16) -> io::Result<(Lent<'_>, TcpStream)> {
        let v4 = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        match self.connect_to(&self.v4, v4).await {
            Ok(connected) => Ok(connected),
            Err(error) => {
                let v6 = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port);
                self.connect_to(&self.v6, v6).await.map_err(|_| error)
            }
        }
    }

    async fn connect_to<'a>(
        &self,
        idle: &'a Mutex<Vec<OwnedFd>>,
        address: SocketAddr,
    ) -> io::Result<(Lent<'a>, TcpStream)> {
        let lent = Lent::take(idle).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let socket = std::net::TcpStream::from(lent.socket()?);
        socket.set_nonblocking(true)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from_std(socket)?;
        stream.writable().await?;
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        // The kernel can connect a socket to itself if its own port is the one it looks for.
        if stream.local_addr()? == stream.peer_addr()? {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok((lent, stream))
    }
}

/// A socket while it is in use.
struct Lent<'a> {
    socket: Option<OwnedFd>,
    idle: &'a Mutex<Vec<OwnedFd>>,
}

impl<'a> Lent<'a> {
    fn take(idle: &'a Mutex<Vec<OwnedFd>>) -> Option<Self> {
        let socket = idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(Self { socket: Some(socket), idle })
    }

    /// The same socket, by another descriptor.
    fn socket(&self) -> io::Result<OwnedFd> {
        self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?.try_clone()
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.take()
            && rustix::net::connect_unspec(&socket).is_ok()
        {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
        }
    }
}

/// How long to wait before accepting again when the process is out of descriptors.
const PAUSE: Duration = Duration::from_millis(20);

/// Accepts connections from the host, and carries each to the server at a port inside.
pub(crate) async fn accept(
    core: Arc<Core>,
    sockets: Arc<Sockets>,
    listener: TcpListener,
    port: u16,
) {
    loop {
        // Those that find no turn wait in the queue of the listener.
        let Ok(turn) = Arc::clone(&sockets.turns).acquire_owned().await else { return };
        let Ok((stream, client)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (core, sockets) = (Arc::clone(&core), Arc::clone(&sockets));
        tokio::spawn(async move {
            carry(&core, &sockets, Wire::new(stream), client, port).await;
            drop(turn);
        });
    }
}

/// Carries one connection until both directions have ended.
async fn carry(core: &Core, sockets: &Sockets, client: Wire, end: SocketAddr, port: u16) {
    let Ok(address) = client.stream.local_addr() else { return };
    let since = Instant::now();
    // No server yet, or none any more: the client sees what it would see without a sandbox.
    let Ok((lent, server)) = sockets.connect(port).await else { return client.reset() };
    let server = Wire::new(server);
    let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
    let carried = relay::both(&client.stream, &server.stream, &sent, &received).await;
    core.observer.closed(&Connection {
        number: 0,
        host: end.ip().to_string(),
        port,
        route: Route::Published,
        client: Caller { transport: Transport::Tcp, end, listener: address },
        address,
        sent: sent.into_inner(),
        received: received.load(Ordering::Relaxed),
        duration: since.elapsed(),
    });
    drop((server, lent));
    if carried.is_err() {
        client.reset();
    }
}
