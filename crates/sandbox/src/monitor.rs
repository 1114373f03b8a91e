//! [`Monitor`]: the caller's side of a run. The supervisor asks it for rulings, and reports to it.
//!
//! [`rule`] is the only place that turns an attempt into a [`Ruling`].

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{AbsPath, Caller, Unresolvable};

use crate::available::{Available, SelfTest};
use crate::network::listeners::Listeners;
use crate::observe::program::Program;
use crate::supervisor::diverted::Diverted;
use crate::{Attempt, Operation};

/// Where the link at a path leads for a process inside, or why there is none, where that differs
/// from what the host has there.
pub type Links<'a> = &'a dyn Fn(&AbsPath) -> Option<io::Result<PathBuf>>;

/// What becomes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// The kernel decides, as if no one had been asked.
    Continue,
    /// The call fails with this error, and the run goes on.
    Errno(i32),
    /// The run ends before the call returns.
    Stop,
}

/// The questions that only the policy can answer.
pub trait Rules {
    /// Where a path leads, with links followed: those of the host, and where the run sees something
    /// else, those that it finds. The work is bounded, whatever the path is.
    fn resolve(&mut self, path: &Path, links: Links<'_>) -> Result<AbsPath, Unresolvable>;

    /// Whether this is a probe: something that many programs try without need. It is denied and
    /// recorded, and never a reason to stop.
    fn is_probe(&self, path: &AbsPath, operation: Operation) -> bool;

    /// The error that the user would have got outside, if the user could not do this there either. It is
    /// no violation then, because nothing is withheld. `None` if the user could do it, and for what
    /// no program tries by habit.
    fn refused_outside(&self, _path: &AbsPath, _operation: Operation) -> Option<i32> {
        None
    }

    /// Whether this must be denied although the path may be written: a name that must not be
    /// created, or must not disappear.
    fn is_guarded(&mut self, path: &AbsPath, operation: Operation) -> bool;

    /// Takes note that something is about to be moved. False if it must not be.
    fn moves(&mut self, _from: &AbsPath, _to: &AbsPath) -> bool {
        true
    }

    /// Whether no symbolic link, and nothing that could hold one, may be moved to a path.
    fn keeps_links_out(&self, _: &AbsPath) -> bool {
        false
    }

    /// Whether a path of the home directory may be private to the run: nothing that the policy says
    /// speaks against it.
    fn may_be_private(&self, _: &AbsPath) -> bool {
        false
    }

    /// Whether a file that cannot be created would be the next version of one that may be written.
    fn is_draft(&self, path: &AbsPath) -> bool;

    /// Whether a file that a program creates at a path is diverted: it cannot be there, and its content
    /// may be one that the user has committed.
    fn diverts(&self, _: &AbsPath) -> bool {
        false
    }

    /// Whether git is changing the files of the checkout that a path is in.
    fn is_being_checked_out(&self, _: &AbsPath) -> bool {
        false
    }

    /// Takes over what was diverted and may be on the host. What stays is kept for the end of the run.
    fn settle(&mut self, _: &mut Diverted) {}

    /// Whether what git would change in a file that cannot be written is only a record of what it did:
    /// the old and the new content.
    fn records(&self, _: &AbsPath, _old: &[u8], _new: &[u8]) -> bool {
        false
    }

    /// Whether a file that cannot be created would be a lock and nothing else. The program gets a
    /// private file instead, which has no effect.
    fn is_lock_only(&self, path: &AbsPath) -> bool;

    /// Whether a program that only looks at a path is shown that it exists: to learn what it needs, or
    /// on the way to the directories in which programs are looked for.
    fn shows_looks(&self, _: &Path) -> bool {
        false
    }

    /// The directories in which something may appear that must not be read, and whether it may also
    /// appear in any directory below them.
    fn directories_to_watch(&mut self) -> (Vec<PathBuf>, bool);

    /// Whether something that appeared must not be read.
    fn is_hidden(&mut self, path: &Path) -> bool;

    /// Denies an attempt that is not a probe: whether the call fails, or the run ends.
    fn deny(&mut self, attempt: &Attempt, program: &Program) -> Ruling;

    /// The same for a connection that does not go through a listener of the run's own network.
    fn deny_connection(&mut self, target: SocketAddr, program: &Program) -> Ruling;
}

/// What is recorded of a run.
pub trait Journal {
    /// The sandbox is complete and was tried from inside; the command is about to run.
    fn started(&mut self, available: &Available, test: &SelfTest, missing: &[String]);

