//! Real work behind the wall: toolchains build, test and run, and nothing that they do by habit is
//! refused.

use std::path::{Path, PathBuf};
use std::process::Command;

use fixtures::{RunOutput, TestEnv, User, has, users};

/// Both ways to tell what was tried.
const ATTRIBUTIONS: [&str; 2] = ["tripwire", "notify"];

fn assert_clean(ran: &RunOutput) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.violations().is_empty() && ran.events("tampering").is_empty(), "{ran:?}");
}

fn write(env: &TestEnv, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = env.path("project").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    env.own();
}

/// The toolchain of whoever runs the tests, as rustup keeps it.
struct Rust {
    cargo: PathBuf,
    rustup: PathBuf,
    toolchain: PathBuf,
}

impl Rust {
    fn find() -> Option<Self> {
        let found = Self::look();
        if found.is_none() {
            eprintln!("skipped: no toolchain here is managed by rustup");
        }
        found
    }

    fn look() -> Option<Self> {
        let home = PathBuf::from(std::env::var_os("HOME")?);
        let named = |variable: &str, usual: &str| {
            std::env::var_os(variable).map_or_else(|| home.join(usual), PathBuf::from)
        };
        let (cargo, rustup) = (named("CARGO_HOME", ".cargo"), named("RUSTUP_HOME", ".rustup"));
        let asked = Command::new(cargo.join("bin/rustc")).args(["--print", "sysroot"]).output();
        let toolchain = String::from_utf8(asked.ok()?.stdout).ok()?;
        let toolchain = PathBuf::from(toolchain.trim());
        let found = toolchain.starts_with(&rustup) && cargo.join("bin/rustup").exists();
        found.then_some(Self { cargo, rustup, toolchain })
    }

    /// How to find it where it is.
    fn variables(&self) -> [(&'static str, String); 4] {
        let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", self.cargo.display());
        let name = self.toolchain.file_name().unwrap().to_string_lossy().into_owned();
        [
            ("CARGO_HOME", self.cargo.display().to_string()),
            ("RUSTUP_HOME", self.rustup.display().to_string()),
            ("RUSTUP_TOOLCHAIN", name),
            ("PATH", path),
        ]
    }

    /// Puts as much of it into a test environment's home as it takes to build something with `itoa`.
    fn move_into(&self, env: &TestEnv) {
        let name = self.toolchain.file_name().unwrap().to_str().unwrap();
        let version = Command::new(self.cargo.join("bin/rustc")).arg("-vV").output().unwrap();
        let version = String::from_utf8(version.stdout).unwrap();
        let triple = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        let script = format!(
            "set -e; from={from} to={home}/.rustup/toolchains/{name}
            mkdir -p $to/bin $to/lib/rustlib {home}/.cargo/bin
            cp $from/bin/cargo $from/bin/rustc $from/bin/rustdoc $to/bin
            cp -d $from/lib/*.so* $to/lib; cp -r $from/lib/rustlib/{triple} $to/lib/rustlib
            cp {cargo}/bin/rustup {home}/.cargo/bin
            for name in cargo rustc rustdoc; do ln -s rustup {home}/.cargo/bin/$name; done
            cd {cargo}/registry
            find . -path './cache/*/itoa-1.*.crate' -o -path './index/*/.cache/it/oa/itoa' \
                -o -path './index/*/config.json' | tar c -T - | tar x -C $(mkdir -p \
                {home}/.cargo/registry && echo {home}/.cargo/registry)",
            from = self.toolchain.display(),
            cargo = self.cargo.display(),
            home = env.home().display(),
        );
        let copied = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(copied.status.success(), "{copied:?}");
        let settings = format!("version = \"12\"\ndefault_toolchain = \"{name}\"\n");
        env.write("home/.rustup/settings.toml", &settings);
    }
}

fn borrowed<'a>(variables: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    variables.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

const CRATE: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
         build = \"build.rs\"\n[dependencies]\nitoa = \"1\"\n",
    ),
    ("build.rs", "fn main() { println!(\"cargo:rustc-env=BUILT=yes\"); }\n"),
    (
        "src/lib.rs",
        "/// ```\n/// assert_eq!(small::text(7), \"7\");\n/// ```\n\
         pub fn text(n: u64) -> String { itoa::Buffer::new().format(n).to_owned() }\n\
         #[test] fn five() { assert_eq!(text(5), \"5\"); }\n",
    ),
    ("src/main.rs", "fn main() { println!(\"{} {}\", small::text(42), env!(\"BUILT\")); }\n"),
];

