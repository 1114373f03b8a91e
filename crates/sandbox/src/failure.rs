//! [`Failed`]: which step of the set-up did not work, and why.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// A step of the set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The namespaces.
    Namespaces,
    /// The user's numbers in the new user namespace.
    Identity,
    /// Dying with the supervisor.
    Bond,
    /// Keeping mounts to ourselves.
    Private,
    /// Storage for what is private.
    Store,
    /// The tripwire.
    Tripwire,
    /// The root.
    Root,
    /// The workspace.
    Workspace,
    /// What may not be read inside other ground.
    Closed,
    /// What may not be written inside writable ground.
    Protect,
    /// Anything else of the ground.
    Lay,
    /// The view of processes.
    Processes,
    /// The loopback interface.
    Loopback,
    /// The process that becomes the command.
    Fork,
    /// The ways out of the run's own network.
    Listeners,
    /// Limits on resources.
    Limits,
    /// The directory to work in.
    Directory,
    /// Giving capabilities up.
    Capabilities,
    /// Landlock.
    Landlock,
    /// Seccomp.
    Seccomp,
    /// Watching calls.
    Watch,
    /// Descriptors.
    Descriptors,
    /// Talking to the supervisor.
    Talk,
    /// The proof from inside.
    SelfTest,
    /// Running the command.
    Execute,
}

/// A step that did not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Which.
    pub step: Step,
    /// The error's number, where it has one.
    pub errno: Option<i32>,
    /// What it was about.
    pub about: String,
}

impl Failed {
    pub(crate) fn new(step: Step, error: io::Error) -> Self {
        let about = if error.raw_os_error().is_some() { String::new() } else { error.to_string() };
        Self { step, errno: error.raw_os_error(), about }
    }

    #[must_use]
    pub(crate) fn about(self, about: String) -> Self {
        Self { about, ..self }
    }
}

impl std::error::Error for Failed {}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = match self.step {
            Step::Namespaces => "making namespaces",
            Step::Identity => "mapping the user into the namespace",
            Step::Bond => "binding the run to its supervisor",
            Step::Private => "making mounts private",
            Step::Store => "making private storage",
            Step::Tripwire => "mounting the tripwire",
            Step::Root => "making the root",
            Step::Workspace => "mounting the workspace",
            Step::Closed => "closing what may not be read",
            Step::Protect => "protecting a name",
            Step::Lay => "laying the ground",
            Step::Processes => "mounting /proc",
            Step::Loopback => "bringing loopback up",
            Step::Fork => "starting a process",
            Step::Listeners => "making the ways out of the network",
            Step::Limits => "setting limits",
            Step::Directory => "entering the working directory",
            Step::Capabilities => "dropping capabilities",
            Step::Landlock => "applying Landlock",
            Step::Seccomp => "applying seccomp",
            Step::Watch => "watching calls",
            Step::Descriptors => "closing descriptors",
            Step::Talk => "talking to the supervisor",
            Step::SelfTest => "proving the wall from inside",
            Step::Execute => "running the command",
        };
        f.write_str(step)?;
        if !self.about.is_empty() {
            write!(f, " ({})", self.about)?;
        }
        match self.errno {
            Some(errno) => write!(f, ": {}", io::Error::from_raw_os_error(errno)),
            None => Ok(()),
        }
    }
}
