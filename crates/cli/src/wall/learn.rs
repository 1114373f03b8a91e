//! [`Learned`]: what a run was refused of the network and a grant could give, for `--learn`.

use std::collections::BTreeSet;

use model::{DomainRule, Host, Sourced, Verdict};
use policy::NetworkGround;

/// The hosts that were asked for in vain.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// By name or address and port.
    connected: BTreeSet<(String, u16)>,
    /// By name alone.
    looked_up: BTreeSet<String>,
}

/// Who asks for more than this does not mean it.
const MOST: usize = 1000;

impl Learned {
    /// A connection was refused.
    pub(crate) fn connect(&mut self, host: &str, port: u16) {
        if self.connected.len() < MOST {
            self.connected.insert((host.into(), port));
        }
    }

    /// A name was not found.
    pub(crate) fn look_up(&mut self, name: &str) {
        if self.looked_up.len() < MOST {
            self.looked_up.insert(name.into());
        }
    }

    /// The least configuration under which nothing of it is refused, as far as one may be proposed.
    pub(crate) fn lines(&self, ground: &NetworkGround) -> Option<String> {
        let connected =
            self.connected.iter().filter_map(|(host, port)| Some((Host::parse(host).ok()?, *port)));
        let connected: Vec<_> = connected.collect();
        // Names are compared in one spelling.
        let looked_up = self.looked_up.iter().filter_map(|name| Host::parse(name).ok());
        let looked_up: Vec<_> =
            looked_up.filter(|host| !connected.iter().any(|(other, _)| other == host)).collect();
        let mut ports = BTreeSet::new();
        let mut domains = BTreeSet::new();
        for (host, port) in &connected {
            match missing(ground, host, *port) {
                Some(Missing::Domain(rule)) => drop(domains.insert(rule.to_string())),
                Some(Missing::LocalPort(port)) => drop(ports.insert(port)),
                None => {}
            }
        }
        let mut unconnected = BTreeSet::new();
        for host in &looked_up {
            if policy::look_up(ground, host).verdict == Verdict::Deny
                && let Some(Missing::Domain(rule)) = missing(ground, host, 443)
                && domains.insert(rule.to_string())
            {
                unconnected.insert(rule.to_string());
            }
        }
        if domains.is_empty() && ports.is_empty() {
            return None;
        }
        let mut text = String::from("[network]\n");
        if !unconnected.is_empty() {
            let names = unconnected.into_iter().collect::<Vec<_>>().join(", ");
            text.push_str(&format!("# only looked up, so the port is not known: {names}\n"));
        }
        if !domains.is_empty() {
            let entries: Vec<_> = domains.iter().map(|rule| format!("{rule:?}")).collect();
            text.push_str(&format!("allowed_domains = [{}]\n", entries.join(", ")));
        }
        if !ports.is_empty() {
            let entries: Vec<_> = ports.iter().map(u16::to_string).collect();
            text.push_str(&format!("allow_local_ports = [{}]\n", entries.join(", ")));
        }
        Some(text)
    }
}

/// The entry that a connection lacks.
enum Missing {
    Domain(DomainRule),
    LocalPort(u16),
}

/// What would let a connection pass, tried on the rules themselves. Nothing where it passes anyway,
/// where something else is in its way, such as `denied_domains`, and where it would open what is
/// not public: that is for the user to think of.
fn missing(ground: &NetworkGround, host: &Host, port: u16) -> Option<Missing> {
    let passes =
        |ground: &NetworkGround| policy::connect(ground, host, port).verdict == Verdict::Allow;
    if passes(ground) {
        return None;
    }
    let mut more = ground.clone();
    if host.is_local() {
        more.local_ports.push(Sourced::built_in(port));
        return passes(&more).then_some(Missing::LocalPort(port));
    }
    // Asked without the entry: an address by itself is meant, whatever it is.
    let private = host
        .address()
        .is_some_and(|address| policy::dial(ground, host, port, address).verdict == Verdict::Deny);
    let rule = DomainRule::exact(host.clone(), port);
    more.allowed.push(Sourced::built_in(rule.clone()));
    (!private && passes(&more)).then_some(Missing::Domain(rule))
}
