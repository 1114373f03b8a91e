//! A run as its caller sees it: what to run and how, how it ended, or why it did not start.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;

use model::{AbsPath, Plan};

use crate::available::{Available, Enforcement, Lack, Requested};
use crate::child::Canary;
use crate::child::landlock_only::LandlockOnly;
use crate::child::prefork::Prefork;
use crate::failure::Failed;
use crate::monitor::Monitor;
use crate::probe;
use crate::supervisor::Supervisor;
use crate::supervisor::diverted::Diverted;
use crate::supervisor::usage::Usage;

/// What to run, and how.
pub struct Launch<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// The strongest enforcement and the best attribution to try.
    pub requested: Requested,
    /// The weakest enforcement to accept.
    pub minimum: Enforcement,
    /// What must be out of reach; the self-test tries it.
    pub canary: &'a Canary,
    /// The user and group that the command runs as.
    pub user: (u32, u32),
    /// Whether files that appear during the run may have to be hidden from it.
    pub hides_new_files: bool,
    /// Whether every open for reading is performed by the supervisor, after it has looked what is
    /// opened.
    pub performs_reads: bool,
    /// Private directories in which programs may be installed.
    pub program_dirs: &'a [AbsPath],
    /// What the caller still has to do, while the sandbox is built. If it returns false the command does
    /// not start, and the run ends with [`End::Cancelled`].
    pub meanwhile: Option<&'a dyn Fn() -> bool>,
    /// Ends the run with [`End::Cancelled`] when it becomes readable or is hung up.
    pub stop: Option<BorrowedFd<'a>>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The command exited, with the status that a shell would show.
    Exited {
        /// The exit status.
        code: u8,
        /// The signal that ended it, if one did.
        signal: Option<i32>,
    },
    /// A violation ended it.
    Violation,
    /// The caller ended it.
    Cancelled,
    /// A limit ended it.
    Limit(&'static str),
    /// The command could not be executed.
    NotRun(Failed),
    /// The first process of the run was killed from outside.
    Lost,
}

/// What is known after a run.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// What it used.
    pub usage: Usage,
    /// Whether a control group enforced the limits, or the limits of each process.
    pub limited_by: &'static str,
    /// The limits that the control group enforced, by name.
    pub reached: Vec<&'static str>,
    /// Whether something may have been changed: such a call was made, or calls were not
    /// intercepted.
    pub changed: bool,
    /// Programs that were installed in [`Launch::program_dirs`].
    pub installed: Vec<AbsPath>,
    /// Files directly in the private `/tmp` and `/var/tmp`, which are deleted with the run.
    pub temporary: Vec<AbsPath>,
    /// Drafts that never became a file: their content is lost.
    pub lost: Vec<AbsPath>,
    /// Files under protected names that were created in private, and not on the host.
    pub diverted: Diverted,
    /// Paths of which a protective mount was gone at some time, because the host replaced or
    /// removed what it was on. Meanwhile only intercepted calls protected them.
    pub uncovered: Vec<AbsPath>,
}

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A step of the setup failed.
    #[error("{failed}")]
    Failed {
        /// The step.
        failed: Failed,
        /// What is known about the cause.
        diagnosis: Vec<Lack>,
    },
    /// What is available, or was requested, is weaker than what is accepted.
    #[error("{}", too_weak(*requested, *available, *minimum))]
    TooWeak {
        /// What was requested.
        requested: Enforcement,
        /// What the machine provides of that.
        available: Enforcement,
        /// The weakest that is accepted.
        minimum: Enforcement,
        /// Why.
        diagnosis: Vec<Lack>,
    },
    /// A forbidden act succeeded.
    #[error("the self-test failed: {0} succeeded from inside")]
    DoesNotHold(String),
}

fn too_weak(requested: Enforcement, available: Enforcement, minimum: Enforcement) -> String {
    if requested < minimum {
        return format!(
            "`--enforcement {requested}` asks for less than `confinement.minimum = \"{minimum}\"` \
             accepts"
        );
    }
    format!("this machine provides only `{available}`, but `confinement.minimum` is `{minimum}`")
}

impl SandboxError {
    /// What is known about the cause.
    pub fn diagnosis(&self) -> &[Lack] {
        match self {
            Self::Failed { diagnosis, .. } | Self::TooWeak { diagnosis, .. } => diagnosis,
            Self::DoesNotHold(_) => &[],
        }
    }
}

/// Runs a command in the sandbox until it has ended and none of its processes are left. Its first
/// process may have been started before.
///
/// The calling process must have one thread; see [`fork_supervisor`](crate::fork_supervisor).
pub fn run(
    launch: &Launch<'_>,
    mut prefork: Option<Prefork>,
    monitor: &mut dyn Monitor,
) -> Result<Outcome, SandboxError> {
    let mut available = probe::probe(launch.requested, launch.plan);
    if available.enforcement < launch.minimum {
        let (requested, minimum) = (launch.requested.enforcement, launch.minimum);
        let mut diagnosis = available.lacking;
        if requested < minimum {
            diagnosis = vec![Lack {
                name: "less-requested".into(),
                what: format!("`--enforcement {requested}` was given"),
                remedy: format!(
                    "remove it, or set `confinement.minimum = \"{requested}\"` in ringwall.toml"
                ),
            }];
        }
        let available = available.enforcement;
        return Err(SandboxError::TooWeak { requested, available, minimum, diagnosis });
    }
    loop {
        match attempt(launch, available.clone(), prefork.take(), monitor) {
            // A weaker sandbox may be accepted; the `started` event says which one it is.
            Err(SandboxError::Failed { failed, diagnosis }) => {
                match probe::less(&available, launch.minimum, &failed, &diagnosis) {
                    Some(less) => available = less,
                    None => return Err(SandboxError::Failed { failed, diagnosis }),
                }
            }
            done => return done,
        }
    }
}

fn attempt(
    launch: &Launch<'_>,
    available: Available,
    prefork: Option<Prefork>,
    monitor: &mut dyn Monitor,
) -> Result<Outcome, SandboxError> {
    if available.enforcement == Enforcement::Namespaces {
        return Supervisor::start(launch, available, None, prefork)?.watch(monitor);
    }
    drop(prefork);
    let landlock_only = LandlockOnly::of(launch.plan);
    let launch = Launch { plan: &landlock_only.plan, ..*launch };
    Supervisor::start(&launch, available, Some(&landlock_only), None)?.watch(monitor)
}
