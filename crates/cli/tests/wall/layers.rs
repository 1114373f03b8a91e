//! What each layer of the wall is for: something that fails, and works as soon as that layer alone
//! is left out.

use crate::escapes::{Ground, Wall, row};
use crate::yard::{Yard, everybody};

/// Landlock and seccomp alone.
const LANDLOCK: &[&str] = &["--enforcement", "landlock"];

/// Each of these layers holds a row of the table by itself.
fn holds(layer: &'static str, rows: &[&str]) {
    holds_with(&["--attribution", "tripwire"], layer, rows);
}

fn holds_with(options: &'static [&'static str], layer: &'static str, rows: &[&str]) {
    with_everybody(|ground| {
        for name in rows {
            let whole = ground.attempt(row(name), Some(&Wall { options, omit: "" }));
            assert!(whole.ran && !whole.escaped, "{name}, with everything: {whole:?}");
            let less = ground.attempt(row(name), Some(&Wall { options, omit: layer }));
            assert!(less.ran && less.escaped, "{name}, without {layer}: {less:?}");
        }
    });
}

#[test]
fn mounts_hide_what_is_outside() {
    // Without its own test the wall would not start.
    holds("mounts,self-test", &["read by an absolute path", "read a key of the user"]);
}

#[test]
fn landlock_keeps_what_mounts_do_not_know() {
    // What comes on a standard descriptor is still on the mounts that it was opened on. Whoever
    // watches calls would refuse an honest one.
    holds_with(
        &["--attribution", "inferred"],
        "landlock",
        &[
            "open for writing what came on standard input",
            "cut off what came on standard input",
            "cut off what came on standard input while opening it",
            "cut off what is only added to",
            "write over what is only added to",
            "read below standard input",
        ],
    );
}

/// With nothing handed over, no other layer decides what can be written where.
#[test]
fn mounts_alone_let_only_ground_be_written() {
    const TRY_EVERYWHERE: &str = r#"
for place in / /etc /usr /home "$HOME" $(cut -d' ' -f5 /proc/self/mountinfo); do
    [ -d "$place" ] && (: > "$place/tried") 2> /dev/null && echo "$place"
done; true"#;
    let attributions = ["tripwire", "notify", "inferred"];
    let levels = ["readonly", "readwrite", "network", "full"];
    for who in everybody() {
        let yard = Yard::new(who);
        yard.write("home/.config/ringwall/ringwall.toml", "[violation]\naction = \"deny\"\n");
        for (attribution, level) in
            attributions.iter().flat_map(|one| levels.map(|level| (*one, level)))
        {
            let options = ["--attribution", attribution, "--level", level];
            let ran = yard.run(&options, TRY_EVERYWHERE);
            assert_eq!(ran.code, Some(0), "{options:?}: {ran:?}");
            let mut planned = yard.command(yard.binary());
            let planned = planned
                .args(["run", "--plan", "--json"])
                .args(options)
                .args(["--", "true"])
                .output()
                .unwrap();
            let plan: serde_json::Value = serde_json::from_slice(&planned.stdout).unwrap();
            let pieces = plan["pieces"].as_array().unwrap();
            let writable = |place: &str| {
                pieces.iter().any(|piece| {
                    piece["path"] == place
                        && ["write", "overlay", "scratch", "pinned"]
                            .iter()
                            .any(|kind| piece["kind"] == *kind)
                })
            };
            for place in ran.stdout.lines() {
                assert!(writable(place), "{options:?}: {place} was written: {ran:?}");
            }
            assert!(ran.stdout.lines().any(|place| place == "/tmp"), "{options:?}: {ran:?}");
            let _ = std::fs::remove_file(yard.project().join("tried"));
            // What is the user's own is open at the highest level.
            if level == "full" {
                let _ = std::fs::remove_file(yard.home().join("tried"));
            }
            for place in ["outside", "home"] {
                assert!(!yard.path(place).join("tried").exists(), "{options:?}: {place}");
            }
        }
    }
}

#[test]
fn seccomp_keeps_parts_of_the_kernel_away() {
    holds("seccomp", &["a key ring", "a user namespace", "the machine's own host"]);
}

#[test]
fn descriptors_are_closed() {
    holds("descriptors", &["read a file that was left open", "a stream that was left open"]);
}

#[test]
fn the_environment_is_made_from_nothing() {
    holds("environment", &["read a variable"]);
}

/// Nothing of the command runs if the wall can be seen not to hold.
#[test]
fn a_wall_that_does_not_hold_is_not_used() {
    with_everybody(|ground| {
        let walls = [wall("mounts"), Wall { options: LANDLOCK, omit: "landlock" }];
        for wall in walls {
            let tried = ground.attempt(row("read by an absolute path"), Some(&wall));
            assert!(!tried.ran && !tried.escaped, "{tried:?}");
            assert_eq!(tried.output.status.code(), Some(69), "{tried:?}");
            let said = String::from_utf8_lossy(&tried.output.stderr);
            assert!(said.contains("the wall does not hold"), "{tried:?}");
        }
    });
}

/// Where there are no namespaces, Landlock is what hides.
#[test]
fn landlock_hides_what_is_outside_by_itself() {
    with_everybody(|ground| {
        // An honest call would be refused by whoever watches calls. That one can be misled.
        let kinds =
            ["read", "write"].map(|kind| format!("{kind} by a path that changes under the call"));
        for name in kinds {
            let whole = ground.attempt(row(&name), Some(&Wall { options: LANDLOCK, omit: "" }));
            assert!(whole.ran && !whole.escaped, "{name}, with everything: {whole:?}");
            let less = Wall { options: LANDLOCK, omit: "landlock,self-test" };
            let escaped = (0..20).any(|_| ground.attempt(row(&name), Some(&less)).escaped);
            assert!(escaped, "{name}, without Landlock");
        }
    });
}

fn wall(omit: &'static str) -> Wall {
    Wall { options: &["--attribution", "tripwire"], omit }
}

fn with_everybody(mut act: impl FnMut(&mut Ground)) {
    if !cfg!(debug_assertions) {
        eprintln!("skipped: layers can be left out only in builds for tests");
        return;
    }
    for who in everybody() {
        if let Some(mut ground) = Ground::new(who) {
            act(&mut ground);
        }
    }
}
