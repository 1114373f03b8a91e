//! What a call on a path gets, as a table.

use std::path::PathBuf;

use model::{Base, Level, Limits, Net, OutboundPorts, PrivateLayer, WhyTemporary};

use super::*;
use crate::monitor::tests::Fake;

/// A workspace that may be written, a file granted alone, one granted before it exists, and
/// something outside.
struct Place {
    _dir: tempfile::TempDir,
    root: PathBuf,
    plan: Plan,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["work", "outside"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        for name in ["work/file", "outside/file", "outside/TODO.md"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        let path = |name: &str| AbsPath::lexical(&root.join(name)).unwrap();
        let piece = |name, directory| Piece {
            path: path(name),
            kind: Kind::Write,
            directory,
            why: model::Cause::Workspace,
        };
        let plan = Plan {
            cwd: path("work"),
            workspace: path("work"),
            home: path("home"),
            level: Level::Readwrite,
            base: Base::Nothing,
            pieces: vec![
                piece("outside/TODO.md", false),
                piece("outside/later", false),
                piece("work", true),
            ],
            links: Vec::new(),
            copies: Vec::new(),
            granted_later: vec![path("outside/later")],
            publish: Vec::new(),
            unix_sockets: Vec::new(),
            environment: Vec::new(),
            network: Net::Own,
            ports: OutboundPorts::default(),
            limits: Limits {
                memory: None,
                private_files: None,
                processes: None,
                asked: false,
                file_size: None,
                descriptors: 1024,
                wall_seconds: None,
                idle_seconds: None,
            },
            layer: PrivateLayer::Temporary(WhyTemporary::Fresh),
        };
        Self { _dir: dir, root, plan }
    }

    fn path(&self, name: &str) -> AbsPath {
        AbsPath::lexical(&self.root.join(name)).unwrap()
    }

    fn judge(&self, monitor: &mut Fake, operation: Operation, name: &str, flags: i32) -> Judged {
        let mut watcher = Watcher {
            plan: &self.plan,
            monitor,
            self_test: false,
            reads: true,
            performs_reads: false,
            own_root: true,
            processes: None,
            views: &Views::default(),
            drafts: &mut Drafts::default(),
            diverted: &mut Diverted::default(),
            connects: &mut Connects::default(),
            network: None,
        };
        let argument =
            PathArgument { directory: 0, pointer: 0, follow: true, empty_means_directory: false };
        let flags = flags.cast_unsigned();
        let call = Call { operation, path: argument, second: None, flags };
        watcher.call(&call, Some(&self.path(name)), None, std::process::id())
    }
}

#[test]
fn what_a_call_on_a_path_gets() {
    use Operation::{Create, List, Look, MakeDirectory, Read, Remove, Rename, Write};
    const STOP: Judged = Judged::Ruled(Ruling::Stop);
    let place = Place::new();
    let plain = || Fake { stop: true, ..Fake::default() };
    let probe = || Fake { probe: true, ..plain() };
    let guarded = || Fake { guarded: true, probe: true, ..plain() };
    let lock = || Fake { lock_only: true, ..plain() };
    let draft = || Fake { draft: true, ..plain() };
    let rows: [(Fake, Operation, &str, Judged); 21] = [
        // Allowed by the plan.
        (plain(), Read, "work/file", CONTINUE),
        (plain(), Create, "work/new", CONTINUE),
        (guarded(), Read, "work/file", CONTINUE),
        (guarded(), Create, "work/.envrc", STOP),
        // Outside of it.
        (plain(), Look, "outside/file", CONTINUE),
        (plain(), Read, "outside/file", STOP),
        (plain(), Read, "outside/none", CONTINUE),
        (plain(), List, "outside", CONTINUE),
        (plain(), Write, "outside/file", STOP),
        (plain(), Write, "outside/none", errno(libc::ENOENT)),
        (plain(), Create, "outside/none", STOP),
        (plain(), Create, "none/none", errno(libc::ENOENT)),
        (plain(), MakeDirectory, "outside", errno(libc::EEXIST)),
        (plain(), Rename, "outside/file", STOP),
        (probe(), Read, "outside/file", errno(libc::ENOENT)),
        (probe(), Create, "outside/none", errno(libc::EACCES)),
        // Stand-ins for what cannot be created.
        (lock(), Create, "outside/none", Judged::Lend),
        (lock(), Create, "outside/file", errno(libc::EEXIST)),
        (lock(), Remove, "outside/none", Judged::Done),
        (draft(), Create, "outside/TODO.tmp", Judged::Draft(place.path("outside/TODO.tmp"))),
        (plain(), Create, "outside/later", {
            let flags = libc::O_CREAT.cast_unsigned();
            Judged::Create(place.path("outside/later"), Create, flags)
        }),
    ];
    for (mut monitor, operation, name, expected) in rows {
        let judged = place.judge(&mut monitor, operation, name, libc::O_CREAT);
        assert_eq!(judged, expected, "{operation:?} {name}");
        let probed = matches!(expected, Judged::Ruled(Ruling::Errno(_))) && monitor.probe;
        assert_eq!(monitor.probed, usize::from(probed), "{operation:?} {name}");
        assert_eq!(monitor.denied, usize::from(expected == STOP), "{operation:?} {name}");
    }
}
