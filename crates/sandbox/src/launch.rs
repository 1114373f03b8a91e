//! A run as its caller sees it: what to run and how, how it ended, why there was none.

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
use crate::supervisor::usage::Usage;

/// What to run, and how.
pub struct Launch<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// The best to try for.
    pub requested: Requested,
    /// The least to accept.
    pub minimum: Enforcement,
    /// What must be out of reach.
    pub canary: &'a Canary,
    /// Who runs.
    pub user: (u32, u32),
    /// Whether files that appear during the run may have to be hidden from it.
    pub hides_new_files: bool,
    /// Ends the run with [`End::Cancelled`] when it becomes readable or is hung up.
    pub stop: Option<BorrowedFd<'a>>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The command ended by itself, with what a shell would show.
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
    /// The command could not be run.
    NotRun(Failed),
    /// The first process inside was killed from outside.
    Lost,
}

/// What is known after a run.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// What it used.
    pub usage: Usage,
    /// Which limits a control group held, and which each process by itself.
    pub limited_by: &'static str,
    /// The limits that a control group had to hold, by name.
    pub reached: Vec<&'static str>,
    /// Whether something may have been changed: a call was made that can, or nobody watched.
    pub changed: bool,
    /// What was written beside a file that may be written, and is lost.
    pub lost: Vec<AbsPath>,
}

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A step of the set-up failed.
    #[error("{failed}")]
    Failed {
        /// Which.
        failed: Failed,
        /// What is known about the cause.
        diagnosis: Vec<Lack>,
    },
    /// The machine gives less than is accepted.
    #[error("this machine gives only `{available}`, and `{minimum}` is the least that is accepted")]
    TooWeak {
        /// What it gives.
        available: Enforcement,
        /// What is accepted.
        minimum: Enforcement,
        /// Why.
        diagnosis: Vec<Lack>,
    },
    /// A forbidden act worked.
    #[error("the wall does not hold: from inside, {0} worked")]
    DoesNotHold(String),
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

/// Runs a command behind the wall, until it has ended and nothing of it is left. Its first process
/// may have been sent ahead.
pub fn run(
    launch: &Launch<'_>,
    mut prefork: Option<Prefork>,
    monitor: &mut dyn Monitor,
) -> Result<Outcome, SandboxError> {
    let mut available = probe::probe(launch.requested, launch.plan);
    if available.enforcement < launch.minimum {
        let minimum = launch.minimum;
        return Err(SandboxError::TooWeak {
            available: available.enforcement,
            minimum,
            diagnosis: available.lacking,
        });
    }
    loop {
        match attempt(launch, available.clone(), prefork.take(), monitor) {
            // Less may be accepted, and every event says that it is less.
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
