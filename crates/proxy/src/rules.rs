//! [`Rules`]: the policy of the moment, and who resolves names under it.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use policy::NetworkRules;

/// What connections are judged by. Cheap to clone and to replace.
#[derive(Clone)]
pub struct Rules {
    /// The rules about hosts.
    pub network: Arc<NetworkRules>,
    /// Who resolves names.
    pub resolver: Arc<dyn Resolve>,
}

impl Rules {
    /// These rules, with the names that the machine itself knows.
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
        // With its final dot the name is whole: search domains would make another one of it.
        let found = (format!("{name}."), 0).to_socket_addrs();
        // Names that only /etc/hosts knows are written without the dot there.
        let found = found.or_else(|_| (name, 0).to_socket_addrs())?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
