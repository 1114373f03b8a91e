//! [`Attempt`]: what a process inside the wall tried, however that became known.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One thing that a process tried to do to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// What.
    pub operation: Operation,
    /// To which path, as the kernel or the call names it: absolute, the same inside and outside.
    pub path: PathBuf,
    /// The thread that tried, as the supervisor's process namespace numbers it.
    pub pid: u32,
}

/// What can be done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Learn that it exists, and of which kind it is.
    Look,
    /// Open for reading.
    Read,
    /// List a directory.
    List,
    /// Open to run it.
    Execute,
    /// Open for writing.
    Write,
    /// Make a file, or open one with leave to make it.
    Create,
    /// Make a directory.
    MakeDirectory,
    /// Make a fifo, a socket or a device.
    MakeNode,
    /// Make a symbolic link at this path.
    SymbolicLink,
    /// Give a file a second name, at or from this path.
    Link,
    /// Remove a file or a directory.
    Remove,
    /// Rename to or from this path.
    Rename,
    /// Cut a file.
    Truncate,
    /// Change permissions.
    ChangeMode,
    /// Change the owner.
    ChangeOwner,
    /// Change time stamps.
    ChangeTimes,
    /// Change extended attributes.
    ChangeAttributes,
    /// Connect to a socket.
    Connect,
    /// Ask for the address of a name.
    LookUp,
}

impl Operation {
    /// Whether it changes something. Everything else is a way of reading.
    pub fn writes(self) -> bool {
        !matches!(
            self,
            Self::Look | Self::Read | Self::List | Self::Execute | Self::Connect | Self::LookUp
        )
    }
}
