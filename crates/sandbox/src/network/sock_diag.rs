//! [`SockDiag`]: which socket an end of a connection is, asked of the kernel (`sock_diag(7)`).
//!
//! One query about one connection. The tables in `/proc/net` have the same content, but to write them
//! the kernel walks its whole hash table, which takes milliseconds on a large machine however few
//! connections there are.

mod unix;

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use model::{Caller, Transport};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

pub(crate) use self::unix::UnixSocket;

/// A netlink socket of the network namespace in which it was created, wherever it is used.
#[derive(Debug)]
pub(crate) struct SockDiag {
    socket: OwnedFd,
    asked: Cell<u32>,
    /// Protocols that the kernel has no handler for.
    silent: [Cell<bool>; 2],
}

/// What the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The number of the socket.
    Socket(u64),
    /// There is no such connection any more.
    Gone,
    /// This kernel does not answer.
    Silent,
}

/// The only interface there is.
const LOOPBACK: u32 = 1;

impl SockDiag {
    /// Asks about the network of the calling process.
    pub(crate) fn here() -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        Ok(Self::from(socket))
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The socket at the client's end.
    pub(crate) fn socket_of(&self, caller: &Caller) -> Answer {
        let silent = match caller.transport {
            Transport::Tcp => &self.silent[0],
            Transport::Udp => &self.silent[1],
        };
        if silent.get() {
            return Answer::Silent;
        }
        match self.ask(caller.transport, caller.end, caller.listener) {
            // A listener on the client's port is not the client.
            Ok(found) if found.is_at(caller) && found.inode != 0 => {
                return Answer::Socket(found.inode.into());
            }
            Ok(_) => return Answer::Gone,
            Err(_) => {}
        }
        // The kernel says the same where it knows no such socket and where it knows none at all.
        // The listener surely exists.
        let no_one = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        match self.ask(caller.transport, caller.listener, no_one) {
            Ok(_) => Answer::Gone,
            Err(_) => {
                silent.set(true);
                Answer::Silent
            }
        }
    }

    /// Whether a server listens where a client would connect to.
    pub(crate) fn has_server(&self, address: SocketAddr) -> bool {
        // The kernel looks for a server of IPv4 under an address of IPv4.
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let any = match address.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let found = self.ask(Transport::Tcp, address, SocketAddr::new(any, 0));
        found.is_ok_and(|found| found.port == address.port() && found.peer_port == 0)
    }

    fn ask(&self, transport: Transport, end: SocketAddr, peer: SocketAddr) -> io::Result<Found> {
        let number = self.asked.get().wrapping_add(1);
        self.asked.set(number);
        let question = question(number, transport, end, peer)?;
        rustix::net::send(&self.socket, &question, SendFlags::empty())?;
        loop {
            let mut bytes = [0; 1024];
            // The kernel has answered before the question is sent.
            let (_, length) = rustix::net::recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT)?;
            let bytes = bytes.get(..length).unwrap_or_default();
            if word(bytes, 8) == Some(number) {
                return found(bytes);
            }
        }
    }
}

impl From<OwnedFd> for SockDiag {
    fn from(socket: OwnedFd) -> Self {
        Self { socket, asked: Cell::new(0), silent: [Cell::new(false), Cell::new(false)] }
    }
}

/// A socket that the kernel found.
struct Found {
    port: u16,
    peer_port: u16,
    inode: u32,
}

impl Found {
    fn is_at(&self, caller: &Caller) -> bool {
        // Clients of the name service need not be connected.
        let unconnected = caller.transport == Transport::Udp && self.peer_port == 0;
        self.port == caller.end.port() && (self.peer_port == caller.listener.port() || unconnected)
    }
}

