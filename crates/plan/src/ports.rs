//! Ports and addresses that a run's own network must have for the hosts that are granted.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use model::plan::{NAMES_PORT, PROXY_PORT};
use model::{Net, OutboundPorts, Plan, Publication};
use policy::{NetworkRules, Policy};

/// The ports of a rule that names none.
const USUAL: [u16; 2] = [80, 443];

/// How many ports there may be. Each is a socket of the supervisor's for as long as the run lasts.
const MOST_PORTS: usize = 256;

/// The error for a plan with more ports than a run can have.
pub fn too_many_ports(plan: &Plan) -> Option<String> {
    let ports: BTreeSet<_> = plan.ports.ports.iter().chain(&plan.ports.local_ports).collect();
    let count = ports.len();
    (plan.network == Net::Own && count > MOST_PORTS).then(|| {
        format!(
            "`network.allowed_domains` and `network.allow_local_ports` grant {count} different \
             ports; the limit is {MOST_PORTS}"
        )
    })
}

/// The error for a published port at which no server inside can listen.
pub fn unpublishable(plan: &Plan) -> Option<String> {
    let ports = plan.ports.ports.iter().chain(&plan.ports.local_ports);
    let taken: BTreeSet<_> = ports.copied().chain([PROXY_PORT, NAMES_PORT]).collect();
    let one = plan.publish.iter().find(|one| taken.contains(&one.inside))?;
    let inside = one.inside;
    Some(format!(
        "cannot publish `{one}`: no server inside can listen on port {inside}, because connections \
         out of the run use it"
    ))
}

/// Ports of the host that lead to servers inside, each once. With the host's network there are none:
/// servers are reached at their own ports.
pub(super) fn published(policy: &Policy, network: Net) -> Vec<Publication> {
    let mut published = Vec::new();
    let all = policy.network.publish.iter().filter(|_| network == Net::Own);
    for one in all.map(|one| &one.value) {
        if !published.contains(one) {
            published.push(one.clone());
        }
    }
    published
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

/// Whether a listener can use a port. Port 0 is not one, and the proxy and the name service use their
/// own; other hosts are still reachable on those ports through the proxy.
fn is_free(port: u16) -> bool {
    ![0, PROXY_PORT, NAMES_PORT].contains(&port)
}

/// Whether the loopback device inside can have an address. Some addresses mean no single host.
fn is_assignable(address: Ipv4Addr) -> bool {
    let no_single_host =
        address.is_unspecified() || address.is_broadcast() || address.is_multicast();
    !no_single_host && !address.is_loopback()
}
