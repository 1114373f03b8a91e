//! Socket addresses, as read from the memory of a process.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use libc::c_int;

/// Where a socket is to be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket at a path, as the process names it.
    Path(PathBuf),
    /// A socket in the abstract namespace, without the zero that marks it.
    Abstract(Vec<u8>),
    /// A port of a host.
    Ip(SocketAddr),
    /// Nowhere: `AF_UNSPEC`, which disconnects, or no name.
    Unnamed,
    /// Another family, or an address too short for its family.
    Other(u16),
}

/// Reads as many bytes as the call says the address has.
pub fn address(bytes: &[u8]) -> Address {
    let Some((family, rest)) = bytes.split_first_chunk() else { return Address::Unnamed };
    let family = u16::from_ne_bytes(*family);
    match c_int::from(family) {
        libc::AF_UNSPEC => Address::Unnamed,
        libc::AF_UNIX => unix(rest),
        libc::AF_INET => v4(rest).map_or(Address::Other(family), Address::Ip),
        libc::AF_INET6 => v6(rest).map_or(Address::Other(family), Address::Ip),
        _ => Address::Other(family),
    }
}

fn unix(name: &[u8]) -> Address {
    match name.split_first() {
        None => Address::Unnamed,
        // Every byte counts in an abstract name, further zeros too.
        Some((0, rest)) => Address::Abstract(rest.to_vec()),
        Some(_) => {
            let path = name.split(|byte| *byte == 0).next().unwrap_or(name);
            Address::Path(PathBuf::from(OsStr::from_bytes(path)))
        }
    }
}

/// Port, address, and eight bytes that mean nothing but have to be there.
fn v4(rest: &[u8]) -> Option<SocketAddr> {
    let (port, rest) = rest.split_first_chunk()?;
    let (host, rest) = rest.split_first_chunk::<4>()?;
    let _padding = rest.first_chunk::<8>()?;
    let host = Ipv4Addr::from(*host);
    Some(SocketAddrV4::new(host, u16::from_be_bytes(*port)).into())
}

/// Port, flow, address and scope. The oldest form has no scope.
fn v6(rest: &[u8]) -> Option<SocketAddr> {
    let (port, rest) = rest.split_first_chunk()?;
    let (flow, rest) = rest.split_first_chunk()?;
    let (host, rest) = rest.split_first_chunk::<16>()?;
    let scope = rest.first_chunk().map_or(0, |scope| u32::from_ne_bytes(*scope));
    let (host, port) = (Ipv6Addr::from(*host), u16::from_be_bytes(*port));
    Some(SocketAddrV6::new(host, port, u32::from_be_bytes(*flow), scope).into())
}
