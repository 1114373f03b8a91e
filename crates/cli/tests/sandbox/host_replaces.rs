//! What holds while the host replaces files of the workspace: an editor that saves, `git config`, a
//! push that sets an upstream. The kernel then detaches what was mounted on them for the run.

use std::process::{Child, Command};

use fixtures::{TestEnv, has_python, users};

/// A checkout with one commit.
const CHECKOUT: &str = "git init -q -b main . && git add -A && git commit -qm first";

/// Waits inside until a path is a mount point. Generous: the run fails here if it never is again.
const UNTIL_MOUNTED: &str = "until_mounted() {
    for _ in $(seq 600); do
        grep -q \" $PWD/$1 \" /proc/self/mountinfo && return; sleep 0.05
    done
    echo \"$1 is not mounted\"; exit 9
}
until_there() { for _ in $(seq 600); do [ -e \"$1\" ] && return; sleep 0.05; done; exit 8; }
";

/// Something that the host does in the project while the run goes on.
fn host(env: &TestEnv, script: &str) -> Child {
    let script = format!("{UNTIL_MOUNTED}\n{script}");
    let mut command: Command = env.command("/bin/bash");
    command.args(["-c", &script]).spawn().unwrap()
}

/// Without intercepted calls the mount is all that protects a name.
#[test]
fn a_protective_mount_comes_back_when_the_host_replaces_the_file() {
    let acts = [
        (".git/config", "git config user.name \"$n\""),
        (".git/config", "cp .git/config .git/new && mv .git/new .git/config"),
        (".git/config", "rm .git/config && echo '[core]' > .git/config"),
        (".mcp.json", "echo '{}' > .mcp.json~ && mv .mcp.json~ .mcp.json"),
        (".git/hooks", "mv .git/hooks .git/old && mkdir .git/hooks && rm -r .git/old"),
        (".git/config", "mv .git .old && cp -r .old .git && rm -rf .old"),
    ];
    for who in users() {
        for (path, act) in acts {
            let env = TestEnv::new(who);
            env.write("project/.mcp.json", "{}\n");
            env.prepare(CHECKOUT);
            let mut host = host(
                &env,
                &format!("for n in 1 2 3 4 5; do until_there ready$n; {act}; touch done$n; done"),
            );
            let target = if path.ends_with("hooks") { ".git/hooks/pre-commit" } else { path };
            let script = format!(
                "{UNTIL_MOUNTED}
                for n in 1 2 3 4 5; do
                    until_mounted {path}; touch ready$n; until_there done$n; until_mounted {path}
                    if (echo PLANTED >> {target}) 2> /dev/null; then echo written; fi
                    if mv ready$n {path} 2> /dev/null; then echo replaced; fi
                done; echo end"
            );
            let ran = env.run(&["--attribution", "inferred"], &script);
            let host = host.wait().unwrap();
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "end\n"), "{act}: {ran:?}");
            assert!(host.success(), "{act}");
            let left = std::fs::read_to_string(env.project().join(target)).unwrap_or_default();
            assert!(!left.contains("PLANTED"), "{act}: {left}");
        }
    }
}

