//! What each layer of the wall is for: something that fails, and works as soon as that layer alone
//! is left out.

use fixtures::{TestEnv, has_python, users};

use crate::escapes::{EscapeEnv, Wall, row};

/// Landlock and seccomp alone.
const LANDLOCK: &[&str] = &["--enforcement", "landlock"];

/// Each of these layers holds a row of the table by itself.
fn holds(layer: &'static str, rows: &[&str]) {
    holds_with(&["--attribution", "tripwire"], layer, rows);
}

fn holds_with(options: &'static [&'static str], layer: &'static str, rows: &[&str]) {
    with_everybody(|escape_env| {
        for name in rows {
            let whole = escape_env.attempt(row(name), Some(&Wall { options, omit: "" }));
            assert!(whole.ran && !whole.escaped, "{name}, with everything: {whole:?}");
            let less = escape_env.attempt(row(name), Some(&Wall { options, omit: layer }));
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
            "read below standard input",
        ],
    );
}

/// Landlock refuses such writes a second time; mounts must do without.
#[test]
fn mounts_alone_let_only_ground_be_written() {
    const TRY_EVERYWHERE: &str = r#"
for place in / /etc /usr /home "$HOME" $(cut -d' ' -f5 /proc/self/mountinfo); do
    [ -d "$place" ] && (: > "$place/tried") 2> /dev/null && echo "$place"
done; true"#;
    let attributions = ["tripwire", "notify", "inferred"];
    let levels = ["readonly", "readwrite", "network", "full"];
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.config/ringwall/ringwall.toml", "[violation]\naction = \"deny\"\n");
        for (attribution, level) in
            attributions.iter().flat_map(|one| levels.map(|level| (*one, level)))
        {
            let options = ["--attribution", attribution, "--level", level];
            let omitted = [("RINGWALL_OMIT", "landlock")];
            let ran = env.run_with(&omitted, &options, TRY_EVERYWHERE);
            assert_eq!(ran.code, Some(0), "{options:?}: {ran:?}");
            let mut planned = env.command(env.binary());
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
            let _ = std::fs::remove_file(env.project().join("tried"));
            // What is the user's own is open at the highest level.
            if level == "full" {
                let _ = std::fs::remove_file(env.home().join("tried"));
            }
            for place in ["outside", "home"] {
                assert!(!env.path(place).join("tried").exists(), "{options:?}: {place}");
            }
        }
    }
}

/// A read-only mount does not keep anybody from writing to a fifo in it.
#[test]
fn landlock_keeps_fifos_that_are_only_read() {
    for who in users().into_iter().filter(|_| has_python()) {
        let env = TestEnv::new(who);
        assert!(env.bare("mkfifo fifo").status.success());
        let fifo = env.project().join("fifo");
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NONBLOCK;
        let ours = rustix::fs::open(&fifo, flags, rustix::fs::Mode::empty()).unwrap();
        let script = "/usr/bin/python3 -c 'import os; \
                      os.write(os.open(\"fifo\", os.O_RDWR | os.O_NONBLOCK), b\"out\")'; true";
        let ran = env.run(&["--level", "readonly", "--attribution", "inferred"], script);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("PermissionError"), "{ran:?}");
        // Nobody has written anything.
        assert_eq!(rustix::io::read(&ours, &mut [0; 8]), Err(rustix::io::Errno::AGAIN));
    }
}