const BUILD: &str = "set -e; cargo build --offline; cargo test --offline; cargo run -q --offline
    cargo build --release --offline; cargo metadata --offline --format-version 1 > /dev/null
    cargo clean; rustc --version; rustup show active-toolchain";

#[test]
fn cargo_builds_and_tests_with_the_users_toolchain() {
    let Some(rust) = Rust::find() else { return };
    for attribution in ATTRIBUTIONS {
        let env = TestEnv::new(User::Me);
        write(&env, CRATE);
        let variables = rust.variables();
        let options = ["--attribution", attribution];
        let ran = env.run_with(&borrowed(&variables), &options, BUILD);
        assert_clean(&ran);
        assert!(ran.stdout.contains("test five ... ok"), "{ran:?}");
        assert!(ran.stdout.contains("42 yes\n"), "{ran:?}");
        assert!(env.path("project/Cargo.lock").exists());
    }
}

#[test]
fn cargo_builds_and_tests_with_a_toolchain_in_home() {
    let Some(rust) = Rust::find() else { return };
    // Whoever started the tests has done it above.
    for who in users().into_iter().filter(|who| *who == User::Unprivileged) {
        let env = TestEnv::new(who);
        rust.move_into(&env);
        write(&env, CRATE);
        let path = format!("{}/.cargo/bin:/usr/bin:/bin", env.home().display());
        let ran = env.run_with(&[("PATH", &path)], &[], BUILD);
        assert_clean(&ran);
        assert!(ran.stdout.contains("test five ... ok"), "{ran:?}");
        assert!(ran.stdout.contains("42 yes\n"), "{ran:?}");
        // What cargo unpacked and rustup made on the way was private.
        assert!(!env.path("home/.cargo/registry/src").exists());
        assert!(!env.path("home/.rustup/update-hashes").exists());
    }
}

#[test]
fn this_repository_builds_and_tests() {
    let Some(rust) = Rust::find() else { return };
    let env = TestEnv::new(User::Me);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let clone = Command::new("git")
        .args(["clone", "-q", "--no-hardlinks"])
        .arg(&root)
        .arg(env.path("project/ringwall"))
        .output();
    if !clone.is_ok_and(|clone| clone.status.success()) {
        eprintln!("skipped: {} is no git checkout", root.display());
        return;
    }
    let variables = rust.variables();
    let ran = env.run_with(
        &borrowed(&variables),
        &[],
        "set -e; cd ringwall; export CARGO_TARGET_DIR=$PWD/built
        cargo build --offline --locked -p ringwall-model -p ringwall-shell
        cargo test --offline --locked -p ringwall-model",
    );
    assert_clean(&ran);
    assert!(ran.stdout.contains("test result: ok."), "{ran:?}");
}

#[test]
fn npm_installs_and_node_tests() {
    for who in users() {
        for attribution in ATTRIBUTIONS {
            let env = TestEnv::new(who);
            if !has("node") || !has("npm") {
                return;
            }
            write(
                &env,
                &[
                    ("dep/package.json", "{\"name\":\"dep\",\"version\":\"1.0.0\"}\n"),
                    ("dep/index.js", "module.exports = 7;\n"),
                    (
                        "package.json",
                        "{\"name\":\"app\",\"version\":\"1.0.0\",\"scripts\":\
                         {\"test\":\"node --test\",\"postinstall\":\"node -p 6*7\"},\
                         \"dependencies\":{\"dep\":\"file:./dep\"}}\n",
                    ),
                    (
                        "app.test.js",
                        "require('node:test')('adds', () => \
                         require('node:assert').equal(require('dep'), 7));\n",
                    ),
                ],
            );
            let ran = env.run(
                &["--attribution", attribution],
                "set -e; npm install; npm test; npm ls; npm run; npx --version
                (cd dep && npm pack) && mkdir packed && cd packed && npm init -y > /dev/null
                npm install --offline ../dep/dep-1.0.0.tgz && node -p 'require(\"dep\") * 6'
                rm -rf node_modules && npm ci --offline && node -p 'require(\"dep\") * 7'
                node -e 'const os = require(\"os\"); os.userInfo(); os.cpus(); os.networkInterfaces()'",
            );
            assert_clean(&ran);
            assert!(ran.stdout.contains("pass 1"), "{ran:?}");
            assert!(ran.stdout.contains("\n42\n") && ran.stdout.contains("\n49\n"), "{ran:?}");
            assert!(env.path("project/package-lock.json").exists());
            assert!(!env.path("home/.npm").exists());
        }
    }
}

