//! [`SocketOwners`]: the programs behind connections to the listeners.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};

use model::{Caller, Transport};
use rustix::fs::{Mode, OFlags};

use crate::network::sock_diag::{Answer, SockDiag};
use crate::observe::program::{Program, read_text};

/// Finds the process that holds a client's end of a connection.
#[derive(Debug, Default)]
pub(crate) struct SocketOwners {
    diag: Option<SockDiag>,
    /// Where the last one was found. Programs make one connection after the other, and each gets
    /// the number of the last one or the next.
    last: Cell<Option<(u32, u32)>>,
}

impl SocketOwners {
    pub(crate) fn new(diag: Option<OwnedFd>) -> Self {
        Self { diag: diag.map(SockDiag::from), last: Cell::new(None) }
    }

    /// What the kernel says about the sockets of the run's network.
    pub(crate) fn diag(&self) -> Option<&SockDiag> {
        self.diag.as_ref()
    }

    /// The program, in a view of the processes that it is one of.
    pub(crate) fn find(&self, view: BorrowedFd<'_>, caller: &Caller) -> Option<Program> {
        let answer = self.diag.as_ref().map_or(Answer::Silent, |diag| diag.socket_of(caller));
        let socket = match answer {
            Answer::Socket(socket) => socket,
            Answer::Gone => return None,
            Answer::Silent => from_tables(view, caller)?,
        };
        let link = format!("socket:[{socket}]");
        let found = self.near_the_last(view, &link).or_else(|| {
            processes(view).into_iter().find_map(|pid| Some((pid, descriptor(view, pid, &link)?)))
        });
        self.last.set(found);
        found.map(|(pid, _)| Program::look_up(view, pid))
    }

    fn near_the_last(&self, view: BorrowedFd<'_>, link: &str) -> Option<(u32, u32)> {
        let (pid, last) = self.last.get()?;
        let mut near = (last.saturating_sub(1)..=last.saturating_add(1)).rev();
        near.find_map(|number| {
            let target = rustix::fs::readlinkat(view, format!("{pid}/fd/{number}"), Vec::new());
            target.is_ok_and(|target| target.to_bytes() == link.as_bytes()).then_some((pid, number))
        })
    }
}

/// The socket by the kernel's tables, where it answers no questions.
fn from_tables(view: BorrowedFd<'_>, caller: &Caller) -> Option<u64> {
    let tables = match caller.transport {
        Transport::Tcp => ["tcp", "tcp6"],
        Transport::Udp => ["udp", "udp6"],
    };
    tables.iter().find_map(|table| {
        let table = read_text(view, &format!("1/net/{table}"))?;
        table.lines().skip(1).find_map(|line| socket_in(line, caller))
    })
}

/// The number of the socket in a line of the kernel's table, if it is this one.
fn socket_in(line: &str, caller: &Caller) -> Option<u64> {
    let mut fields = line.split_whitespace().skip(1);
    let (own, peer) = (fields.next()?, fields.next()?);
    // Clients of the name service need not be bound to an address, nor connected.
    let loose = caller.transport == Transport::Udp;
    let same = is(own, caller.end, loose) && (is(peer, caller.listener, false) || loose);
    same.then(|| fields.nth(6)?.parse().ok()).flatten()
}

/// Whether a field of the table is this end.
fn is(field: &str, end: SocketAddr, unbound: bool) -> bool {
    let Some((address, port)) = field.split_once(':') else { return false };
    let text = |bytes: &[u8]| {
        let words =
            bytes.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap_or_default()));
        words.map(|word| format!("{word:08X}")).collect::<String>()
    };
    let same = match end.ip() {
        IpAddr::V4(ip) => {
            address == text(&ip.octets()) || address == text(&ip.to_ipv6_mapped().octets())
        }
        IpAddr::V6(ip) => address == text(&ip.octets()),
    };
    let any = unbound && address.bytes().all(|byte| byte == b'0');
    (same || any) && u16::from_str_radix(port, 16) == Ok(end.port())
}

