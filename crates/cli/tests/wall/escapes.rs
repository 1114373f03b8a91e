//! A table of ways out. Each is tried without the wall, where it must work, and behind the wall,
//! where it must not. What happened is judged from outside.

mod ground;
mod messages;
mod network;
mod persistence;
mod privileges;
mod processes;
mod reads;
mod resources;
mod row;
mod writes;

use std::fmt::Write as _;

use crate::yard::{As, everybody};
pub(crate) use ground::{Ground, Tried, Wall};
use row::Row;

const TABLE: &[(&str, &[Row])] = &[
    ("reads", reads::ROWS),
    ("writes", writes::ROWS),
    ("persistence", persistence::ROWS),
    ("network", network::ROWS),
    ("messages", messages::ROWS),
    ("processes", processes::ROWS),
    ("privileges", privileges::ROWS),
    ("resources", resources::ROWS),
];

/// Whom a host keeps from something by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    Ordinary,
    Root,
    Everybody,
}
use Whom::{Everybody, Ordinary, Root};

/// Blocked by the host: ways that do not work on this machine, or not on every machine, without
/// any wall. Behind the wall they are tried all the same.
const BLOCKED_BY_HOST: &[(Whom, &str, &str)] = &[
    // Files that only root reads or writes.
    (Ordinary, "read the system's passwords", OF_ROOT),
    (Ordinary, "read the kernel's log", OF_ROOT),
    (Ordinary, "read the console", OF_ROOT),
    (Ordinary, "write among the system's programs", OF_ROOT),
    (Ordinary, "write among the system's settings", OF_ROOT),
    (Ordinary, "a job of the system", OF_ROOT),
    (Ordinary, "a library that everything loads", OF_ROOT),
    (Ordinary, "a selection on the console", OF_ROOT),
    (Ordinary, "settings of the kernel", OF_ROOT),
    (Ordinary, "keys for the kernel", OF_ROOT),
    (Ordinary, "control groups", OF_ROOT),
    (Ordinary, "settings of devices", OF_ROOT),
    // Calls that need a right.
    (Ordinary, "read by the number of a file", NEEDS_RIGHTS),
    (Ordinary, "read among another process's mounts", NEEDS_RIGHTS),
    (Ordinary, "write by the number of a file", NEEDS_RIGHTS),
    (Ordinary, "change the owner of a file", NEEDS_RIGHTS),
    (Ordinary, "a raw packet", NEEDS_RIGHTS),
    (Ordinary, "packets of others", NEEDS_RIGHTS),
    (Ordinary, "a mount as it stands", NEEDS_RIGHTS),
    (Ordinary, "a file system in parts", NEEDS_RIGHTS),
    (Ordinary, "a detached tree", NEEDS_RIGHTS),
    (Ordinary, "another root", NEEDS_RIGHTS),
    (Ordinary, "another namespace", NEEDS_RIGHTS),
    (Ordinary, "programs in the kernel", NEEDS_RIGHTS),
    (Ordinary, "the machine's name", NEEDS_RIGHTS),
    (Ordinary, "the machine's clock", NEEDS_RIGHTS),
    (Ordinary, "accounts of all processes", NEEDS_RIGHTS),
    (Ordinary, "a file with capabilities", NEEDS_RIGHTS),
    (Ordinary, "a device", NEEDS_RIGHTS),
    (Ordinary, "read where the kernel is", NEEDS_RIGHTS),
    (Ordinary, "read where memory really is", NEEDS_RIGHTS),
    (Ordinary, "a place before everybody", NEEDS_RIGHTS),
    // Only somebody else can be risen to, and only root can put such a program there.
    (Root, "a program that runs as its owner", "root is its owner"),
    // What this machine does not have, or keeps from root too.
    (Everybody, "read a disk", "the machine keeps its disks to itself"),
    (Everybody, "read a disk by a device of one's own", "the machine keeps its disks to itself"),
    (Everybody, "read memory of the kernel", "there is no such device"),
    (Everybody, "modules of the kernel", "the kernel takes none"),
    (Everybody, "another kernel", "the kernel takes none"),
    (Everybody, "ports of the machine", "the kernel gives none"),
    (Everybody, "limits beyond the highest", "root has not this right here"),
    (Everybody, "many descriptors", "root has not the right to raise the limit here"),
];

