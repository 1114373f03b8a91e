//! What supervisor and child tell each other over their socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};

use crate::failure::Failed;
use crate::got::SelfTest;
use crate::sys;

/// A message of the child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// With the device of the tripwire, about to be mounted.
    Device,
    /// With places that are private to the run, by the numbers of their pieces.
    Private(Vec<usize>),
    /// With a bare view of the tripwire where one is needed, and the run's view of processes.
    Views,
    /// With the run's user and mount namespaces.
    Spaces,
    /// With the sockets of the run's own network, or as many of them as one message can carry.
    Doors,
    /// With a socket that knows whose the connections in that network are.
    Diag,
    /// With the descriptor on which watched calls arrive.
    Listener,
    /// Watching is not to be had: somebody else holds the one listener there can be.
    NoListener,
    /// Everything is in place and was tried from inside. The command waits for leave.
    Ready {
        /// How the attempts from inside went.
        test: SelfTest,
        /// Parts of the plan that are not there.
        missing: Vec<String>,
        /// The version of Landlock that holds, zero for none.
        landlock: i32,
    },
    /// A step failed; the child is gone.
    Failed(Failed),
    /// The command was stopped by a signal.
    Stopped(i32),
    /// The command ended, with its status as `wait` has it.
    Exited(i32),
}

/// A socket for each of the two. Ours says who speaks.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::sockopt::set_socket_passcred(&ours, true)?;
    Ok((ours, theirs))
}

pub(crate) fn tell(
    socket: impl AsFd,
    message: &Message,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message).map_err(io::Error::other)?;
    sys::send(socket, &bytes, descriptors)
}

/// A message, its descriptors, and the number of its sender.
pub(crate) type Heard = (Message, Vec<OwnedFd>, Option<i32>);

/// The next message. `None`: the other side is gone.
pub(crate) fn hear(socket: impl AsFd) -> io::Result<Option<Heard>> {
    let (bytes, descriptors, sender) = sys::receive(socket)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let message = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
    Ok(Some((message, descriptors, sender)))
}

/// Gives the child leave to run the command.
pub(crate) fn give_leave(socket: impl AsFd) -> io::Result<()> {
    sys::send(socket, b"go", &[])
}

/// Waits for that leave.
pub(crate) fn hear_leave(socket: impl AsFd) -> io::Result<bool> {
    Ok(sys::receive(socket)?.0 == b"go")
}
