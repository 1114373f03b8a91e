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