const OF_ROOT: &str = "the file is root's";
const NEEDS_RIGHTS: &str = "the call needs a right";

const TRIPWIRE: Wall = Wall { options: &["--attribution", "tripwire"], omit: "" };
const NOTIFY: Wall = Wall { options: &["--attribution", "notify"], omit: "" };

impl Whom {
    fn is(self, ground: &Ground) -> bool {
        match self {
            Everybody => true,
            Root => ground.is_root,
            Ordinary => !ground.is_root,
        }
    }
}

#[test]
fn without_the_wall_they_work() {
    let complaints = on_all(None, |ground, row, tried| {
        let blocked =
            BLOCKED_BY_HOST.iter().any(|(whom, name, _)| *name == row.name && whom.is(ground));
        let expected = tried.ran && tried.escaped;
        (!expected && !blocked).then_some("it does not work without the wall")
    });
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn behind_the_wall_none_works() {
    let complaints = on_all(Some(&TRIPWIRE), judge);
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn nor_where_every_call_is_watched() {
    let complaints = on_all(Some(&NOTIFY), judge);
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn rows_have_names_of_their_own() {
    let mut names: Vec<_> = rows().map(|row| row.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    for (_, name, _) in BLOCKED_BY_HOST {
        assert!(names.binary_search(name).is_ok(), "{name}");
    }
}

/// A box that starts nothing wins nothing.
fn judge(_: &Ground, _: &Row, tried: &Tried) -> Option<&'static str> {
    match tried {
        Tried { ran: false, .. } => Some("it was not tried"),
        Tried { escaped: true, .. } => Some("IT WORKED"),
        _ => None,
    }
}

/// A row of the table.
pub(crate) fn row(name: &str) -> &'static Row {
    rows().find(|row| row.name == name).unwrap()
}

fn rows() -> impl Iterator<Item = &'static Row> {
    TABLE.iter().flat_map(|(_, rows)| *rows)
}

/// Tries everything as everybody, and returns what is wrong. Without a wall, enough has to work for
/// the table to mean something.
fn on_all(
    wall: Option<&Wall>,
    wrong: impl Fn(&Ground, &Row, &Tried) -> Option<&'static str> + Sync,
) -> String {
    let series = |who: As| {
        let Some(mut ground) = Ground::new(who) else { return String::new() };
        let whom = if ground.is_root { "root" } else { "an ordinary user" };
        let (mut complaints, mut summary, mut worked) = (String::new(), String::new(), 0);
        for (kind, rows) in TABLE {
            let before = worked;
            for row in *rows {
                let tried = ground.attempt(row, wall);
                worked += usize::from(tried.ran && tried.escaped);
                if let Some(what) = wrong(&ground, row, &tried) {
                    let text = |bytes: &[u8]| {
                        let text = String::from_utf8_lossy(bytes).replace('\n', "\n    ");
                        text.chars().take(600).collect::<String>()
                    };
                    let (out, err) = (text(&tried.output.stdout), text(&tried.output.stderr));
                    let name = row.name;
                    writeln!(
                        complaints,
                        "{kind}: {name}: {what} (as {whom})\n    {out}\n    {err}"
                    )
                    .unwrap();
                }
            }
            write!(summary, ", {kind} {} of {}", worked - before, rows.len()).unwrap();
        }
        let around = wall.map_or("no wall".into(), |wall| wall.options.join(" "));
        eprintln!("escapes as {whom}, {around}: {worked} of {} worked{summary}", rows().count());
        if wall.is_none() && worked < 80 {
            writeln!(complaints, "only {worked} work without the wall (as {whom})").unwrap();
        }
        complaints
    };
    std::thread::scope(|scope| {
        let users: Vec<_> =
            everybody().into_iter().map(|who| scope.spawn(move || series(who))).collect();
        users.into_iter().map(|user| user.join().unwrap()).collect()
    })
}
