//! [`OwnNetwork`]: a network namespace with nothing in it but listeners.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use model::Plan;
use rustix::thread::LinkNameSpaceType;

use crate::failure::{Failed, Step};
use crate::network::listeners::Listeners;
use crate::network::sock_diag::SockDiag;
use crate::sys;

/// A network namespace with what every run has in it. The thread that created it is in it.
pub(crate) struct EmptyNetwork {
    listeners: Listeners,
    sock_diag: Option<SockDiag>,
}

impl EmptyNetwork {
    /// Creates it, and moves the calling thread into it.
    pub(crate) fn create() -> Result<Self, Failed> {
        sys::unshare_network().map_err(|error| Failed::new(Step::Namespaces, error))?;
        sys::loopback_up().map_err(|error| Failed::new(Step::Loopback, error))?;
        let listeners = Listeners::create().map_err(|error| Failed::new(Step::Listeners, error))?;
        Ok(Self { listeners, sock_diag: SockDiag::here().ok() })
    }
}

/// The network namespace of a run, by descriptor.
pub(crate) struct OwnNetwork {
    namespace: OwnedFd,
    pub(crate) listeners: Listeners,
    pub(crate) sock_diag: Option<SockDiag>,
}

impl OwnNetwork {
    /// Creates the listeners of a plan in the namespace that the calling thread is in.
    pub(crate) fn listen(empty: EmptyNetwork, plan: &Plan) -> Result<Self, Failed> {
        let EmptyNetwork { mut listeners, sock_diag } = empty;
        listeners.create_for(plan).map_err(|error| Failed::new(Step::Listeners, error))?;
        let namespace = sys::network_of(listeners.proxy.as_fd());
        let namespace = namespace.map_err(|error| Failed::new(Step::Namespaces, error))?;
        Ok(Self { namespace, listeners, sock_diag })
    }

    /// Moves the calling thread into it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        use rustix::thread::move_into_link_name_space as enter;
        Ok(enter(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}
