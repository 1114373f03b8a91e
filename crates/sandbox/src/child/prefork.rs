//! [`Prefork`]: the first process of a run, started before there is a plan.
//!
//! Creating its namespaces, above all the network namespace, takes the kernel about as long as
//! making a plan, so both happen at once. Then it gets its orders.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};

use model::Usual;
use rustix::fs::MemfdFlags;
use rustix::process::Signal;

use super::Orders;
use super::cpu_affinity::CpuAffinity;
use crate::failure::{Failed, Step};
use crate::ipc;
use crate::probe;
use crate::sys::{self, Cloned};

/// The first process of a run, waiting in its namespaces. It is killed when this value is dropped.
pub struct Prefork {
    first: Option<First>,
}

/// A process, and the socket to it.
pub(crate) struct First {
    pub(crate) process: OwnedFd,
    pub(crate) pid: i32,
    pub(crate) socket: OwnedFd,
}

impl Prefork {
    /// Starts it for a user, in the best kind of namespaces. It prepares what most plans have in common.
    /// The calling process must have one thread.
    pub fn start(user: (u32, u32), usual: &Usual) -> Result<Self, Failed> {
        let pair = ipc::pair();
        let (socket, theirs) = pair.map_err(|error| Failed::new(Step::Ipc, error))?;
        let cloned = CpuAffinity::start_apart(|| sys::clone_into(probe::namespaces()));
        match cloned.map_err(|error| Failed::new(Step::Namespaces, error))? {
            Cloned::Child => {
                drop(socket);
                super::wait_for_orders(theirs, user, usual)
            }
            Cloned::Parent(process, pid) => {
                Ok(Self { first: Some(First { process, pid, socket }) })
            }
        }
    }

    /// Sends the orders, in a memfd because a command can be longer than a message.
    pub(crate) fn send_orders(mut self, orders: &Orders<'_>) -> io::Result<First> {
        let first = self.first.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let bytes = postcard::to_allocvec(orders).map_err(io::Error::other)?;
        let mut memfd = File::from(rustix::fs::memfd_create("orders", MemfdFlags::CLOEXEC)?);
        memfd.write_all(&bytes)?;
        memfd.rewind()?;
        sys::send(&first.socket, b"orders", &[memfd.as_fd()])?;
        self.first.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for Prefork {
    fn drop(&mut self) {
        if let Some(First { process, pid, .. }) = &self.first {
            let _ = rustix::process::pidfd_send_signal(process, Signal::KILL);
            let _ = sys::wait_for(*pid);
        }
    }
}

/// Waits for orders. `None`: the supervisor is gone.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<Orders<'static>>> {
    let (_, descriptors, _) = sys::receive(socket)?;
    let Some(memfd) = descriptors.into_iter().next() else { return Ok(None) };
    let mut bytes = Vec::new();
    File::from(memfd).read_to_end(&mut bytes)?;
    postcard::from_bytes(&bytes).map(Some).map_err(io::Error::other)
}