/// The same with calls that are intercepted, and with a program that tries without a pause.
#[test]
fn nothing_is_written_while_the_host_replaces_a_protected_file() {
    if !has_python() {
        return;
    }
    let attempts = "exec /usr/bin/python3 -c '
import os
def tries(act):
    try:
        act()
    except OSError:
        pass
def write():
    with open(\".git/config\", \"a\") as file:
        file.write(\"PLANTED\")
def rename():
    with open(\"planted\", \"w\") as file:
        file.write(\"PLANTED\")
    os.rename(\"planted\", \".git/config\")
def link():
    os.link(\".git/config\", \"linked\")
    with open(\"linked\", \"a\") as file:
        file.write(\"PLANTED\")
open(\"ready\", \"w\").close()
while not os.path.exists(\"made\"):
    for act in (write, rename, link):
        tries(act)
'";
    let acts = [
        "for n in $(seq 100); do git config user.name \"$n\"; done",
        "for n in $(seq 200); do cp .git/config .git/new; mv .git/new .git/config; done",
        "git init -q --bare ../remote.git; git remote add origin ../remote.git
         for n in $(seq 20); do git push -qu origin main:b$n; done",
    ];
    for (who, act) in users().into_iter().flat_map(|who| acts.map(|act| (who, act))) {
        for attribution in ["tripwire", "notify"] {
            let env = TestEnv::new(who);
            env.configure("[violation]\naction = \"deny\"\n");
            env.prepare(CHECKOUT);
            let mut host = host(&env, &format!("until_there ready; {act}; touch made"));
            let ran = env.run(&["--attribution", attribution], attempts);
            assert!(host.wait().unwrap().success());
            assert_eq!(ran.code, Some(0), "{attribution} {act}: {ran:?}");
            assert!(ran.events("tampering").is_empty(), "{attribution} {act}: {ran:?}");
            let config = env.read("project/.git/config");
            assert!(!config.contains("PLANTED"), "{attribution} {act}: {config}");
        }
    }
}

/// How often the host creates or replaces files for each user while the run tries to read them.
const TRIES: usize = 1000;

/// The host creates, replaces and renames files that must not be read, and moves in directories with
/// such files.
const HOST_WRITES_SECRETS: &str = "
import os, shutil, sys, time
def write(path):
    with open(path, \"w\") as file:
        file.write(\"SECRET\")
while not os.path.exists(\"ready\"):
    time.sleep(0.01)
for n in range(int(sys.argv[1])):
    write(\".env\")
    write(\"../new\")
    os.rename(\"../new\", \".env\")
    os.mkdir(\"../stage\")
    write(\"../stage/.env\")
    os.rename(\"../stage\", \"in\")
    time.sleep(0.001)
    os.remove(\".env\")
    shutil.rmtree(\"in\")
open(\"made\", \"w\").close()
";

/// Reads in a tight loop: by name, and by an argument that another process changes all the time.
const RUN_READS_SECRETS: &str = "
import ctypes, mmap, os, signal
libc = ctypes.CDLL(None)
page = mmap.mmap(-1, 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
page[0:7] = b\"./text\\0\"
flips = os.fork()
if flips == 0:
    while True:
        page[0:7] = b\"./.env\\0\"
        page[0:7] = b\"./text\\0\"
leaked, harmless = 0, 0
def look(descriptor):
    global leaked, harmless
    if descriptor < 0:
        return
    text = os.read(descriptor, 100)
    os.close(descriptor)
    leaked += b\"SECRET\" in text
    harmless += text == b\"harmless\\n\"
open(\"ready\", \"w\").close()
while not os.path.exists(\"made\"):
    for _ in range(5):
        look(libc.open(ctypes.c_void_p(address), 0))
    for name in (b\".env\", b\"in/.env\", b\"in/../.env\"):
        look(libc.open(name, 0))
os.kill(flips, signal.SIGKILL)
print(\"leaked\", leaked)
print(\"harmless\" if harmless > 0 else \"nothing was read\")
";

#[test]
fn with_strict_deny_no_byte_of_a_denied_file_is_read() {
    if !has_python() {
        return;
    }
    for (who, attribution) in
        users().into_iter().flat_map(|who| ["tripwire", "notify"].map(|by| (who, by)))
    {
        let env = TestEnv::new(who);
        env.configure(
            "[filesystem]\ndeny_read = [\"**/.env\"]\nstrict_deny = true\n\
             [violation]\naction = \"deny\"\n",
        );
        env.write("project/text", "harmless\n");
        env.write("project/run.py", RUN_READS_SECRETS);
        let mut host = env.command("/usr/bin/python3");
        let host = host.args(["-c", HOST_WRITES_SECRETS, &(TRIES / 2).to_string()]);
        let mut host = host.spawn().unwrap();
        let ran = env.run(&["--attribution", attribution], "exec /usr/bin/python3 run.py");
        assert!(host.wait().unwrap().success());
        let told = (ran.code, ran.stdout.as_str());
        assert_eq!(told, (Some(0), "leaked 0\nharmless\n"), "{attribution}: {}", ran.stderr);
    }
}

/// What programs do with files is the same when the supervisor opens them.
#[test]
fn with_strict_deny_programs_work_as_before() {
    let script = "set -e
        mkfifo pipe; (sleep 0.2; echo pipe > pipe) & cat pipe; wait
        cat < hello.txt; cat <(echo substituted); echo standard | cat /dev/stdin
        exec 3< hello.txt; cat /dev/fd/3 /proc/self/fd/3; (cd /; cat \"$OLDPWD/hello.txt\")
        ln -s hello.txt link; cat link; head -c 2 /dev/zero | wc -c
        cat /proc/self/comm /proc/thread-self/comm; head -c 1 /proc/mounts | wc -c
        mkdir sub; cd sub; cat ../hello.txt; ls ..; rm ../hello.txt
        cat ../hello.txt 2> /dev/null || echo gone";
    for (who, attribution) in
        users().into_iter().flat_map(|who| ["tripwire", "notify"].map(|by| (who, by)))
    {
        let outputs = ["false", "true"].map(|strict| {
            let env = TestEnv::new(who);
            env.configure(&format!(
                "[filesystem]\ndeny_read = [\"**/.env\"]\nstrict_deny = {strict}\n"
            ));
            let ran = env.run(&["--attribution", attribution], script);
            assert_eq!(ran.code, Some(0), "{strict} {attribution}: {ran:?}");
            ran.stdout
        });
        assert_eq!(outputs[0], outputs[1], "{attribution}");
    }
}

/// A path that is denied for any other reason is denied for the same reason, and the program is named.
#[test]
fn with_strict_deny_a_denial_says_the_same() {
    for who in users() {
        let env = TestEnv::new(who);
        env.configure("[filesystem]\ndeny_read = [\"**/.env\"]\nstrict_deny = true\n");
        env.write("project/.env", "SECRET\n");
        for path in [".env", "../outside/secret.txt"] {
            let ran = env.run(&[], &format!("cat {path}"));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{path}: {ran:?}");
            assert!(ran.stderr.contains("`cat` tried to read"), "{path}: {ran:?}");
        }
    }
}

/// Where not every open can be intercepted, the promise cannot be kept.
#[test]
fn without_intercepted_calls_strict_deny_refuses_to_run() {
    for who in users() {
        let env = TestEnv::new(who);
        env.configure("[filesystem]\ndeny_read = [\"**/.env\"]\nstrict_deny = true\n");
        let ran = env.run(&["--attribution", "inferred"], "echo ran");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(69), ""), "{ran:?}");
        assert!(ran.stderr.contains("strict_deny"), "{ran:?}");
    }
}

/// What a configuration names is protected from the start. One that the host changes during a run may name
/// other files, which the run has written by then, or writes later.
#[test]
fn what_a_configuration_names_that_the_host_changes_meanwhile_does_not_stay() {
    let hook = "mkdir -p .githooks; printf '#!/bin/sh\\ntouch PWNED\\n' > .githooks/pre-commit
        chmod 755 .githooks/pre-commit";
    let included = "printf '[core]\\n\\tfsmonitor = touch PWNED;\\n' > more";
    let program =
        "mkdir -p tools; printf '#!/bin/sh\\ntouch PWNED\\n' > tools/x; chmod 755 tools/x";
    for who in users() {
        for (host_does, run_does, then) in [
            ("git config core.hooksPath .githooks", hook, "git commit -q --allow-empty -m x"),
            (
                "git config --global core.hooksPath .githooks",
                hook,
                "git commit -q --allow-empty -m x",
            ),
            ("git config --global include.path $PWD/more", included, "git status"),
            ("git config include.path ../more", included, "git status"),
            ("git config core.fsmonitor ./tools/x", program, "git status"),
            // It holds in a repository that the run creates, too.
            (
                "git config --global core.hooksPath .githooks",
                "git init -q sub; cd sub; mkdir .githooks; cp /bin/true .githooks/pre-commit
                printf '#!/bin/sh\\ntouch PWNED\\n' > .githooks/pre-commit; chmod 755 .githooks/*",
                "cd sub; git commit -q --allow-empty -m x",
            ),
        ] {
            let env = TestEnv::new(who);
            env.configure("[violation]\naction = \"deny\"\n");
            env.prepare(CHECKOUT);
            let mark = env.path("PWNED");
            let marking = |text: &str| text.replace("PWNED", &mark.display().to_string());
            let mut host =
                host(&env, &format!("until_there ready; {}; touch configured", marking(host_does)));
            let script =
                format!("{UNTIL_MOUNTED}\ntouch ready; until_there configured; {run_does}");
            let ran = env.run(&[], &marking(&script));
            assert!(host.wait().unwrap().success(), "{host_does}");
            let after = env.bare(&marking(then));
            assert!(!mark.exists(), "{host_does}: {ran:?} {after:?}");
            assert!(!ran.events("tampering").is_empty(), "{host_does}: {ran:?}");
            // Without a sandbox it would have acted.
            env.prepare(&marking(&format!("({host_does}); {run_does}")));
            env.bare(&marking(then));
            assert!(mark.exists(), "{host_does}: it does nothing without a sandbox");
        }
    }
}

/// Then what the run left is somewhere else.
#[test]
fn a_workspace_that_the_host_moves_meanwhile_is_reported() {
    for who in users() {
        for act in ["mv ../project ../moved; mkdir ../project", "mv ../project ../moved"] {
            let env = TestEnv::new(who);
            let mut host = host(&env, &format!("until_there ready; {act}; touch ../moved/done"));
            let script = format!("{UNTIL_MOUNTED}\ntouch ready; until_there done; touch left");
            let ran = env.run(&[], &script);
            assert!(host.wait().unwrap().success(), "{act}");
            let told = ran.events("tampering");
            let what = told.first().and_then(|it| it["what"].as_str()).unwrap_or_default();
            assert!(what.starts_with("the workspace was moved"), "{act}: {ran:?}");
            assert_eq!(ran.code, Some(77), "{act}: {ran:?}");
        }
    }
}