#[test]
fn make_builds_with_a_compiler() {
    for who in users() {
        let env = TestEnv::new(who);
        if !has("gcc") || !has("make") {
            return;
        }
        write(
            &env,
            &[
                ("a.c", "#include <stdio.h>\nint f(void); int main(){printf(\"%d\\n\", f());}\n"),
                ("b.c", "int f(void) { return 42; }\n"),
                ("Makefile", "CFLAGS=-O2 -flto\nprog: a.o b.o\n\t$(CC) $(CFLAGS) -o $@ $^\n"),
            ],
        );
        let ran = env.run(
            &[],
            "set -e; make -j4; ./prog; gcc -g -c -S a.c; gcc -static -o still a.c b.c || true
            ar rcs lib.a b.o; nm lib.a > /dev/null; strip prog; make clean 2> /dev/null || rm *.o",
        );
        assert_clean(&ran);
        assert!(ran.stdout.contains("42\n"), "{ran:?}");
    }
}

#[test]
fn python_makes_environments_and_runs_in_them() {
    for who in users() {
        for attribution in ATTRIBUTIONS {
            let env = TestEnv::new(who);
            if !has("python3") {
                return;
            }
            let pip = env.bare("python3 -c 'import ensurepip'").status.success();
            let pip = if pip { "" } else { "--without-pip" };
            let options = ["--attribution", attribution];
            let ran = env.run(
                &options,
                &format!(
                    "set -e; python3 -m venv {pip} v; v/bin/python -c 'import sys; print(sys.prefix)'
                    mkdir pack; echo 'x = 42' > pack/__init__.py
                    v/bin/python -c 'import pack; print(pack.x)'; ls pack/__pycache__
                    test -n '{pip}' || (v/bin/pip --version && v/bin/pip list)
                    python3 -m unittest -h > /dev/null; python3 -m compileall -q pack
                    python3 - <<'END'
import json, multiprocessing, socket, sqlite3, ssl, subprocess, tempfile
if __name__ == '__main__':
    sqlite3.connect('a.db').execute('create table t(x)')
    tempfile.mkdtemp()
    subprocess.run(['true'], check=True)
    pair = socket.socketpair()
    listener = socket.create_server(('127.0.0.1', 0))
    socket.create_connection(listener.getsockname())
    lock = multiprocessing.Lock()
    with multiprocessing.get_context('fork').Pool(2) as pool:
        print(pool.map(abs, [-1, -2]))
END"
                ),
            );
            assert_clean(&ran);
            let prefix = env.path("project/v").display().to_string();
            assert!(ran.stdout.contains(&prefix) && ran.stdout.contains("\n42\n"), "{ran:?}");
            assert!(ran.stdout.contains("[1, 2]"), "{ran:?}");
            // An environment that the caller works in already stays the workspace's.
            let ran = env.run_with(
                &[("VIRTUAL_ENV", &prefix), ("PATH", &format!("{prefix}/bin:/usr/bin:/bin"))],
                &options,
                "touch $VIRTUAL_ENV/marker && python -c 'import sys; print(sys.prefix)'",
            );
            assert_clean(&ran);
            assert_eq!(ran.stdout, format!("{prefix}\n"));
            assert!(env.path("project/v/marker").exists());
        }
    }
}

