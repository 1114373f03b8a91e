//! Ordinary programs behind the programs of this module.

#![expect(unsafe_code, reason = "the test starts a program under a filter")]

use std::io::Error;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use super::kernel::{Install, install, skipped};
use super::*;

/// Scripts that have to say the same with the program as without it.
#[rustfmt::skip]
const ORDINARY: &[(&str, &str)] = &[
    ("bash", "for i in 3 1 2; do (echo $i) & done | sort; cat <(echo sub); cat <<< here; wait
        mkdir -p a/b; mkfifo a/f; chmod 1777 a; touch a/x; ln -s x a/y; cp -a a c; mv c d
        find d | sort; tar cf - d | tar tf - | wc -l; rm -r a d; setarch -R echo set"),
    ("git", "export GIT_CONFIG_GLOBAL=/dev/null; git init -q r && cd r && echo a > a && git add a
        git -c user.name=n -c user.email=n@example.org commit -qm m && echo b > b
        git status --short && git log --format=%s && git gc -q && git fsck 2>&1 | tail -1"),
    ("python3", "timeout 60 python3 -B $ORDINARY/ordinary.py"),
    ("node", "timeout 60 node $ORDINARY/ordinary.js"),
    ("gcc", "echo 'int main(void) { return 0; }' > p.c; gcc -O1 -pthread p.c && ./a.out && echo ran"),
    ("strace", "strace -f -o log sh -c 'true; ls > ls' && grep -c 'exited with 0' log"),
    ("gdb", "gdb -nx --batch -ex run --args $(command -v true) 2>&1 | grep -o 'exited normally'"),
    ("ip", "ip -brief address show dev lo"),
];

#[test]
fn ordinary_programs_work_inside() {
    for (program, script) in ORDINARY {
        let bare = bash(script, None);
        if !bare.status.success() {
            skipped(&format!("{program} does not work here: {bare:?}"));
            continue;
        }
        for what in [NAMESPACES, LANDLOCK, OPEN] {
            let inside = bash(script, Some(closed(&what)));
            assert_eq!(inside.stdout, bare.stdout, "{program} {what:?} {inside:?}");
            assert!(inside.status.success(), "{program} {what:?} {inside:?}");
        }
    }
}

#[test]
fn user_namespaces_are_for_those_who_have_them() {
    let make = "unshare --user --map-root-user true";
    if !bash(make, None).status.success() {
        return skipped("there are no user namespaces here");
    }
    assert!(!bash(make, Some(closed(&NAMESPACES))).status.success());
    assert!(bash(make, Some(closed(&OPEN))).status.success());
}

/// Runs a script in a directory of its own, behind a program.
fn bash(script: &str, program: Option<Program>) -> Output {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let name = format!("ringwall-filter-{}-{run}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir(&directory).unwrap();
    let mut command = Command::new("bash");
    let ordinary = concat!(env!("CARGO_MANIFEST_DIR"), "/src/child/seccomp/tests/ordinary");
    command.args(["-c", script]).current_dir(&directory).env("ORDINARY", ordinary);
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe {
        command.pre_exec(move || match &program {
            Some(program) if !install(program, Install::Plain) => Err(Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let output = command.output();
    std::fs::remove_dir_all(&directory).unwrap();
    output.unwrap()
}
