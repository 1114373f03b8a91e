//! The ways out of a run's own network, as the rules about hosts need them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use model::plan::{NAMES_PORT, PROXY_PORT};
use model::{Net, OutboundPorts, Plan};

use policy::NetworkRules;

/// Ports that need no naming: those of a rule without one.
const USUAL: [u16; 2] = [80, 443];

/// How many ports there may be. Each is a socket of the supervisor's for as long as the run lasts.
const MOST_PORTS: usize = 256;

/// Why there cannot be so many ways out, where there cannot.
pub fn too_many_ports(plan: &Plan) -> Option<String> {
    let ports: BTreeSet<_> = plan.ports.ports.iter().chain(&plan.ports.local_ports).collect();
    let count = ports.len();
    (plan.network == Net::Own && count > MOST_PORTS).then(|| {
        format!(
            "`network.allowed_domains` and `network.allow_local_ports` grant {count} different \
             ports, and a run can have {MOST_PORTS}"
        )
    })
}

/// Ports and addresses for programs that cannot use a proxy. Without a grant there are none,
/// because a name that is not reachable needs no port.
pub(super) fn outbound_ports(rules: &NetworkRules) -> OutboundPorts {
    let mut ports = BTreeSet::new();
    let mut addresses = Vec::new();
    for rule in &rules.allowed {
        match rule.value.port() {
            Some(port) => ports.extend([port]),
            None => ports.extend(USUAL),
        }
        if let Some(IpAddr::V4(address)) = rule.value.address()
            && is_assignable(address)
        {
            addresses.push(address);
        }
    }
    if rules.level.value >= model::Level::Network {
        ports.extend(USUAL);
    }
    // Several layers may name the same one.
    let local_ports: BTreeSet<_> = rules.local_ports.iter().map(|port| port.value).collect();
    OutboundPorts {
        ports: ports.into_iter().filter(|port| is_free(*port)).collect(),
        local_ports: local_ports.into_iter().filter(|port| is_free(*port)).collect(),
        addresses,
    }
}

/// Whether a port can be had inside and is not one of ours. Behind those, the proxy still leads to every port.
fn is_free(port: u16) -> bool {
    ![0, PROXY_PORT, NAMES_PORT].contains(&port)
}

/// Whether loopback inside can be given an address; some mean no single machine.
fn is_assignable(address: Ipv4Addr) -> bool {
    let no_single_host =
        address.is_unspecified() || address.is_broadcast() || address.is_multicast();
    !no_single_host && !address.is_loopback()
}
