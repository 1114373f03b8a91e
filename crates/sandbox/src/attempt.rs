//! [`Attempt`]: what a process of the run tried, however that became known.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One thing that a process tried to do to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The operation.
    pub operation: Operation,
    /// The path, as the kernel or the call names it: absolute, and the same inside and outside.
    pub path: PathBuf,
    /// The thread that tried, by its ID in the supervisor's PID namespace.
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
    /// Create a file, or open one with `O_CREAT`.
    Create,
    /// Create a directory.
    MakeDirectory,
    /// Create a fifo, a socket or a device.
    MakeNode,
    /// Create a symbolic link at this path.
    SymbolicLink,
    /// Give a file a second name, at or from this path.
    Link,
    /// Remove a file or a directory.
    Remove,
    /// Rename to or from this path.
    Rename,
    /// Truncate a file.
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
    /// Look up the address of a host name.
    LookUp,
}

impl Operation {
    /// What was tried, as a verb that a path or a host follows.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Look => "look at",
            Self::Read => "read",
            Self::List => "list",
            Self::Execute => "run",
            Self::Write => "write",
            Self::Create => "create or write",
            Self::MakeDirectory => "create the directory",
            Self::MakeNode => "create the node",
            Self::SymbolicLink => "create the symbolic link",
            Self::Link => "link",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Truncate => "truncate",
            Self::ChangeMode => "change the permissions of",
            Self::ChangeOwner => "change the owner of",
            Self::ChangeTimes => "change the timestamps of",
            Self::ChangeAttributes => "change the attributes of",
            Self::Connect => "connect to",
            Self::LookUp => "look up",
        }
    }

    /// Whether it changes something. Everything else is a way of reading.
    pub fn writes(self) -> bool {
        !matches!(
            self,
            Self::Look | Self::Read | Self::List | Self::Execute | Self::Connect | Self::LookUp
        )
    }
}
