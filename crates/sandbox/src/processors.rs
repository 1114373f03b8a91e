//! [`Processors`]: on which of them supervisor and child run while the wall is built.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processors that this process could use before it kept to one of them.
pub(crate) struct Processors(Option<CpuSet>);

impl Processors {
    /// Keeps this process, and what it starts, to the processor that it runs on.
    pub(crate) fn keep_to_one() -> Self {
        let all = sched_getaffinity(None).ok();
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        let kept = all.is_some() && sched_setaffinity(None, &one).is_ok();
        Self(all.filter(|_| kept))
    }

    /// Moves the calling thread to the others, if there are any, so that it runs beside its process.
    pub(crate) fn leave(&self) {
        let Self(Some(all)) = self else { return };
        let mut others = *all;
        others.unset(sched_getcpu());
        // Without others this fails, and the thread takes its turns.
        let _ = sched_setaffinity(None, &others);
    }

    /// Lets the calling process use all of them again.
    pub(crate) fn restore(&self) {
        if let Self(Some(all)) = self {
            let _ = sched_setaffinity(None, all);
        }
    }
}