#[test]
fn pyenv_runs_its_pythons() {
    let env = TestEnv::new(User::Me);
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let root = std::env::var_os("PYENV_ROOT").map_or_else(|| home.join(".pyenv"), PathBuf::from);
    if !root.join("shims/python3").exists() {
        eprintln!("skipped: there is no pyenv here");
        return;
    }
    let root = root.display().to_string();
    let path = format!("{root}/shims:{root}/bin:/usr/bin:/bin");
    let ran = env.run_with(
        &[("PYENV_ROOT", &root), ("PATH", &path)],
        &[],
        "set -e; python3 -c 'import sys, ssl, json; print(sys.prefix)'; pyenv versions; pyenv rehash; pip list > /dev/null
        python3 -m venv v || python3 -m venv --without-pip v; v/bin/python -c 'print(6 * 7)'",
    );
    assert_clean(&ran);
    assert!(ran.stdout.starts_with(&root) && ran.stdout.ends_with("42\n"), "{ran:?}");
}

#[test]
fn java_compiles_and_runs() {
    for who in users() {
        let env = TestEnv::new(who);
        if !has("javac") {
            return;
        }
        write(
            &env,
            &[(
                "A.java",
                "class A { public static void main(String[] a) throws Exception {\n\
                java.nio.file.Files.createTempFile(\"a\", \"b\");\n\
                System.out.println(System.getProperty(\"user.home\")); } }\n",
            )],
        );
        let ran =
            env.run(&[], "set -e; javac A.java; java A; jar cf a.jar A.class; java -cp a.jar A");
        assert_clean(&ran);
        let home = env.home().display().to_string();
        assert_eq!(ran.stdout, format!("{home}\n{home}\n"));
    }
}

#[test]
fn go_builds_and_tests() {
    for who in users() {
        let env = TestEnv::new(who);
        if !has("go") {
            return;
        }
        write(
            &env,
            &[
                ("go.mod", "module example.org/small\n\ngo 1.20\n"),
                (
                    "main.go",
                    "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(6 * 7) }\n",
                ),
                (
                    "main_test.go",
                    "package main\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n",
                ),
            ],
        );
        let ran = env.run(&[], "set -e; go build ./...; go test ./...; go vet ./...; go run .");
        assert_clean(&ran);
        assert!(ran.stdout.ends_with("42\n"), "{ran:?}");
    }
}

#[test]
fn tools_that_look_around_find_enough() {
    for who in users() {
        for attribution in ATTRIBUTIONS {
            let env = TestEnv::new(who);
            for script in [
                "strace -f -o trace true && tail -n 1 trace",
                "strace -e trace=openat bash -c 'ls > /dev/null'",
                "rg hello . && rg --files",
                "gdb -batch -ex 'print 6*7'",
                "perl -e 'print join \",\", getpwuid($<)'",
                "man -w ls && man ls | head -n 3",
                "top -b -n 1",
                "ps aux && pstree",
                "df -h . && free && uptime && who && id && hostname && locale && date",
                "lsof -p $$ > /dev/null",
                "find . -newer hello.txt && tar c . | tar t && file hello.txt",
                "vim -es -c 'g/hello/s//changed/' -c wq hello.txt; cat hello.txt",
                "ed -s hello.txt <<< 'p'; less hello.txt; sed -i s/h/j/ hello.txt",
                "curl --version && wget --version && openssl version && ssh -V",
                "dpkg -l bash && dpkg -S /bin/bash",
                "tmux -L ours new-session -d 'sleep 0.1' && tmux -L ours kill-server",
                "script -qec 'echo inside' /dev/null",
                "timeout 5 nice true && flock lock true && setsid -w true && nohup true",
                "sqlite3 a.sqlite 'create table if not exists t(x); select 6*7'",
                "mvn --version",
                "psql --version",
                "jq -n 6*7 && bc <<< 6*7 && awk 'BEGIN { print 6*7 }'",
                "bash -lic 'shopt -q login_shell'",
            ] {
                let program = script.split(' ').next().unwrap();
                if !has(program) {
                    continue;
                }
                let ran = env.run(&["--attribution", attribution], script);
                assert!(ran.violations().is_empty(), "{script}: {ran:?}");
                // Some do not work for a user that the host has no name for.
                let bare = env.bare(script);
                assert!(ran.code == Some(0) || !bare.status.success(), "{script}: {ran:?}");
            }
        }
    }
}
