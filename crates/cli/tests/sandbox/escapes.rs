//! A table of ways out. Each is tried without the wall, where it must work, and behind the wall,
//! where it must not. What happened is judged from outside.

mod blocked;
mod env;
mod indirect;
mod later;
mod messages;
mod neighbour;
mod network;
mod persistence;
mod privileges;
mod processes;
mod reads;
mod renewal;
mod resources;
mod row;
mod writes;

use std::fmt::Write as _;

use fixtures::{User, users};

pub(crate) use env::{EscapeEnv, Tried, Wall};
use row::Row;

const TABLE: &[(&str, &[Row])] = &[
    ("reads", reads::ROWS),
    ("writes", writes::ROWS),
    ("persistence", persistence::ROWS),
    ("later", later::ROWS),
    ("network", network::ROWS),
    ("messages", messages::ROWS),
    ("processes", processes::ROWS),
    ("privileges", privileges::ROWS),
    ("resources", resources::ROWS),
    ("indirect", indirect::ROWS),
];

const TRIPWIRE: Wall = Wall { options: &["--attribution", "tripwire"], omit: "" };
const NOTIFY: Wall = Wall { options: &["--attribution", "notify"], omit: "" };
const LANDLOCK: Wall = Wall { options: &["--enforcement", "landlock"], omit: "" };

/// What works behind Landlock and seccomp alone. Nothing may come to this list that reads or
/// changes the text of a file outside, or reaches somebody there.
const LEFT_BY_LANDLOCK: &[(&str, &str)] = &[
    // Landlock does not see what is asked about a file without opening it.
    ("learn how large a file is", "stat"),
    ("learn how old a file is", "stat"),
    ("learn what a link says", "readlink"),
    ("learn what is noted on a file", "getxattr"),
    ("learn when files change", "inotify"),
    // A rule for a directory goes with it, and so does what was denied in it by a pattern.
    ("read a denied file in a renamed directory", "renamed by the run itself"),
    ("write a denied file by its descriptor", "opened anew by /proc/self/fd"),
    // There is one network, one list of processes and one list of keys.
    ("somebody from the host", "the host's loopback"),
    ("the host's connections", "the host's /proc"),
    ("the command line", "the host's /proc"),
    ("a list of all processes", "the host's /proc"),
    ("learn the names of keys", "the host's /proc"),
    // Landlock hides no path.
    ("learn what exists by going through it", "stat"),
    // There is no user namespace of the run, which could have a limit of its own.
    ("all watches of the user", "inotify"),
    // Only root can take away what nobody can use.
    ("rights that are left", "the bounding set"),
];

#[test]
fn without_the_wall_they_work() {
    let _turn = turn();
    let complaints = on_all(None, |escape_env, row, tried| {
        let works = tried.ran && tried.escaped;
        (!works && !blocked::by_host(escape_env, row))
            .then_some("it does not work without the wall")
    });
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn behind_the_wall_none_works() {
    let _turn = turn();
    let complaints = on_all(Some(&TRIPWIRE), judge);
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn nor_where_every_call_is_watched() {
    let _turn = turn();
    let complaints = on_all(Some(&NOTIFY), judge);
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn where_landlock_stands_alone_only_these_work() {
    let _turn = turn();
    let complaints = on_all(Some(&LANDLOCK), |escape_env, row, tried| {
        let left = LEFT_BY_LANDLOCK.iter().any(|(name, _)| *name == row.name);
        judge(escape_env, row, tried).filter(|_| !(left && tried.ran))
    });
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn rows_have_names_of_their_own() {
    let mut names: Vec<_> = rows().map(|row| row.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    for name in blocked::names().chain(LEFT_BY_LANDLOCK.iter().map(|(name, _)| *name)) {
        assert!(names.binary_search(&name).is_ok(), "{name}");
    }
}

/// A box that starts nothing wins nothing.
fn judge(_: &EscapeEnv, _: &Row, tried: &Tried) -> Option<&'static str> {
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
    wrong: impl Fn(&EscapeEnv, &Row, &Tried) -> Option<&'static str> + Sync,
) -> String {
    let series = |who: User| {
        let Some(mut escape_env) = EscapeEnv::new(who) else { return String::new() };
        let whom = if escape_env.is_root { "root" } else { "an ordinary user" };
        let (mut complaints, mut summary, mut worked) = (String::new(), String::new(), 0);
        for (kind, rows) in TABLE {
            let before = worked;
            for row in *rows {
                let tried = escape_env.attempt(row, wall);
                worked += usize::from(tried.ran && tried.escaped);
                if let Some(what) = wrong(&escape_env, row, &tried) {
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
            users().into_iter().map(|who| scope.spawn(move || series(who))).collect();
        users.into_iter().map(|user| user.join().unwrap()).collect()
    })
}

/// One after the other: each of these tests fills the machine by itself.
fn turn() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
