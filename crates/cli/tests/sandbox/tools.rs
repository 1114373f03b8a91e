//! Ordinary tools at ordinary work: they run to the end, and nothing they do counts as a violation.

use std::process::Command;

use fixtures::{RunOutput, TestEnv, User, has, users};

fn fine(ran: &RunOutput, said: &str) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(said), "{ran:?}");
    assert!(ran.violations().is_empty(), "{ran:?}");
}

#[test]
fn a_compiler_and_make() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("project/x.c", "#include <stdio.h>\nint main(void){puts(\"built\");}\n");
        env.write("project/Makefile", "all: a b\na b: x.c\n\tcc -o $@ x.c\n");
        fine(&env.run(&[], "make -s -j2 && ./a && ./b"), "built\nbuilt");
    }
}

#[test]
fn a_python_environment_made_offline() {
    for who in users() {
        let env = TestEnv::new(who);
        let script = "/usr/bin/python3 -m venv --without-pip v && v/bin/python -c \
                      'import sqlite3, ssl, json, multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'";
        fine(&env.run(&[], script), "[1, 2]");
    }
}

#[test]
fn a_node_package_from_a_directory() {
    if !has("npm") {
        return;
    }
    for who in users() {
        let env = TestEnv::new(who);
        env.write("project/dep/package.json", r#"{"name":"dep","version":"1.0.0","main":"i.js"}"#);
        env.write("project/dep/i.js", "module.exports = 42;\n");
        env.write(
            "project/package.json",
            r#"{"name":"app","version":"1.0.0","dependencies":{"dep":"file:./dep"}}"#,
        );
        env.write(
            "project/a.test.js",
            "const t = require('node:test'); t('dep', () => { if (require('dep') !== 42) throw 1; });\n",
        );
        let script = "npm install --offline --no-audit --no-fund && node --test && echo tested";
        fine(&env.run(&[], script), "tested");
    }
}

#[test]
fn a_tracer_of_its_own_children() {
    if !has("strace") {
        return;
    }
    for who in users() {
        let env = TestEnv::new(who);
        let ran = env.run(&[], "strace -f -o trace true && grep -q execve trace && echo traced");
        fine(&ran, "traced");
    }
}

/// The user's own toolchain: rustup's and cargo's directories are what the tables name.
#[test]
fn cargo_builds_and_tests_a_part_of_this_repository() {
    let home = std::env::var("HOME").unwrap_or_default();
    let tool = std::path::Path::new(&home).join(".cargo/bin/cargo");
    if !tool.is_file() {
        eprintln!("skipped: the toolchain is not in ~/.cargo");
        return;
    }
    let env = TestEnv::new(User::Me);
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let copied = Command::new("sh")
        .args(["-c", "cd \"$0\" && git archive HEAD | tar x -C \"$1\"", root])
        .arg(env.project())
        .status();
    assert!(copied.unwrap().success());
    let ran = env.run_in_home(
        std::path::Path::new(&home),
        "cargo test --offline --locked -q -p ringwall-model 2>&1 && echo tested",
    );
    fine(&ran, "tested");
}

#[test]
fn a_mixed_bag_of_ordinary_commands() {
    for who in users() {
        let env = TestEnv::new(who);
        let script = "
            set -e
            seq 1000 | sort -rn | head -3 | tac > sorted; tar czf s.tgz sorted; tar tzf s.tgz
            f=$(mktemp); echo x > $f; mkdir -p ~/.cache/tool; echo y > ~/.cache/tool/z
            ls -la / /etc /usr ~ . >/dev/null; ps >/dev/null; id -un >/dev/null; nproc >/dev/null
            (sleep 0.1 & wait); diff <(echo a) <(echo a); date >/dev/null; df . >/dev/null
            awk 'BEGIN { print 6 * 7 }'; perl -e 'print \"perl\\n\"'; git --version
            touch -d 2001-01-01 old; chmod 600 old; ln -s old link; readlink link; rm old link
            mkfifo p; echo in > p & cat p; getent passwd $(id -u) >/dev/null; echo done
        ";
        fine(&env.run(&[], script), "done");
    }
}
