//! [`Learned`]: what was denied in a run and a grant could allow, for `--learn`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::bounded::Bounded;

use model::{Access, DomainRule, Host, Sourced, Verdict, toml_string};
use policy::{NetworkRules, PathRule};

/// What was denied.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    read: Bounded<PathBuf>,
    written: Bounded<PathBuf>,
    /// Sockets of the host.
    sockets: Bounded<PathBuf>,
    /// By name or address and port.
    connected: Bounded<(String, u16)>,
    /// By name alone.
    looked_up: Bounded<String>,
    /// What no grant covers, or none that may be proposed, as it is shown.
    not_grantable: Bounded<String>,
}

impl Learned {
    /// A path was denied. A directory that does not exist yet has a slash at its end.
    pub(crate) fn path(&mut self, access: Access, path: &Path) {
        let paths = match access {
            Access::Read => &mut self.read,
            Access::Write => &mut self.written,
        };
        paths.insert(path.to_path_buf(), path.as_os_str().len());
    }

    /// A connection to a socket at a path was denied. What gives away the machine is not proposed.
    pub(crate) fn socket(&mut self, path: &Path) {
        match policy::gives_away(path) {
            None => self.sockets.insert(path.to_path_buf(), path.as_os_str().len()),
            Some(what) => self.not_grantable("connect to", &path.display().to_string(), what),
        }
    }

    /// Something was denied that no grant covers, or none that may be proposed.
    pub(crate) fn not_grantable(&mut self, verb: &str, what: &str, why: &str) {
        // It becomes a comment, which must not end before its line.
        let line = format!("{verb} {what}: {why}").escape_debug().to_string();
        let bytes = line.len();
        self.not_grantable.insert(line, bytes);
    }

    /// A connection was denied.
    pub(crate) fn connect(&mut self, host: &str, port: u16) {
        self.connected.insert((host.into(), port), host.len());
    }

    /// A name was not found.
    pub(crate) fn look_up(&mut self, name: &str) {
        self.looked_up.insert(name.into(), name.len());
    }

    /// The smallest configuration under which nothing of it is denied, as far as one may be
    /// proposed.
    pub(crate) fn configuration(&self, rules: &NetworkRules, quiet: &[String]) -> String {
        let mut text = self.entries(rules);
        let refused = self.connected.entries().iter().filter_map(|(host, port)| {
            let name = Host::parse(host).ok()?;
            let reason = policy::connect(rules, &name, *port);
            let denied = reason.verdict == Verdict::Deny && missing(rules, &name, *port).is_none();
            denied.then(|| format!("connect to {host}:{port}: {}", reason.why()))
        });
        let lines = self.not_grantable.entries().iter().cloned().chain(refused);
        let lines: Vec<_> = lines.collect();
        if !lines.is_empty() {
            text.push_str("# no entry is proposed for these:\n");
            for line in lines {
                text.push_str(&format!("#   {line}\n"));
            }
        }
        if !quiet.is_empty() {
            text.push_str("# hidden or left out without a word, and perhaps needed:\n");
            for line in quiet {
                text.push_str(&format!("#   {}\n", line.escape_debug()));
            }
        }
        text
    }

    /// The entries themselves.
    fn entries(&self, rules: &NetworkRules) -> String {
        // What may be written may be read.
        let is_written =
            |path: &PathBuf| self.written.entries().iter().any(|outer| path.starts_with(outer));
        let read = self.read.entries().iter().filter(|path| !is_written(path)).cloned().collect();
        let (read, written) = (outermost(&read), outermost(self.written.entries()));
        let network = self.network(rules);
        let files = !read.is_empty() || !written.is_empty();
        if !files && network.is_none() {
            return "# nothing more is needed\n".into();
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
        if let more @ 1.. = self.left_out() {
            text.push_str(&format!("# {more} more denials are left out\n"));
        }
        text
    }

    /// How many denials there was no room for. One that comes again counts again.
    fn left_out(&self) -> u64 {
        let paths = self.read.left_out() + self.written.left_out();
        paths + self.connected.left_out() + self.looked_up.left_out()
    }

    fn network(&self, rules: &NetworkRules) -> Option<String> {
        let connected = self
            .connected
            .entries()
            .iter()
            .filter_map(|(host, port)| Some((Host::parse(host).ok()?, *port)));
        let connected: Vec<_> = connected.collect();
        // Names are compared in one spelling.
        let known: BTreeSet<_> = connected.iter().map(|(host, _)| host.to_string()).collect();
        let looked_up = self.looked_up.entries().iter().filter_map(|name| Host::parse(name).ok());
        let looked_up: Vec<_> =
            looked_up.filter(|host| !known.contains(&host.to_string())).collect();
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
        let sockets = outermost(self.sockets.entries());
        if domains.is_empty() && ports.is_empty() && sockets.is_empty() {
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
        if !sockets.is_empty() {
            text.push_str(&format!("allow_unix = [{}]\n", sockets.join(", ")));
        }
        Some(text)
    }
}

/// Paths as rules. A path below a directory that is listed needs no rule. Paths are ordered by their
/// components, so whatever is below a directory comes right after it.
fn outermost(paths: &BTreeSet<PathBuf>) -> Vec<String> {
    let mut outer: Vec<&Path> = Vec::new();
    for path in paths {
        if !outer.last().is_some_and(|above| path.starts_with(above)) {
            outer.push(path);
        }
    }
    let rule = |path: &Path| toml_string(&PathRule::quote(&path.display().to_string()));
    outer.into_iter().map(rule).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_a_listed_directory_needs_no_rule() {
        let paths = ["/a/b", "/a/b/c", "/a/b/c/d", "/a/b.c", "/a/bc/d", "/b/", "/b/x"];
        let paths: BTreeSet<_> = paths.into_iter().map(PathBuf::from).collect();
        assert_eq!(outermost(&paths), [r#""/a/b""#, r#""/a/b.c""#, r#""/a/bc/d""#, r#""/b/""#]);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut learned = Learned::default();
        for number in 0..100_000 {
            learned.path(Access::Read, Path::new(&format!("/outside/{number}")));
        }
        let rules = NetworkRules::new(&policy::Policy::built_in(), &[], PathBuf::new());
        let text = learned.configuration(&rules, &[]);
        assert!(text.contains("99000 more denials are left out"), "{text}");
        assert_eq!(text.matches("/outside/").count(), 1000);
    }
}