/// A socket can bring descriptors, which know nothing of mounts.
#[test]
fn landlock_keeps_what_a_socket_brings() {
    const BRING: &str = r"
import os, socket
server = socket.socket(socket.AF_UNIX)
server.bind('socket')
server.listen()
print('ready', flush=True)
peer, _ = server.accept()
socket.send_fds(peer, [b'x'], [os.open('../outside', os.O_RDONLY)])
peer.recv(1)";
    const USE: &str = r#"/usr/bin/python3 -c '
import os, socket
peer = socket.socket(socket.AF_UNIX)
peer.connect("socket")
_, brought, _, _ = socket.recv_fds(peer, 1, 1)
print(len(brought))
for name, flags in ("new", os.O_WRONLY | os.O_CREAT), ("secret.txt", os.O_WRONLY | os.O_TRUNC), ("secret.txt", os.O_RDONLY):
    try:
        os.open(name, flags, dir_fd=brought[0])
        print("opened", name)
    except PermissionError:
        pass'"#;
    for who in users().into_iter().filter(|_| has_python()) {
        let env = TestEnv::new(who);
        let mut server = env.command("/usr/bin/python3");
        let server = server.args(["-c", BRING]).stdout(std::process::Stdio::piped());
        let mut server = server.spawn().unwrap();
        let mut said = std::io::BufReader::new(server.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut said, &mut String::new()).unwrap();
        let ran = env.run(&["--attribution", "inferred", "--allow-unix", "socket"], USE);
        let _ = server.kill();
        server.wait().unwrap();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "1\n"), "{ran:?}");
        assert!(!env.path("outside/new").exists());
        assert_eq!(env.read("outside/secret.txt"), "SECRET-OUTSIDE\n");
    }
}

/// Root's run could otherwise change them for everybody.
#[test]
fn the_hosts_devices_stay_as_they_are() {
    for who in users().into_iter().filter(|_| has_python()) {
        let env = TestEnv::new(who);
        let modes = || {
            use std::os::unix::fs::MetadataExt;
            ["/dev/null", "/dev/full"].map(|path| std::fs::metadata(path).unwrap().mode())
        };
        let before = modes();
        let script = "chmod 666 /dev/full; /usr/bin/python3 -c 'import os; os.fchmod(0, 0o666)'; \
                      echo fine > /dev/null; true";
        // With the permissions that they have: what is tried is whether they can be set.
        let ran = env.bare(&format!(
            "{} run --attribution inferred -- bash -c {} < /dev/null",
            env.binary().display(),
            model::shell_word(script),
        ));
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{said}");
        assert!(said.contains("chmod: ") && said.contains("Error: [Errno"), "{said}");
        assert_eq!(modes(), before);
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
    with_everybody(|escape_env| {
        let walls = [wall("mounts"), Wall { options: LANDLOCK, omit: "landlock" }];
        for wall in walls {
            let tried = escape_env.attempt(row("read by an absolute path"), Some(&wall));
            assert!(!tried.ran && !tried.escaped, "{tried:?}");
            assert_eq!(tried.output.status.code(), Some(69), "{tried:?}");
            let said = String::from_utf8_lossy(&tried.output.stderr);
            assert!(said.contains("the self-test failed"), "{tried:?}");
        }
    });
}

/// Where there are no namespaces, Landlock is what hides.
#[test]
fn landlock_hides_what_is_outside_by_itself() {
    with_everybody(|escape_env| {
        // An honest call would be refused by whoever intercepts calls. One that reads is handed back to
        // the kernel, so it can be misled; one that writes cannot.
        for (kind, misled) in [("read", true), ("write", false)] {
            let name = format!("{kind} by a path that changes under the call");
            let whole = escape_env.attempt(row(&name), Some(&Wall { options: LANDLOCK, omit: "" }));
            assert!(whole.ran && !whole.escaped, "{name}, with everything: {whole:?}");
            let less = Wall { options: LANDLOCK, omit: "landlock,self-test" };
            let escaped = (0..20).any(|_| escape_env.attempt(row(&name), Some(&less)).escaped);
            assert_eq!(escaped, misled, "{name}, without Landlock");
        }
    });
}

fn wall(omit: &'static str) -> Wall {
    Wall { options: &["--attribution", "tripwire"], omit }
}

fn with_everybody(mut act: impl FnMut(&mut EscapeEnv)) {
    for who in users() {
        if let Some(mut escape_env) = EscapeEnv::new(who) {
            act(&mut escape_env);
        }
    }
}