fn processes(view: BorrowedFd<'_>) -> Vec<u32> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = rustix::fs::openat(view, ".", flags, Mode::empty()) else { return Vec::new() };
    numbers(dir)
}

/// The descriptor under which a process holds what a link leads to.
fn descriptor(view: BorrowedFd<'_>, pid: u32, link: &str) -> Option<u32> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(view, format!("{pid}/fd"), flags, Mode::empty()).ok()?;
    let all = numbers(rustix::io::dup(&dir).ok()?);
    // What is new has a high number, as a rule.
    all.into_iter().rev().find(|number| {
        let target = rustix::fs::readlinkat(&dir, number.to_string(), Vec::new());
        target.is_ok_and(|target| target.to_bytes() == link.as_bytes())
    })
}

/// The entries of a directory that are numbers.
fn numbers(dir: OwnedFd) -> Vec<u32> {
    let Ok(entries) = rustix::fs::Dir::new(dir) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok()).collect()
}

#[cfg(test)]
#[expect(clippy::print_stderr, reason = "the test log must show what did not run")]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    use super::*;

    fn view() -> OwnedFd {
        rustix::fs::open("/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    /// With the kernel's answers and without them, the same program is found.
    fn both_ways() -> [SocketOwners; 2] {
        [
            SocketOwners { diag: SockDiag::here().ok(), last: Cell::new(None) },
            SocketOwners::default(),
        ]
    }

    #[test]
    fn a_connection_leads_to_its_program() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // `/proc` of the host has the tables of process 1; what they say is of use here only if
        // both are in one network.
        let same_network = rustix::fs::readlink("/proc/1/ns/net", Vec::new()).ok()
            == rustix::fs::readlink("/proc/self/ns/net", Vec::new()).ok();
        for owners in both_ways() {
            if owners.diag.is_none() && !same_network {
                eprintln!("skipped: process 1 is in another network, so its tables say nothing");
                continue;
            }
            let mut kept = Vec::new();
            // Each time another descriptor, and then one that is far from the last.
            for _ in 0..3 {
                let client = TcpStream::connect(address).unwrap();
                let end = client.local_addr().unwrap();
                let caller = Caller { transport: Transport::Tcp, end, listener: address };
                let found = owners.find(view().as_fd(), &caller).unwrap();
                assert_eq!(found.pid, std::process::id());
                assert!(!found.argv.is_empty());
                kept.extend((0..5).map(|_| view()));
                kept.push(client.into());
            }
            let no_socket = Caller {
                transport: Transport::Udp,
                end: TcpStream::connect(address).unwrap().local_addr().unwrap(),
                listener: address,
            };
            assert_eq!(owners.find(view().as_fd(), &no_socket), None);
        }
    }

    #[test]
    fn one_port_of_two_protocols_is_two_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let names = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let end = client.local_addr().unwrap();
        let line = |own: &str, peer: &str| format!(" 0: {own} {peer} 01 0:0 00:0 0 0 0 77 1");
        let own = format!("0100007F:{:04X}", end.port());
        let peer = format!("0100007F:{:04X}", listener.local_addr().unwrap().port());
        let tcp =
            Caller { transport: Transport::Tcp, end, listener: listener.local_addr().unwrap() };
        assert_eq!(socket_in(&line(&own, &peer), &tcp), Some(77));
        assert_eq!(socket_in(&line(&own, "0100007F:0001"), &tcp), None);
        let udp = Caller { transport: Transport::Udp, end, listener: names.local_addr().unwrap() };
        let unbound = format!("00000000:{:04X}", end.port());
        assert_eq!(socket_in(&line(&unbound, "00000000:0000"), &udp), Some(77));
        assert_eq!(socket_in(&line(&unbound, "00000000:0000"), &tcp), None);
    }
}
