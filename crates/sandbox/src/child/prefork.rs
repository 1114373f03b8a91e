//! [`Prefork`]: the first process of a run, started before anybody knows what for.
//!
//! Its namespaces, the network above all, take the kernel as long as it takes us to make a plan, so
//! both happen at once. Then it is told.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use model::Plan;
use rustix::fs::MemfdFlags;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::available::Attribution;
use crate::child::cpu_affinity::CpuAffinity;
use crate::child::{self, Canary, Layer};
use crate::failure::{Failed, Step};
use crate::ipc;
use crate::probe;
use crate::sys::{self, Cloned};

/// The first process of a run, behind its namespaces, waiting. It dies with this value.
pub struct Prefork {
    first: Option<First>,
}

/// A process and the way to talk to it.
pub(crate) struct First {
    pub(crate) process: OwnedFd,
    pub(crate) pid: i32,
    pub(crate) socket: OwnedFd,
}

/// What it is to do.
#[derive(Serialize, Deserialize)]
pub(crate) struct Orders<'a> {
    pub(crate) plan: Cow<'a, Plan>,
    pub(crate) command: Cow<'a, [OsString]>,
    pub(crate) attribution: Attribution,
    pub(crate) canary: Cow<'a, Canary>,
    /// The directories of the control group that holds some limits already. They are always text.
    pub(crate) group: Cow<'a, [PathBuf]>,
    pub(crate) hides_new_files: bool,
    /// The processors that the run can use, and the one that it shares with the supervisor until
    /// the command starts.
    pub(crate) cpu_affinity: (Vec<usize>, usize),
    pub(crate) omit: Cow<'a, [Layer]>,
}

impl Prefork {
    /// Starts it for a user, in the best kind of namespaces. The calling process must have one
    /// thread.
    pub fn start(user: (u32, u32)) -> Result<Self, Failed> {
        let pair = ipc::pair();
        let (socket, theirs) = pair.map_err(|error| Failed::new(Step::Talk, error))?;
        let cloned = CpuAffinity::start_apart(|| sys::clone_into(probe::namespaces()));
        match cloned.map_err(|error| Failed::new(Step::Namespaces, error))? {
            Cloned::Child => {
                drop(socket);
                child::wait_for_orders(theirs, user)
            }
            Cloned::Parent(process, pid) => {
                Ok(Self { first: Some(First { process, pid, socket }) })
            }
        }
    }

    pub(crate) fn keep_to(&self, cpu_affinity: &CpuAffinity) {
        self.first.iter().for_each(|first| cpu_affinity.keep_also(first.pid));
    }

    /// Tells it what it is for. A command can be longer than a message.
    pub(crate) fn give(mut self, orders: &Orders<'_>) -> io::Result<First> {
        let first = self.first.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let bytes = postcard::to_allocvec(orders).map_err(io::Error::other)?;
        let mut paper = File::from(rustix::fs::memfd_create("orders", MemfdFlags::CLOEXEC)?);
        paper.write_all(&bytes)?;
        paper.rewind()?;
        sys::send(&first.socket, b"orders", &[paper.as_fd()])?;
        self.first.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for Prefork {
    fn drop(&mut self) {
        if let Some(First { process, pid, .. }) = &self.first {
            let _ = rustix::process::pidfd_send_signal(process, Signal::KILL);
            let _ = sys::wait_for(*pid);
        }
    }
}

/// Waits to be told. `None`: the supervisor is gone.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<Orders<'static>>> {
    let (_, descriptors, _) = sys::receive(socket)?;
    let Some(paper) = descriptors.into_iter().next() else { return Ok(None) };
    let mut bytes = Vec::new();
    File::from(paper).read_to_end(&mut bytes)?;
    postcard::from_bytes(&bytes).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::path::Path;

    use model::{AbsPath, Base, Bounds, ByteSize, Kind, Level, Link, Net, Piece, Ways};

    use super::*;

    /// A name that is no text.
    fn odd(start: &str) -> OsString {
        let mut name = OsString::from(start).into_vec();
        name.extend([b'/', 0xff, b'\n', b' ']);
        OsString::from_vec(name)
    }

    fn path(text: impl AsRef<Path>) -> AbsPath {
        AbsPath::lexical(text.as_ref()).unwrap()
    }

    fn plan() -> Plan {
        let kinds = [Kind::Write, Kind::Overlay, Kind::Closed, Kind::Text("\0text\n".into())];
        let piece = |kind| Piece {
            path: path(odd("/work")),
            directory: kind != Kind::Closed,
            kind,
            why: model::Cause::Workspace,
        };
        Plan {
            cwd: path("/work"),
            workspace: path(odd("/work")),
            home: path("/"),
            level: Level::Network,
            base: Base::Host,
            pieces: kinds.into_iter().map(piece).collect(),
            links: vec![Link { path: path("/bin"), target: odd("../usr").into() }],
            copies: vec![(path("/a"), path(odd("/b")))],
            late: vec![path("/work/TODO.md")],
            environment: vec![("TOKEN".into(), odd("secret"))],
            network: Net::Own,
            doors: Ways {
                ports: vec![443, 22],
                local_ports: vec![8080],
                addresses: vec![[127, 0, 0, 9].into()],
            },
            limits: Bounds {
                memory: Some(ByteSize(1 << 40)),
                processes: Some(7),
                asked: true,
                file_size: None,
                descriptors: u64::MAX,
                wall_seconds: Some(1),
                idle_seconds: None,
            },
        }
    }

    #[test]
    fn a_plan_arrives_as_it_was() {
        let bytes = postcard::to_allocvec(&plan()).unwrap();
        assert_eq!(postcard::from_bytes::<Plan>(&bytes).unwrap(), plan());
    }

    #[test]
    fn orders_arrive_as_they_were() {
        let canary = Canary { file: path(odd("/state")), port: 7 };
        let orders = Orders {
            plan: Cow::Owned(plan()),
            command: Cow::Owned(vec![odd("run"), OsString::new()]),
            attribution: Attribution::Notify,
            canary: Cow::Borrowed(&canary),
            group: Cow::Owned(vec!["/sys/fs/cgroup/one".into()]),
            hides_new_files: true,
            cpu_affinity: (vec![0, 3], 3),
            omit: Cow::Owned(vec![Layer::Seccomp]),
        };
        let bytes = postcard::to_allocvec(&orders).unwrap();
        let arrived: Orders<'_> = postcard::from_bytes(&bytes).unwrap();
        assert_eq!((&arrived.plan, &arrived.command), (&orders.plan, &orders.command));
        assert_eq!((&arrived.canary.file, arrived.canary.port), (&canary.file, 7));
        assert_eq!((&arrived.group, arrived.hides_new_files), (&orders.group, true));
        assert_eq!((&arrived.cpu_affinity, &arrived.omit), (&orders.cpu_affinity, &orders.omit));
        assert_eq!(arrived.attribution, Attribution::Notify);
    }

    #[test]
    fn text_shows_no_values_of_variables() {
        let text = serde_json::to_string(&plan()).unwrap();
        assert!(text.contains("TOKEN") && !text.contains("secret"), "{text}");
    }
}
