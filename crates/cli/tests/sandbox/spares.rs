//! What is mounted before there is a plan is given up where a plan wants something else.

use std::fs;
use std::path::Path;

use fixtures::{TestEnv, users};

/// The directories in which mounts are prepared.
const STAGING: &[&str] = &["/media", "/mnt", "/srv"];

/// What must be as in every other run.
const ORDINARY: &str = "test -z \"$(cat /proc/keys /proc/cmdline /proc/partitions)\" &&
    test -c /dev/null && test -c /dev/tty && echo x > /dev/null && test -L /dev/stdin &&
    test ! -e /dev/fuse && echo y > /dev/shm/y && cat /dev/shm/y && test ! -e ../outside";

#[test]
fn the_staging_directory_of_a_run_can_be_granted() {
    let there: Vec<_> = STAGING.iter().filter(|dir| Path::new(dir).is_dir()).collect();
    assert!(!there.is_empty(), "none of {STAGING:?} is there");
    for who in users() {
        let env = TestEnv::new(who);
        env.own();
        let names = |dir: &str| {
            let mut names: Vec<_> = fs::read_dir(dir).unwrap().flatten().collect();
            names.sort_by_key(|entry| entry.file_name());
            let names = names.iter().map(|it| it.file_name().to_string_lossy().into_owned() + "\n");
            names.collect::<String>()
        };
        for dir in &there {
            // Nothing of the run shows in the host's directory, nor the other way round.
            let script = format!("{ORDINARY} && test ! -e {dir} && mkdir ok");
            let ran = env.run(&[], &script);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "y\n"), "{}", ran.stderr);
            fs::remove_dir(env.project().join("ok")).unwrap();

            let script = format!("{ORDINARY} && ls -A {dir}");
            let ran = env.run(&["--allow-read", dir], &script);
            let expected = format!("y\n{}", names(dir));
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (Some(0), expected.as_str()),
                "{}",
                ran.stderr
            );
            assert_eq!(ran.events("started")[0]["missing"], serde_json::json!([]));
        }
    }
}

#[test]
fn a_plan_may_want_other_devices() {
    for who in users() {
        let env = TestEnv::new(who);
        env.own();
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        fs::write(file.path(), "shared").unwrap();
        fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .unwrap();
        let path = file.path().to_str().unwrap();
        let ran = env.run(&["--allow-read", path], &format!("{ORDINARY} && cat {path}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "y\nshared"), "{}", ran.stderr);
    }
}

/// A limit on private files gives them a size of their own.
#[test]
fn private_files_keep_their_limit() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.config/ringwall/ringwall.toml", "[limits]\nprivate_files = \"8MiB\"\n");
        env.own();
        let script = format!("{ORDINARY} && stat -f -c '%b %S' /tmp");
        let ran = env.run(&[], &script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "y\n2048 4096\n"), "{}", ran.stderr);
    }
}

/// The record is written while the sandbox is built, and the command waits for it.
#[test]
fn without_a_record_the_command_does_not_start() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.config/ringwall/ringwall.toml", "[audit]\non_failure = \"deny\"\n");
        let state = env.path("home/.local/state/ringwall");
        fs::create_dir_all(&state).unwrap();
        fs::write(state.join("audit"), "no directory").unwrap();
        env.own();
        let ran = env.run(&[], "> started");
        assert_eq!(ran.code, Some(69), "{}", ran.stderr);
        assert!(ran.stderr.contains("cannot write the audit log"), "{}", ran.stderr);
        assert!(!env.project().join("started").exists());
    }
}