    /// A probe was denied.
    fn probed(&mut self, attempt: &Attempt, program: &Program);

    /// A program listens on a port inside that is not published.
    fn listens(&mut self, _: SocketAddr, _: &Program) {}

    /// A program connects to a port of the loopback on which a program of the host listens, and none of
    /// the run. The connection fails.
    fn finds_no_server(&mut self, _: SocketAddr, _: &Program) {}
    /// Called between events, for what has to wait until the terminal takes it. Returns when it has to be
    /// called again at the latest.
    fn between_events(&mut self) -> Option<Duration> {
        None
    }

    /// Something was denied that the user could not do outside either.
    fn failed_as_outside(&mut self, _attempt: &Attempt, _program: &Program) {}
}

/// The run's own network, as far as the caller serves it.
pub trait NetworkEvents {
    /// A process inside connects for the first time: the caller serves these listeners from now on.
    fn serve(&mut self, listeners: Listeners) -> io::Result<()>;

    /// Listeners outside that lead to servers inside, until [`Self::serve`] is called.
    fn published(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// The descriptors that become readable when there is an event.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// Handles what happened. `who` finds the program behind a caller. Only [`Ruling::Stop`] has
    /// an effect: what was denied has been answered already.
    fn handle(&mut self, who: &dyn Fn(&Caller) -> Program) -> Ruling;
}

/// The caller's side of a run.
pub trait Monitor: Rules + Journal + NetworkEvents {}

impl<T: Rules + Journal + NetworkEvents> Monitor for T {}

/// How an attempt became known, and so why it is not simply allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The tripwire: the path is outside of what the plan allows.
    Tripwire,
    /// A system call, on a path that is outside of what the plan allows.
    Syscall,
    /// A system call, on a protected name inside of what the plan allows. It is never a probe.
    Guarded,
}

/// Rules on an attempt.
pub(crate) fn rule(
    monitor: &mut dyn Monitor,
    source: Source,
    attempt: &Attempt,
    program: impl FnOnce() -> Program,
) -> Ruling {
    // A protected name is denied inside of what the plan allows, whatever the path is.
    let outside =
        (source != Source::Guarded).then(|| AbsPath::lexical(&attempt.path).ok()).flatten();
    if outside.as_ref().is_some_and(|path| monitor.is_probe(path, attempt.operation)) {
        monitor.probed(attempt, &program());
        return Ruling::Errno(probe_errno(source, attempt.operation));
    }
    // Learning that something exists is no violation; only the paths of probes are hidden.
    if attempt.operation == Operation::Look {
        return Ruling::Continue;
    }
    let refused = outside.and_then(|path| monitor.refused_outside(&path, attempt.operation));
    if let Some(errno) = refused {
        monitor.failed_as_outside(attempt, &program());
        return Ruling::Errno(errno);
    }
    monitor.deny(attempt, &program())
}

/// What a probe gets: ENOENT, unless it writes, or has already seen that the path exists. The
/// tripwire shows a name before it is opened.
fn probe_errno(source: Source, operation: Operation) -> i32 {
    let seen = source == Source::Tripwire && operation != Operation::Look;
    if seen || operation.writes() { libc::EACCES } else { libc::ENOENT }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Rules by fixed answers, and remembers what it was asked.
    #[derive(Default)]
    #[expect(clippy::struct_excessive_bools, reason = "one answer per question")]
    pub(crate) struct Fake {
        pub(crate) probe: bool,
        pub(crate) guarded: bool,
        pub(crate) draft: bool,
        pub(crate) lock_only: bool,
        pub(crate) stop: bool,
        pub(crate) refused_outside: Option<i32>,
        pub(crate) failed_as_outside: usize,
        pub(crate) probed: usize,
        pub(crate) denied: usize,
    }

    impl Fake {
        fn ruling(&mut self, errno: i32) -> Ruling {
            self.denied += 1;
            if self.stop { Ruling::Stop } else { Ruling::Errno(errno) }
        }
    }

    impl Rules for Fake {
        fn resolve(&mut self, path: &Path, _: Links<'_>) -> Result<AbsPath, Unresolvable> {
            AbsPath::lexical(path).map_err(|error| Unresolvable::Refused(error.to_string()))
        }
        fn is_probe(&self, _: &AbsPath, _: Operation) -> bool {
            self.probe
        }
        fn refused_outside(&self, _: &AbsPath, _: Operation) -> Option<i32> {
            self.refused_outside
        }
        fn is_guarded(&mut self, _: &AbsPath, _: Operation) -> bool {
            self.guarded
        }
        fn is_draft(&self, _: &AbsPath) -> bool {
            self.draft
        }
        fn is_lock_only(&self, _: &AbsPath) -> bool {
            self.lock_only
        }
        fn directories_to_watch(&mut self) -> (Vec<PathBuf>, bool) {
            (Vec::new(), false)
        }
        fn is_hidden(&mut self, _: &Path) -> bool {
            false
        }
        fn deny(&mut self, _: &Attempt, _: &Program) -> Ruling {
            self.ruling(libc::EACCES)
        }
        fn deny_connection(&mut self, _: SocketAddr, _: &Program) -> Ruling {
            self.ruling(libc::ENETUNREACH)
        }
    }

    impl Journal for Fake {
        fn started(&mut self, _: &Available, _: &SelfTest, _: &[String]) {}
        fn probed(&mut self, _: &Attempt, _: &Program) {
            self.probed += 1;
        }
        fn failed_as_outside(&mut self, _: &Attempt, _: &Program) {
            self.failed_as_outside += 1;
        }
    }

    impl NetworkEvents for Fake {
        fn serve(&mut self, _: Listeners) -> io::Result<()> {
            Ok(())
        }
        fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
            Vec::new()
        }
        fn handle(&mut self, _: &dyn Fn(&Caller) -> Program) -> Ruling {
            Ruling::Continue
        }
    }

