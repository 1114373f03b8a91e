//! The messages between the supervisor and the child, over a `SOCK_SEQPACKET` pair.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};

use crate::available::SelfTest;
use crate::failure::Failed;
use crate::sys;

/// A message from the child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Carries the FUSE device of the tripwire, which is about to be mounted.
    Device,
    /// Carries trees as the run sees them, by the indices of their pieces: those that are private to
    /// it, and those that lead to what may be written.
    Trees(Vec<usize>),
    /// Carries the run's user and mount namespaces, its root, and its `/proc`.
    Views,
    /// Carries the listeners of the run's own network, or as many as fit into one message.
    Listeners,
    /// Carries unconnected sockets of that network, or as many as fit into one message.
    Unconnected,
    /// Carries a `sock_diag` socket of that network.
    SockDiag,
    /// Carries the descriptor on which seccomp notifications arrive.
    SeccompListener,
    /// There is no seccomp listener: an outer sandbox holds the only one that the kernel allows.
    NoSeccompListener,
    /// The sandbox is complete and was tried from inside. The child waits for permission to run
    /// the command.
    Ready {
        /// How the attempts from inside went.
        test: SelfTest,
        /// Parts of the plan that could not be set up.
        missing: Vec<String>,
        /// The Landlock ABI version that is enforced, zero for none.
        landlock: i32,
    },
    /// A step failed; the child has exited.
    Failed(Failed),
    /// The command was stopped by a signal.
    Stopped(i32),
    /// The command ended, with its status as `wait` gives it.
    Exited(i32),
}

/// A socket for each side. The supervisor's receives the credentials of the sender.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::sockopt::set_socket_passcred(&ours, true)?;
    Ok((ours, theirs))
}

pub(crate) fn send(
    socket: impl AsFd,
    message: &Message,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message).map_err(io::Error::other)?;
    sys::send(socket, &bytes, descriptors)
}

/// A message, its descriptors, and the process ID of its sender.
pub(crate) type Received = (Message, Vec<OwnedFd>, Option<i32>);

/// The next message. `None`: the other side has closed its socket.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<Received>> {
    let (bytes, descriptors, sender) = sys::receive(socket)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let message = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
    Ok(Some((message, descriptors, sender)))
}

/// Lets the child run the command.
pub(crate) fn permit_start(socket: impl AsFd) -> io::Result<()> {
    sys::send(socket, b"go", &[])
}

/// Waits for that permission.
pub(crate) fn await_permission(socket: impl AsFd) -> io::Result<bool> {
    Ok(sys::receive(socket)?.0 == b"go")
}

/// A path between two processes, byte for byte: `serde` itself sends only those that are text.
pub(crate) mod exact_path {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}
