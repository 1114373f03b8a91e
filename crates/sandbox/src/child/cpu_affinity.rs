//! [`CpuAffinity`]: which processors supervisor and child use during the setup.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::sys::{self, Cloned};

/// The processors that this process could use before it was pinned to one, and that one.
pub(crate) struct CpuAffinity(Option<(CpuSet, usize)>);

impl CpuAffinity {
    /// Pins this process, and what it starts, to the processor that it runs on.
    pub(crate) fn pin_to_one() -> Self {
        let processors = Self::here();
        processors.pin(None);
        processors
    }

    fn here() -> Self {
        Self(sched_getaffinity(None).ok().map(|all| (all, sched_getcpu())))
    }

    /// Pins another process to the same one.
    pub(crate) fn pin_also(&self, process: i32) {
        self.pin(Pid::from_raw(process));
    }

    /// As received in the orders, by a process that the supervisor has pinned.
    pub(crate) fn from_orders((all, one): &(Vec<usize>, usize)) -> Self {
        let mut set = CpuSet::new();
        for processor in all {
            set.set(*processor);
        }
        Self((!all.is_empty()).then_some((set, *one)))
    }

    /// As sent in the orders.
    pub(crate) fn to_orders(&self) -> (Vec<usize>, usize) {
        let Self(Some((all, one))) = self else { return (Vec::new(), 0) };
        let all = (0..CpuSet::MAX_CPU).filter(|processor| all.is_set(*processor));
        (all.collect(), *one)
    }

    /// Starts a process on another processor, if there is one, so that this one does not wait for
    /// it.
    pub(crate) fn start_apart(start: impl FnOnce() -> io::Result<Cloned>) -> io::Result<Cloned> {
        let sched_other = sys::is_sched_other();
        if sched_other {
            sys::set_sched_batch(0, true);
        }
        let cloned = start();
        if let Ok(Cloned::Parent(_, pid)) = &cloned {
            Self::here().move_off(Pid::from_raw(*pid));
            if sched_other {
                sys::set_sched_batch(*pid, false);
            }
        }
        if sched_other && !matches!(cloned, Ok(Cloned::Child)) {
            sys::set_sched_batch(0, false);
        }
        cloned
    }

    fn pin(&self, process: Option<Pid>) {
        if let Self(Some((_, one))) = self {
            let mut kept = CpuSet::new();
            kept.set(*one);
            let _ = sched_setaffinity(process, &kept);
        }
    }

    /// Keeps the calling thread off that processor, if there are others.
    pub(crate) fn avoid(&self) {
        self.move_off(None);
    }

    fn move_off(&self, process: Option<Pid>) {
        if let Self(Some((all, one))) = self {
            let mut others = *all;
            others.unset(*one);
            // With a single processor this fails, and both take turns.
            let _ = sched_setaffinity(process, &others);
        }
    }

    /// Lets the calling process use all of them again.
    pub(crate) fn restore(&self) {
        if let Self(Some((all, _))) = self {
            let _ = sched_setaffinity(None, all);
        }
    }
}
