//! The ways out of a run's own network, as the rules about hosts need them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use model::Ways;
use model::plan::{NAMES_PORT, PROXY_PORT};

use crate::NetworkGround;

/// Ports that need no naming: those of a rule without one.
const USUAL: [u16; 2] = [80, 443];

/// Ports and addresses for programs that know no proxy. Where nothing is granted there are none:
/// a name that nobody can reach needs no port.
pub(super) fn ways(ground: &NetworkGround) -> Ways {
    let mut ports = BTreeSet::new();
    let mut addresses = Vec::new();
    for rule in &ground.allowed {
        match rule.value.port() {
            Some(port) => ports.extend([port]),
            None => ports.extend(USUAL),
        }
        if let Some(IpAddr::V4(address)) = rule.value.address()
            && can_be_ours(address)
        {
            addresses.push(address);
        }
    }
    if ground.level.value >= model::Level::Network {
        ports.extend(USUAL);
    }
    let local_ports = ground.local_ports.iter().map(|port| port.value);
    Ways {
        ports: ports.into_iter().filter(|port| is_free(*port)).collect(),
        local_ports: local_ports.filter(|port| is_free(*port)).collect(),
        addresses,
    }
}

/// Whether a port is not one of ours inside. Behind those, the proxy still leads to every port.
fn is_free(port: u16) -> bool {
    ![PROXY_PORT, NAMES_PORT].contains(&port)
}

/// Whether loopback inside can be given an address; some mean no single machine.
fn can_be_ours(address: Ipv4Addr) -> bool {
    let nobody = address.is_unspecified() || address.is_broadcast() || address.is_multicast();
    !nobody && !address.is_loopback()
}
