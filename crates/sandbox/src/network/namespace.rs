//! [`OwnNetwork`]: a network namespace with nothing in it but listeners.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use model::Plan;
use rustix::thread::LinkNameSpaceType;

use crate::failure::{Failed, Step};
use crate::network::listeners::Listeners;
use crate::network::sock_diag::SockDiag;
use crate::sys;

/// An empty network namespace, which the thread that created it is in.
pub(crate) struct EmptyNetwork(());

impl EmptyNetwork {
    /// Creates it, and moves the calling thread into it.
    pub(crate) fn create() -> Result<Self, Failed> {
        sys::unshare_network().map_err(|error| Failed::new(Step::Namespaces, error))?;
        sys::loopback_up().map_err(|error| Failed::new(Step::Loopback, error))?;
        Ok(Self(()))
    }
}

/// The network namespace of a run, by descriptor.
pub(crate) struct OwnNetwork {
    namespace: OwnedFd,
    pub(crate) listeners: Listeners,
    pub(crate) sock_diag: Option<SockDiag>,
}

impl OwnNetwork {
    /// Creates the listeners in the namespace that the calling thread is in.
    pub(crate) fn listen(EmptyNetwork(()): EmptyNetwork, plan: &Plan) -> Result<Self, Failed> {
        let listeners =
            Listeners::create(plan).map_err(|error| Failed::new(Step::Listeners, error))?;
        let namespace = sys::network_of(listeners.proxy.as_fd());
        let namespace = namespace.map_err(|error| Failed::new(Step::Namespaces, error))?;
        Ok(Self { namespace, listeners, sock_diag: SockDiag::here().ok() })
    }

    /// Moves the calling thread into it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        use rustix::thread::move_into_link_name_space as enter;
        Ok(enter(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}
