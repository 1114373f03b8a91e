//! [`Rules`]: the current rules about hosts, and the resolver that goes with them.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use policy::NetworkRules;

/// The rules that connections are judged by. Cheap to clone and to replace.
#[derive(Clone)]
pub struct Rules {
    /// The rules about hosts.
    pub network: Arc<NetworkRules>,
    /// The resolver for names.
    pub resolver: Arc<dyn Resolve>,
}

impl Rules {
    /// These rules, with the machine's own resolver.
    pub fn new(network: NetworkRules) -> Self {
        Self { network: Arc::new(network), resolver: Arc::new(SystemResolver) }
    }
}

/// Turns a name into addresses. Called on a thread where it may block.
pub trait Resolve: Send + Sync {
    /// All addresses of the name.
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's own resolver.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        // The final dot keeps search domains from being appended.
        let found = (format!("{name}."), 0).to_socket_addrs();
        // Names in /etc/hosts are written without the dot.
        let found = found.or_else(|_| (name, 0).to_socket_addrs())?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
