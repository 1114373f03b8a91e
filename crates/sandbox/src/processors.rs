//! [`Processors`]: on which of them supervisor and child run while the wall is built.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processors that this process could use before it kept to one of them, and that one.
pub(crate) struct Processors(Option<(CpuSet, usize)>);

impl Processors {
    /// Keeps this process, and what it starts, to the processor that it runs on.
    pub(crate) fn keep_to_one() -> Self {
        let one = sched_getcpu();
        let all = sched_getaffinity(None).ok();
        let processors = Self(all.map(|all| (all, one)));
        processors.keep();
        processors
    }

    fn keep(&self) {
        if let Self(Some((_, one))) = self {
            let mut kept = CpuSet::new();
            kept.set(*one);
            let _ = sched_setaffinity(None, &kept);
        }
    }

    /// Starts a thread, which need not wait for the processor that its process keeps to.
    pub(crate) fn start_beside<T>(&self, start: impl FnOnce() -> T) -> T {
        self.restore();
        let started = start();
        self.keep();
        started
    }

    /// Keeps the calling thread off that processor, if there are others.
    pub(crate) fn leave(&self) {
        if let Self(Some((all, one))) = self {
            let mut others = *all;
            others.unset(*one);
            // Without others this fails, and the thread takes its turns.
            let _ = sched_setaffinity(None, &others);
        }
    }

    /// Lets the calling process use all of them again.
    pub(crate) fn restore(&self) {
        if let Self(Some((all, _))) = self {
            let _ = sched_setaffinity(None, all);
        }
    }
}
