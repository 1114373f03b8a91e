//! Servers in the run's own network: what is reported about them, and about clients that look for one.
//!
//! None of this decides anything. The network has no way in but published ports, and a connection to its
//! loopback stays inside.

use std::net::SocketAddr;

use model::Net;
use rustix::net::{AddressFamily, SocketType, sockopt};

use super::Watcher;
use super::read::take;
use crate::observe::program::Program;

impl Watcher<'_> {
    /// Takes note of a server that nothing outside can reach. Tests open servers at any port that is free,
    /// and no one else knows where; so only ports that a program has named itself count.
    pub(super) fn listens(&mut self, pid: u32, socket: i32) {
        if self.plan.network != Net::Own || !self.own_root {
            return;
        }
        let Ok(socket) = take(pid, socket) else { return };
        let internet = matches!(
            sockopt::socket_domain(&socket),
            Ok(AddressFamily::INET | AddressFamily::INET6)
        );
        if !internet || sockopt::socket_type(&socket) != Ok(SocketType::STREAM) {
            return;
        }
        let address = rustix::net::getsockname(&socket).ok();
        let Some(address) = address.and_then(|address| SocketAddr::try_from(address).ok()) else {
            return;
        };
        let port = address.port();
        let published = self.plan.publish.iter().any(|published| published.inside == port);
        if !published && self.connects.named_ports.contains(&port) {
            let program = Program::look_up_here(pid);
            self.monitor.listens(address, &program);
        }
    }

    /// Takes note of a client that looks for a server which exists on the host only. It may as well wait
    /// for one of its own, so this is not a reason to stop the run.
    pub(super) fn looks_for_server(&mut self, target: SocketAddr, pid: u32) {
        let inside = self.network.is_none_or(|network| network.has_server(target));
        if inside {
            return;
        }
        let host = self.connects.host();
        if host.is_some_and(|host| host.has_server(target)) {
            let program = Program::look_up_here(pid);
            self.monitor.finds_no_server(target, &program);
        }
    }
}
