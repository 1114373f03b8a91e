//! [`Listeners`]: sockets that are created inside the run's own network and served from outside.
//! They are its only way out.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use model::{Plan, plan};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::sys;

/// Sockets in the run's network.
#[derive(Debug)]
pub struct Listeners {
    /// For clients that are configured to use a proxy.
    pub proxy: OwnedFd,
    /// For DNS over UDP.
    pub names: OwnedFd,
    /// For DNS over TCP.
    pub names_tcp: OwnedFd,
    /// For connections to synthetic addresses, and to granted ports of the host.
    pub ports: Vec<OwnedFd>,
    /// Not listening: unconnected sockets, with which the supervisor's side connects to servers inside.
    pub unconnected: Vec<OwnedFd>,
}

/// How many connections to published ports there can be at once. Each needs a socket that was created
/// inside before the command started.
const MOST_PUBLISHED: usize = 128;

impl Listeners {
    /// Creates those that every run has, in the network namespace of the calling thread.
    pub(crate) fn create() -> io::Result<Self> {
        sys::loopback_address("lo:0", Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(255, 254, 0, 0))?;
        let local = Ipv4Addr::LOCALHOST;
        Ok(Self {
            proxy: listener(local, plan::PROXY_PORT)?,
            names: bound(SocketType::DGRAM, local, plan::NAMES_PORT)?,
            names_tcp: listener(local, plan::NAMES_PORT)?,
            ports: Vec::new(),
            unconnected: Vec::new(),
        })
    }

    /// Creates those that a plan wants besides, in the same namespace.
    pub(crate) fn create_for(&mut self, plan: &Plan) -> io::Result<()> {
        for (number, address) in plan.ports.addresses.iter().enumerate() {
            sys::loopback_address(&format!("lo:{}", number + 1), *address, Ipv4Addr::BROADCAST)?;
        }
        let any = plan.ports.ports.iter().map(|port| (Ipv4Addr::UNSPECIFIED, *port));
        // A socket on the unspecified address accepts these as well.
        let hosts = plan.ports.local_ports.iter().filter(|port| !plan.ports.ports.contains(port));
        let ports = any.chain(hosts.map(|port| (Ipv4Addr::LOCALHOST, *port)));
        for (address, port) in ports {
            self.ports.push(listener(address, port)?);
        }
        if !plan.publish.is_empty() {
            self.unconnected = unconnected()?;
        }
        Ok(())
    }

    /// All that listen, in the order in which [`Self::add`] takes them.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let fixed = [&self.proxy, &self.names, &self.names_tcp];
        fixed.into_iter().chain(&self.ports).map(AsFd::as_fd).collect()
    }

    /// Puts the sockets together from the descriptors of one message after the other.
    pub(crate) fn add(listeners: Option<Self>, descriptors: Vec<OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut listeners = match listeners {
            Some(listeners) => listeners,
            None => Self {
                proxy: descriptors.next()?,
                names: descriptors.next()?,
                names_tcp: descriptors.next()?,
                ports: Vec::new(),
                unconnected: Vec::new(),
            },
        };
        listeners.ports.extend(descriptors);
        Some(listeners)
    }
}

/// Sockets for servers that listen on either loopback address. Without IPv6 there are none of that kind.
fn unconnected() -> io::Result<Vec<OwnedFd>> {
    let socket =
        |family| rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let v4 = (0..MOST_PUBLISHED).map(|_| socket(AddressFamily::INET));
    let mut sockets = v4.collect::<Result<Vec<_>, _>>()?;
    sockets.extend((0..MOST_PUBLISHED).map_while(|_| socket(AddressFamily::INET6).ok()));
    Ok(sockets)
}

fn listener(address: Ipv4Addr, port: u16) -> io::Result<OwnedFd> {
    let socket = bound(SocketType::STREAM, address, port)?;
    rustix::net::listen(&socket, 1024)?;
    Ok(socket)
}

fn bound(kind: SocketType, address: Ipv4Addr, port: u16) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(address, port))?;
    Ok(socket)
}
