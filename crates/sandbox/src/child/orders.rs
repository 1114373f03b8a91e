//! [`Orders`]: what the first process of a run is to do, however it was started.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

use model::Plan;
use serde::{Deserialize, Serialize};

use super::Canary;
use super::cpu_affinity::CpuAffinity;
use crate::available::{Attribution, Available, Enforcement};
use crate::launch::Launch;
use crate::supervisor::cgroup::Cgroup;
use crate::test_hooks::Omitted;

/// What the first process is to do. It borrows from the launch where the process is a plain fork,
/// and owns everything where it arrives as a message.
#[derive(Serialize, Deserialize)]
pub(crate) struct Orders<'a> {
    pub(crate) plan: Cow<'a, Plan>,
    pub(crate) command: Cow<'a, [OsString]>,
    pub(crate) enforcement: Enforcement,
    pub(crate) attribution: Attribution,
    pub(crate) canary: Cow<'a, Canary>,
    /// The directories of the control group that enforces some limits already. They are always
    /// UTF-8.
    pub(crate) cgroup: Cow<'a, [PathBuf]>,
    pub(crate) performs_reads: bool,
    /// The processors that the run can use, and the one that it shares with the supervisor until
    /// the command starts.
    pub(crate) cpu_affinity: (Vec<usize>, usize),
    pub(crate) omitted: Omitted,
}

impl<'a> Orders<'a> {
    pub(crate) fn new(
        launch: &Launch<'a>,
        available: &Available,
        cgroup: Option<&'a Cgroup>,
        cpu_affinity: &CpuAffinity,
    ) -> Self {
        Self {
            plan: Cow::Borrowed(launch.plan),
            command: Cow::Borrowed(launch.command),
            enforcement: available.enforcement,
            attribution: available.attribution,
            canary: Cow::Borrowed(launch.canary),
            cgroup: Cow::Borrowed(cgroup.map(Cgroup::dirs).unwrap_or_default()),
            performs_reads: launch.performs_reads,
            cpu_affinity: cpu_affinity.to_orders(),
            omitted: Omitted::from_environment(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::path::Path;

    use model::{
        AbsPath, Base, ByteSize, Kind, Level, Limits, Link, Net, OutboundPorts, Piece, PrivateLayer,
    };

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
            granted_later: vec![path("/work/TODO.md")],
            publish: Vec::new(),
            unix_sockets: Vec::new(),
            environment: vec![("TOKEN".into(), odd("secret"))],
            network: Net::Own,
            ports: OutboundPorts {
                ports: vec![443, 22],
                local_ports: vec![8080],
                addresses: vec![[127, 0, 0, 9].into()],
            },
            limits: Limits {
                memory: Some(ByteSize(1 << 40)),
                private_files: Some(ByteSize(1 << 30)),
                processes: Some(7),
                asked: true,
                file_size: None,
                descriptors: u64::MAX,
                wall_seconds: Some(1),
                idle_seconds: None,
            },
            layer: PrivateLayer::Kept(path(odd("/state"))),
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
            enforcement: Enforcement::Namespaces,
            attribution: Attribution::Notify,
            canary: Cow::Borrowed(&canary),
            cgroup: Cow::Owned(vec!["/sys/fs/cgroup/one".into()]),
            performs_reads: true,
            cpu_affinity: (vec![0, 3], 3),
            omitted: Omitted::default(),
        };
        let bytes = postcard::to_allocvec(&orders).unwrap();
        let arrived: Orders<'_> = postcard::from_bytes(&bytes).unwrap();
        assert_eq!((&arrived.plan, &arrived.command), (&orders.plan, &orders.command));
        assert_eq!((&arrived.canary.file, arrived.canary.port), (&canary.file, 7));
        assert_eq!((&arrived.cgroup, arrived.performs_reads), (&orders.cgroup, true));
        assert_eq!(arrived.cpu_affinity, orders.cpu_affinity);
        assert_eq!(arrived.omitted, orders.omitted);
        assert_eq!(arrived.enforcement, Enforcement::Namespaces);
        assert_eq!(arrived.attribution, Attribution::Notify);
    }

    #[test]
    fn text_shows_no_values_of_variables() {
        let text = serde_json::to_string(&plan()).unwrap();
        assert!(text.contains("TOKEN") && !text.contains("secret"), "{text}");
    }
}