/// `nlmsghdr` and `inet_diag_req_v2`, for exactly one socket.
fn question(
    number: u32,
    transport: Transport,
    end: SocketAddr,
    peer: SocketAddr,
) -> io::Result<Vec<u8>> {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    let canonical = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    let (end, peer) = (canonical(end), canonical(peer));
    if end.is_ipv4() != peer.is_ipv4() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (protocol, first, second) = match transport {
        Transport::Tcp => (libc::IPPROTO_TCP, end, peer),
        // "src and dst are swapped for historical reasons", says net/ipv4/udp_diag.c.
        Transport::Udp => (libc::IPPROTO_UDP, peer, end),
    };
    let mut bytes = Vec::with_capacity(72);
    bytes.extend(72u32.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    bytes.extend(number.to_ne_bytes());
    bytes.extend([0; 4]);
    // The older family finds sockets of both: what leads to a listener of ours is IPv4 by then.
    let family = if first.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    bytes.push(u8::try_from(family).unwrap_or_default());
    bytes.push(u8::try_from(protocol).unwrap_or_default());
    bytes.extend([0; 2]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(first.port().to_be_bytes());
    bytes.extend(second.port().to_be_bytes());
    for address in [first, second] {
        match address.ip() {
            IpAddr::V4(address) => {
                bytes.extend(address.octets());
                bytes.extend([0; 12]);
            }
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
    }
    // A socket may be bound to the interface, and is only found by it then.
    bytes.extend(LOOPBACK.to_ne_bytes());
    // No cookie: whichever socket is there.
    bytes.extend([0xff; 8]);
    Ok(bytes)
}

/// Reads `nlmsghdr` and `inet_diag_msg`, or the error that came instead.
fn found(bytes: &[u8]) -> io::Result<Found> {
    const NLMSG_ERROR: u16 = 2;
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let kind = bytes.get(4..6).and_then(|kind| Some(u16::from_ne_bytes(kind.try_into().ok()?)));
    if kind == Some(NLMSG_ERROR) {
        let error = word(bytes, 16).ok_or_else(broken)?.cast_signed();
        return Err(io::Error::from_raw_os_error(error.wrapping_neg()));
    }
    let port = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let read = || Some(Found { port: port(20)?, peer_port: port(22)?, inode: word(bytes, 84)? });
    read().ok_or_else(broken)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
#[expect(clippy::print_stderr, reason = "the test log must show what did not run")]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    use super::*;

    fn inode(socket: impl AsFd) -> u64 {
        rustix::fs::fstat(socket).unwrap().st_ino
    }

    fn diag() -> Option<SockDiag> {
        let diag = SockDiag::here();
        if let Err(error) = &diag {
            eprintln!("skipped: this kernel answers no questions about sockets: {error}");
        }
        diag.ok()
    }

    #[test]
    fn a_connection_is_found_by_its_two_ends() {
        let Some(diag) = diag() else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
        for client in &clients {
            let end = client.local_addr().unwrap();
            let caller = Caller { transport: Transport::Tcp, end, listener: address };
            assert_eq!(diag.socket_of(&caller), Answer::Socket(inode(client)));
            // Not a connection with only one end in common.
            let elsewhere = Caller { listener: other.local_addr().unwrap(), ..caller };
            assert_eq!(diag.socket_of(&elsewhere), Answer::Gone);
        }
    }

    #[test]
    fn a_client_that_is_gone_is_not_taken_for_another() {
        let Some(diag) = diag() else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // A socket listens on the very port that the client is said to have come from.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let end = listener.local_addr().unwrap();
        let caller = Caller { transport: Transport::Tcp, end, listener: address };
        assert_eq!(diag.socket_of(&caller), Answer::Gone);
    }

    #[test]
    fn datagrams_are_found_whether_connected_or_not() {
        let Some(diag) = diag() else { return };
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connected = UdpSocket::bind("127.0.0.1:0").unwrap();
        connected.connect(address).unwrap();
        let unconnected = UdpSocket::bind("0.0.0.0:0").unwrap();
        for client in [&connected, &unconnected] {
            let mut end = client.local_addr().unwrap();
            end.set_ip(Ipv4Addr::LOCALHOST.into());
            let caller = Caller { transport: Transport::Udp, end, listener: address };
            let answer = diag.socket_of(&caller);
            assert!(
                [Answer::Silent, Answer::Socket(inode(client))].contains(&answer),
                "{answer:?}"
            );
        }
    }

    #[expect(unsafe_code, reason = "the test binds a socket to a device")]
    #[test]
    fn a_socket_cannot_hide_behind_its_interface() {
        let Some(diag) = diag() else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let name = c"lo".to_bytes_with_nul();
        // SAFETY: the name lives through the call, which reads it.
        let bound = unsafe {
            libc::setsockopt(
                std::os::fd::AsRawFd::as_raw_fd(&socket),
                libc::SOL_SOCKET,
                libc::SO_BINDTODEVICE,
                name.as_ptr().cast(),
                3,
            )
        };
        assert_eq!(bound, 0);
        rustix::net::connect(&socket, &address).unwrap();
        let client = TcpStream::from(socket);
        let end = client.local_addr().unwrap();
        let caller = Caller { transport: Transport::Tcp, end, listener: address };
        assert_eq!(diag.socket_of(&caller), Answer::Socket(inode(&client)));
    }

    #[test]
    fn a_server_is_found_at_the_addresses_that_lead_to_it() {
        let Some(diag) = diag() else { return };
        let local = |text: &str, port: u16| SocketAddr::new(text.parse().unwrap(), port);
        for (bound, reached) in [
            ("127.0.0.1", &["127.0.0.1", "::ffff:127.0.0.1"][..]),
            ("0.0.0.0", &["127.0.0.1", "127.0.0.2"]),
            ("::1", &["::1"]),
            ("::", &["::1", "127.0.0.1"]),
        ] {
            let Ok(server) = TcpListener::bind((bound, 0)) else {
                eprintln!("skipped: this machine has no IPv6");
                continue;
            };
            let port = server.local_addr().unwrap().port();
            for address in ["127.0.0.1", "127.0.0.2", "::ffff:127.0.0.1", "::1"] {
                let address = local(address, port);
                let connects = TcpStream::connect(address).is_ok();
                assert_eq!(diag.has_server(address), connects, "{bound} at {address}");
            }
            for address in reached {
                assert!(diag.has_server(local(address, port)), "{bound} at {address}");
            }
            drop(server);
            assert!(!diag.has_server(local("127.0.0.1", port)), "{bound}");
        }
    }

    #[test]
    fn clients_of_both_families_are_found() {
        let Some(diag) = diag() else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mapped = format!("[::ffff:127.0.0.1]:{}", address.port());
        let Ok(client) = TcpStream::connect(mapped) else {
            eprintln!("skipped: without IPv6 there are no clients of the other family");
            return;
        };
        let (_, end) = listener.accept().unwrap();
        let caller = Caller { transport: Transport::Tcp, end, listener: address };
        assert_eq!(diag.socket_of(&caller), Answer::Socket(inode(&client)));
    }
}
