//! [`OwnNetwork`]: a network namespace with nothing in it but the ways out.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use model::Plan;
use rustix::thread::LinkNameSpaceType;

use crate::failure::{Failed, Step};
use crate::network::listeners::Listeners;
use crate::network::sock_diag::SockDiag;
use crate::sys;

/// A network namespace with nothing in it, which the thread that made it is in.
pub(crate) struct EmptyNetwork(());

impl EmptyNetwork {
    /// Makes it, and puts the calling thread into it.
    pub(crate) fn make() -> Result<Self, Failed> {
        sys::unshare_network().map_err(|error| Failed::new(Step::Namespaces, error))?;
        sys::loopback_up().map_err(|error| Failed::new(Step::Loopback, error))?;
        Ok(Self(()))
    }
}

/// The network of a run, in the hands of who made it.
pub(crate) struct OwnNetwork {
    space: OwnedFd,
    pub(crate) doors: Listeners,
    pub(crate) diag: Option<SockDiag>,
}

impl OwnNetwork {
    /// Puts the ways out into the one that the calling thread is in.
    pub(crate) fn furnish(EmptyNetwork(()): EmptyNetwork, plan: &Plan) -> Result<Self, Failed> {
        let doors = Listeners::make(plan).map_err(|error| Failed::new(Step::Listeners, error))?;
        let space = sys::network_of(doors.proxy.as_fd());
        let space = space.map_err(|error| Failed::new(Step::Namespaces, error))?;
        Ok(Self { space, doors, diag: SockDiag::here().ok() })
    }

    /// Puts the calling thread into it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        use rustix::thread::move_into_link_name_space as enter;
        Ok(enter(self.space.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}