    #[test]
    fn an_attempt_gets_one_ruling() {
        use Operation::{Connect, Create, List, Look, Read};
        use Source::{Guarded, Syscall, Tripwire};
        const ABSENT: Ruling = Ruling::Errno(libc::ENOENT);
        const DENIED: Ruling = Ruling::Errno(libc::EACCES);
        // source, operation; if it is a probe, if it is denied, if the policy stops
        let table = [
            (Tripwire, Look, ABSENT, Ruling::Continue, Ruling::Continue),
            (Tripwire, Read, DENIED, DENIED, Ruling::Stop),
            (Tripwire, List, DENIED, DENIED, Ruling::Stop),
            (Tripwire, Create, DENIED, DENIED, Ruling::Stop),
            (Syscall, Look, ABSENT, Ruling::Continue, Ruling::Continue),
            (Syscall, Read, ABSENT, DENIED, Ruling::Stop),
            (Syscall, Connect, ABSENT, DENIED, Ruling::Stop),
            (Syscall, Create, DENIED, DENIED, Ruling::Stop),
            (Guarded, Create, DENIED, DENIED, Ruling::Stop),
        ];
        for (source, operation, probe, deny, stop) in table {
            let attempt = Attempt { operation, path: "/outside".into(), pid: 1 };
            for (is_probe, stops, expected) in
                [(true, false, probe), (false, false, deny), (false, true, stop)]
            {
                let mut fake = Fake { probe: is_probe, stop: stops, ..Fake::default() };
                let ruling = rule(&mut fake, source, &attempt, Program::default);
                assert_eq!(ruling, expected, "{source:?} {operation:?} {is_probe} {stops}");
                let probed = usize::from(is_probe && source != Guarded);
                let denied = usize::from(ruling != Ruling::Continue) - probed;
                assert_eq!(
                    (fake.probed, fake.denied),
                    (probed, denied),
                    "{source:?} {operation:?}"
                );
            }
        }
    }

    #[test]
    fn what_fails_outside_fails_inside_and_stops_nothing() {
        use Operation::{Create, Look, Read};
        let errno = Ruling::Errno(libc::EROFS);
        for (source, operation, expected, recorded) in [
            (Source::Tripwire, Read, errno, 1),
            (Source::Syscall, Create, errno, 1),
            // A look learns nothing from it.
            (Source::Tripwire, Look, Ruling::Continue, 0),
            // A protected name is no matter of permissions.
            (Source::Guarded, Create, Ruling::Stop, 0),
        ] {
            let refused_outside = Some(libc::EROFS);
            let mut fake = Fake { stop: true, refused_outside, ..Fake::default() };
            let attempt = Attempt { operation, path: "/outside".into(), pid: 1 };
            let ruling = rule(&mut fake, source, &attempt, Program::default);
            assert_eq!(ruling, expected, "{source:?} {operation:?}");
            assert_eq!(fake.failed_as_outside, recorded, "{source:?} {operation:?}");
        }
    }
}
