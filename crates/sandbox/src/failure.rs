//! [`Failed`]: which step of the setup failed, and why.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// A step of the setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Creating the namespaces.
    Namespaces,
    /// Mapping the user and group into the new user namespace.
    IdMap,
    /// Tying the life of the run to that of its supervisor.
    ParentDeath,
    /// Making mounts private to the new mount namespace.
    PrivateMounts,
    /// Creating storage for what is private to the run.
    Storage,
    /// Mounting the tripwire.
    Tripwire,
    /// Mounting the root.
    Root,
    /// Mounting the workspace.
    Workspace,
    /// Hiding what must not be read.
    Hide,
    /// Protecting what must not be written inside of what may be.
    Protect,
    /// Mounting any other piece of the plan.
    Mount,
    /// Mounting `/proc`.
    Processes,
    /// Bringing up the loopback interface.
    Loopback,
    /// Starting a process or a thread.
    Fork,
    /// Creating the listeners of the run's own network.
    Listeners,
    /// Setting resource limits.
    Limits,
    /// Entering the working directory.
    Directory,
    /// Dropping capabilities.
    Capabilities,
    /// Applying Landlock.
    Landlock,
    /// Installing the seccomp filter.
    Seccomp,
    /// Intercepting system calls, or watching directories.
    Watch,
    /// Performing every open, for `filesystem.strict_deny`.
    StrictDeny,
    /// Closing descriptors.
    Descriptors,
    /// Communicating between supervisor and child.
    Ipc,
    /// Trying forbidden acts from inside.
    SelfTest,
    /// Running the command.
    Execute,
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The step.
    pub step: Step,
    /// The error number, if there is one.
    pub errno: Option<i32>,
    /// The path or program that it was about, or the error as text.
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
            Step::Execute => {
                write!(f, "cannot run `{}`", self.about)?;
                return self.write_error(f);
            }
            Step::Namespaces => "creating namespaces",
            Step::IdMap => "mapping the user into the user namespace",
            Step::ParentDeath => "binding the run to its supervisor",
            Step::PrivateMounts => "making mounts private",
            Step::Storage => "creating private storage",
            Step::Tripwire => "mounting the tripwire file system",
            Step::Root => "mounting the root",
            Step::Workspace => "mounting the workspace",
            Step::Hide => "hiding a path that must not be read",
            Step::Protect => "protecting a path that must not be written",
            Step::Mount => "mounting a path of the plan",
            Step::Processes => "mounting /proc",
            Step::Loopback => "bringing up the loopback interface",
            Step::Fork => "starting a process",
            Step::Listeners => "creating the listeners of the network",
            Step::Limits => "setting resource limits",
            Step::Directory => "entering the working directory",
            Step::Capabilities => "dropping capabilities",
            Step::Landlock => "applying Landlock",
            Step::Seccomp => "installing the seccomp filter",
            Step::Watch => "intercepting system calls",
            Step::StrictDeny => "performing every open (`filesystem.strict_deny`)",
            Step::Descriptors => "closing descriptors",
            Step::Ipc => "communicating with the sandbox process",
            Step::SelfTest => "testing the sandbox from inside",
        };
        write!(f, "{step} failed")?;
        if !self.about.is_empty() {
            write!(f, " ({})", self.about)?;
        }
        self.write_error(f)
    }
}

impl Failed {
    fn write_error(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errno {
            // The kernel says the same about a full disk.
            Some(libc::ENOSPC) if self.step == Step::Watch => {
                write!(f, ": your inotify watches are used up (fs.inotify.max_user_watches)")
            }
            Some(errno) => write!(f, ": {}", io::Error::from_raw_os_error(errno)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_failed_and_why() {
        let denied = || io::Error::from_raw_os_error(libc::EPERM);
        let failed = Failed::new(Step::Namespaces, denied());
        let text = "creating namespaces failed: Operation not permitted (os error 1)";
        assert_eq!(failed.to_string(), text);
        let failed = Failed::new(Step::Mount, denied()).about("/srv".into());
        let text =
            "mounting a path of the plan failed (/srv): Operation not permitted (os error 1)";
        assert_eq!(failed.to_string(), text);
        let failed = Failed::new(Step::Execute, denied()).about("make".into());
        assert_eq!(failed.to_string(), "cannot run `make`: Operation not permitted (os error 1)");
        let full = Failed::new(Step::Watch, io::Error::from_raw_os_error(libc::ENOSPC));
        assert!(full.to_string().contains("fs.inotify.max_user_watches"), "{full}");
        let failed = Failed::new(Step::Ipc, io::Error::other("the child exited"));
        let text = "communicating with the sandbox process failed (the child exited)";
        assert_eq!(failed.to_string(), text);
    }
}
