//! A run as its caller sees it: what to run and how, how it ended, why there was none.

use std::ffi::OsString;

use model::{AbsPath, Plan};

use crate::ahead::Ahead;
use crate::failure::Failed;
use crate::got::{Asked, Enforcement, Got, Lack};
use crate::inside::{Canary, Layer};
use crate::probe;
use crate::supervisor::Supervisor;
use crate::unmounted::Unmounted;
use crate::usage::Usage;
use crate::warden::Warden;

/// What to run, and how.
pub struct Launch<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// The best to try for.
    pub asked: Asked,
    /// The least to accept.
    pub minimum: Enforcement,
    /// What must be out of reach.
    pub canary: &'a Canary,
    /// Who runs.
    pub user: (u32, u32),
    /// Whether files may have to be covered while the run goes on.
    pub covers: bool,
    /// Layers to leave out, for tests.
    pub omit: &'a [Layer],
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
pub enum WallError {
    /// A step of the set-up failed.
    #[error("{failed}")]
    Failed {
        /// Which.
        failed: Failed,
        /// What is known about the cause.
        diagnosis: Vec<Lack>,
    },
    /// The machine gives less than is accepted.
    #[error("this machine gives only `{got}`, and `{minimum}` is the least that is accepted")]
    TooWeak {
        /// What it gives.
        got: Enforcement,
        /// What is accepted.
        minimum: Enforcement,
        /// Why.
        diagnosis: Vec<Lack>,
    },
    /// A forbidden act worked.
    #[error("the wall does not hold: from inside, {0} worked")]
    DoesNotHold(String),
}

impl WallError {
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
    mut ahead: Option<Ahead>,
    warden: &mut dyn Warden,
) -> Result<Outcome, WallError> {
    let mut got = probe::probe(launch.asked, launch.plan);
    if got.enforcement < launch.minimum {
        let minimum = launch.minimum;
        return Err(WallError::TooWeak { got: got.enforcement, minimum, diagnosis: got.lacking });
    }
    loop {
        match attempt(launch, got.clone(), ahead.take(), warden) {
            // Less may be accepted, and every event says that it is less.
            Err(WallError::Failed { failed, diagnosis }) => {
                match probe::less(&got, launch.minimum, &failed, &diagnosis) {
                    Some(less) => got = less,
                    None => return Err(WallError::Failed { failed, diagnosis }),
                }
            }
            done => return done,
        }
    }
}

fn attempt(
    launch: &Launch<'_>,
    got: Got,
    ahead: Option<Ahead>,
    warden: &mut dyn Warden,
) -> Result<Outcome, WallError> {
    if got.enforcement == Enforcement::Namespaces {
        return Supervisor::start(launch, got, None, ahead)?.watch(warden);
    }
    drop(ahead);
    let unmounted = Unmounted::of(launch.plan);
    let launch = Launch { plan: &unmounted.plan, ..*launch };
    Supervisor::start(&launch, got, Some(&unmounted), None)?.watch(warden)
}
