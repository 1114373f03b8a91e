//! The ways out of a run's own network, as the rules about hosts need them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use model::Ways;

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
            && !address.is_loopback()
        {
            addresses.push(address);
        }
    }
    if ground.level.value >= model::Level::Network {
        ports.extend(USUAL);
    }
    Ways {
        ports: ports.into_iter().collect(),
        local_ports: ground.local_ports.iter().map(|port| port.value).collect(),
        addresses,
    }
}
