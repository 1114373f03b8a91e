//! [`Learned`]: what was denied in a run and a grant could allow, for `--learn`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use model::{Access, DomainRule, Host, Sourced, Verdict};
use policy::{NetworkRules, PathRule};

/// What was denied.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    read: BTreeSet<PathBuf>,
    written: BTreeSet<PathBuf>,
    /// By name or address and port.
    connected: BTreeSet<(String, u16)>,
    /// By name alone.
    looked_up: BTreeSet<String>,
}

/// How many entries of each kind are kept. A run that needs more is not a useful example.
const MOST: usize = 1000;

impl Learned {
    /// A path was denied. A directory that does not exist yet has a slash at its end.
    pub(crate) fn path(&mut self, access: Access, path: &Path) {
        let paths = match access {
            Access::Read => &mut self.read,
            Access::Write => &mut self.written,
        };
        paths.insert(path.to_path_buf());
    }

    /// A connection was denied.
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

    /// The smallest configuration under which nothing of it is denied, as far as one may be
    /// proposed.
    pub(crate) fn configuration(&self, rules: &NetworkRules) -> String {
        let (read, written) = (outermost(&self.read), outermost(&self.written));
        let network = self.network(rules);
        let files = !read.is_empty() || !written.is_empty();
        if !files && network.is_none() {
            return "# nothing more is needed".into();
        }
        let mut text = String::from(
            "# what was denied in this run; add the entries that you want to allow to ringwall.toml\n",
        );
        if files {
            text.push_str("[filesystem]\n");
        }
        for (key, paths) in [("allow_read", read), ("allow_write", written)] {
            if !paths.is_empty() {
                text.push_str(&format!("{key} = [{}]\n", paths.join(", ")));
            }
        }
        text.push_str(&network.unwrap_or_default());
        text
    }

    fn network(&self, rules: &NetworkRules) -> Option<String> {
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
            match missing(rules, host, *port) {
                Some(Missing::Domain(rule)) => drop(domains.insert(rule.to_string())),
                Some(Missing::LocalPort(port)) => drop(ports.insert(port)),
                None => {}
            }
        }
        let mut unconnected = BTreeSet::new();
        for host in &looked_up {
            if policy::look_up(rules, host).verdict == Verdict::Deny
                && let Some(Missing::Domain(rule)) = missing(rules, host, 443)
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

/// Paths as rules. A path below a directory that is listed needs no rule.
fn outermost(paths: &BTreeSet<PathBuf>) -> Vec<String> {
    let covered = |path: &Path| paths.iter().any(|other| other != path && path.starts_with(other));
    let outer = paths.iter().filter(|path| !covered(path));
    outer.map(|path| format!("{:?}", PathRule::quote(&path.display().to_string()))).collect()
}

/// The entry that a connection lacks.
enum Missing {
    Domain(DomainRule),
    LocalPort(u16),
}

/// The entry that would allow a connection, found by trying it on the rules. `None` if the
/// connection is allowed already, if something else denies it, such as `denied_domains`, and if the
/// entry would allow an address that is not public: the user must decide about that.
fn missing(rules: &NetworkRules, host: &Host, port: u16) -> Option<Missing> {
    let passes =
        |rules: &NetworkRules| policy::connect(rules, host, port).verdict == Verdict::Allow;
    if passes(rules) {
        return None;
    }
    let mut more = rules.clone();
    if host.is_local() {
        more.local_ports.push(Sourced::built_in(port));
        return passes(&more).then_some(Missing::LocalPort(port));
    }
    // Checked without the new entry: with it, an address that the user names is allowed even if it
    // is private.
    let private = host
        .address()
        .is_some_and(|address| policy::dial(rules, host, port, address).verdict == Verdict::Deny);
    let rule = DomainRule::exact(host.clone(), port);
    more.allowed.push(Sourced::built_in(rule.clone()));
    (!private && passes(&more)).then_some(Missing::Domain(rule))
}
