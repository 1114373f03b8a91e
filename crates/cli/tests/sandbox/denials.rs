//! Deny beats allow: rules that deny, over everything that is given.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use fixtures::{TestEnv, has_python, users};

/// What appears in a directory that cannot be watched would not be seen.
#[test]
fn nothing_appears_where_nobody_can_watch() {
    if !has_python() {
        return;
    }
    for who in users() {
        let env = TestEnv::new(who);
        env.configure("[filesystem]\ndeny_read = [\"**/*.pem\"]\n");
        let mut host = env.command("/bin/bash");
        // The run may end before it is ready.
        let script = "for n in $(seq 200); do [ -e ready ] && break; sleep 0.05; done
            echo SECRET > n/key.pem; touch made";
        let mut host = host.args(["-c", script]).spawn().unwrap();
        let script = "exec /usr/bin/python3 -c '
import os, time
os.mkdir(\"n\", 0o300)
time.sleep(1)
os.chmod(\"n\", 0o755)
open(\"ready\", \"w\")
while not os.path.exists(\"made\"):
    time.sleep(0.05)
# It is hidden as soon as it is seen, or the run has been stopped: then this ends with an error.
for n in range(600):
    text = open(\"n/key.pem\").read()
    time.sleep(0.1)
print(text)
'";
        let ran = env.run(&[], script);
        host.wait().unwrap();
        assert!(!ran.stdout.contains("SECRET"), "{ran:?}");
        assert_ne!(ran.code, Some(0), "{ran:?}");
    }
}

#[test]
fn what_appears_under_a_deny_rule_is_hidden_too() {
    for who in users() {
        let env = TestEnv::new(who);
        let named = env.project().join("sub/key.pem").display().to_string();
        let deeper = env.project().join("deep/er/key.pem").display().to_string();
        env.write("project/old.pem", "SECRET\n");
        env.write("project/sub/other.txt", "other\n");
        for (rule, dir) in [("**/*.pem", "sub"), (&named, "sub"), (&deeper, "deep/er")] {
            let config = format!("[filesystem]\ndeny_read = [\"{rule}\"]\n");
            env.configure(&config);
            if rule == "**/*.pem" {
                assert_eq!(env.run(&[], "cat old.pem").code, Some(77));
            }
            if dir == "sub" {
                assert_eq!(env.run(&[], "cp hello.txt sub/key.pem").code, Some(77));
            }
            // Somebody outside makes one while the run goes on.
            let mut host = env.command("/bin/bash");
            let script = format!(
                "until [ -e ready ]; do sleep 0.05; done; mkdir -p {dir}; echo SECRET > {dir}/.k
                mv {dir}/.k {dir}/key.pem; touch made"
            );
            let mut host = host.args(["-c", &script]).spawn().unwrap();
            let ran = env.run(
                &[],
                &format!(
                    "touch ready; until [ -e made ]; do sleep 0.05; done
                    for n in $(seq 600); do cat {dir}/key.pem > /dev/null; sleep 0.1; done
                    cat {dir}/key.pem"
                ),
            );
            assert!(host.wait().unwrap().success());
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{rule}: {ran:?}");
            for file in [&format!("{dir}/key.pem"), "ready", "made"] {
                std::fs::remove_file(env.project().join(file)).unwrap();
            }
        }
    }
}

/// Names are bytes, and the process that mounts gets them as they are.
#[test]
fn what_appears_under_a_name_that_is_no_text_is_hidden_too() {
    let name = OsStr::from_bytes(b"\xff\xfe.pem");
    for who in users() {
        let env = TestEnv::new(who);
        env.configure("[filesystem]\ndeny_read = [\"**/*.pem\"]\n");
        let mut host = env.command("/bin/bash");
        let script = "until [ -e ready ]; do sleep 0.05; done
            echo SECRET > .k; mv .k $'\\xff\\xfe.pem'; touch made";
        let mut host = host.args(["-c", script]).spawn().unwrap();
        let ran = env.run(
            &[],
            "touch ready; until [ -e made ]; do sleep 0.05; done
            for n in $(seq 600); do cat *.pem > /dev/null; sleep 0.1; done; cat *.pem",
        );
        assert!(host.wait().unwrap().success());
        assert!(env.project().join(name).exists());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{ran:?}");
    }
}

#[test]
fn a_deny_rule_holds_for_what_its_path_leads_to() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.cargo/registry/real/a.key", "SECRET\n");
        env.write("project/real/a.key", "SECRET\n");
        for place in ["home/.cargo/registry", "project"] {
            symlink("real", env.path(place).join("link")).unwrap();
        }
        let project = env.project().display().to_string();
        for base in ["~/.cargo/registry", &project] {
            for rule in ["link/a.key", "link", "link/*.key"] {
                let config = format!("[filesystem]\ndeny_read = [\"{base}/{rule}\"]\n");
                env.configure(&config);
                for way in ["link", "real"] {
                    let ran = env.run(&[], &format!("cat {base}/{way}/a.key"));
                    let told = (ran.code, ran.stdout.as_str());
                    assert_eq!(told, (Some(77), ""), "{base}/{rule}, {way}: {ran:?}");
                }
            }
        }
    }
}

#[test]
fn a_deny_rule_holds_where_everything_else_can_be_read() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/notes/a.key", "SECRET\n");
        env.write("home/notes/a.txt", "NOTE\n");
        let secret = env.path("outside/secret.txt").display().to_string();
        let rules = format!("deny_read = [\"~/notes/*.key\", \"{secret}\"]");
        let config = format!("level = \"full\"\n[filesystem]\n{rules}\n");
        env.configure(&config);
        let ran = env.run(&[], "cat ~/notes/a.txt");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "NOTE\n"), "{ran:?}");
        for denied in ["~/notes/a.key", &secret] {
            let ran = env.run(&[], &format!("cat {denied}; mv ~/notes ~/other && cat ~/other/*"));
            assert!(!ran.stdout.contains("SECRET") && ran.code != Some(0), "{denied}: {ran:?}");
        }
    }
}

#[test]
fn a_deny_rule_holds_in_the_toolchain_too() {
    for who in users() {
        let env = TestEnv::new(who);
        for file in [".cargo/bin/tool", ".cargo/private/key", ".cargo/private/deep/a.key"] {
            env.write(&format!("home/{file}"), "TOOLCHAIN\n");
        }
        for file in [".cargo/registry/key", ".cargo/registry/deep/a.key"] {
            env.write(&format!("home/{file}"), "TOOLCHAIN\n");
        }
        let all = "cat ~/.cargo/bin/tool; ls ~/.cargo/registry/deep; cat ~/.cargo/registry/key";
        let ran = env.run(&[], all);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "TOOLCHAIN\na.key\nTOOLCHAIN\n"));
        for (rule, denied) in [
            ("~/.cargo/private/key", "~/.cargo/private/key"),
            ("~/.cargo/private", "~/.cargo/private/deep/a.key"),
            ("~/.cargo/**/*.key", "~/.cargo/private/deep/a.key"),
            ("~/.cargo", "~/.cargo/private/key"),
            ("~/.c*/private", "~/.cargo/private/key"),
            ("~/.cargo/registry/key", "~/.cargo/registry/key"),
            ("~/.cargo/registry", "~/.cargo/registry/deep/a.key"),
            ("~/.cargo/**/*.key", "~/.cargo/registry/deep/a.key"),
        ] {
            let config = format!("[filesystem]\ndeny_read = [\"{rule}\"]\n");
            env.configure(&config);
            let ran = env.run(&[], &format!("cat {denied}"));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{rule}: {ran:?}");
            let ran = env.run(&[], "cat ~/.cargo/bin/tool");
            let expected = if rule == "~/.cargo" { Some(77) } else { Some(0) };
            assert_eq!(ran.code, expected, "{rule}: {ran:?}");
        }
    }
}

#[test]
fn no_grant_reaches_into_what_is_denied_or_protected() {
    for who in users() {
        let env = TestEnv::new(who);
        for file in ["notes/key", "repo/.git/config", "repo/.git/hooks/pre-commit"] {
            env.write(&format!("home/{file}"), "KEPT\n");
        }
        let read = "cat ~/notes/key";
        for (rules, script) in [
            ("deny_read = [\"~/notes\"]\nallow_read = [\"~/notes/key\"]", read),
            ("deny_read = [\"~/notes\"]\nallow_write = [\"~/notes/key\"]", read),
            ("deny_read = [\"~/notes\"]\nallow_read = [\"~/notes\"]", read),
            (
                "deny_read = [\"~/notes\"]\nallow_write = [\"~/notes/new\"]",
                "echo > ~/notes/new; cat ~/notes/new",
            ),
            (
                "deny_write = [\"~/notes\"]\nallow_write = [\"~/notes/key\"]",
                "echo changed > ~/notes/key",
            ),
            ("allow_write = [\"~/repo/.git/config\"]", "echo changed > ~/repo/.git/config"),
            (
                "allow_write = [\"~/repo/.git/hooks/pre-commit\"]",
                "echo changed > ~/repo/.git/hooks/pre-commit",
            ),
        ] {
            let config = format!("[filesystem]\n{rules}\n");
            env.configure(&config);
            let ran = env.run(&[], script);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{rules}: {ran:?}");
            // Nor where nobody watches.
            let ran = env.run(&["--attribution", "inferred"], script);
            assert!(ran.code != Some(0) && ran.stdout.is_empty(), "{rules}: {ran:?}");
            for file in ["notes/key", "repo/.git/config", "repo/.git/hooks/pre-commit"] {
                assert_eq!(env.read(&format!("home/{file}")), "KEPT\n", "{rules}");
            }
            assert!(!env.path("home/notes/new").exists(), "{rules}");
        }
    }
}

#[test]
fn a_protected_name_that_is_a_link_shows_nothing_of_the_host() {
    for who in users() {
        let env = TestEnv::new(who);
        for dir in ["/tmp", "/var/tmp", "/dev/shm"] {
            let shared = tempfile::NamedTempFile::new_in(dir).unwrap();
            std::fs::write(shared.path(), "SECRET\n").unwrap();
            shared.as_file().set_permissions(PermissionsExt::from_mode(0o644)).unwrap();
            let link = env.path("project/.mcp.json");
            symlink(shared.path(), &link).unwrap();
            let ran = env.run(&[], "cat .mcp.json; echo next");
            assert_eq!(ran.stdout, "next\n", "{dir}: {ran:?}");
            std::fs::remove_file(link).unwrap();
        }
    }
}

#[test]
fn a_denied_name_that_leads_to_what_is_the_runs_own_breaks_nothing() {
    for who in users() {
        let env = TestEnv::new(who);
        let config = "[filesystem]\ndeny_read = [\"**/secret\"]\n";
        env.configure(config);
        for target in ["/proc", "/proc/self/fd", "/dev", "/dev/null", "/dev/shm", "/tmp", "/"] {
            let link = env.path("project/secret");
            symlink(target, &link).unwrap();
            let ran = env.run(&[], "echo > /dev/null && cat /proc/self/comm && : > /tmp/x");
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "cat\n"), "{target}: {ran:?}");
            std::fs::remove_file(link).unwrap();
        }
    }
}

#[test]
fn a_run_keeps_its_own_processes_and_devices_whatever_is_granted() {
    for who in users() {
        let env = TestEnv::new(who);
        for path in ["/proc", "/proc/self", "/dev", "/dev/pts", "/dev/null"] {
            for access in ["read", "write"] {
                let config = format!("[filesystem]\nallow_{access} = [\"{path}\"]\n");
                env.configure(&config);
                let script = "echo > /dev/null && cat /proc/self/comm && cat /proc/$$/comm; :";
                let ran = env.run(&[], script);
                let told = (ran.code, ran.stdout.as_str());
                assert_eq!(told, (Some(0), "cat\nbash\n"), "{access} {path}: {ran:?}");
            }
        }
    }
}

#[test]
fn a_run_in_a_workspace_that_a_rule_denies_is_refused() {
    for who in users() {
        let env = TestEnv::new(who);
        symlink(env.path(""), env.path("home/all")).unwrap();
        let project = env.project().display().to_string();
        for rule in [&project, "~/all", "/", "**/project"] {
            for level in ["readonly", "full"] {
                let config =
                    format!("level = \"{level}\"\n[filesystem]\ndeny_read = [\"{rule}\"]\n");
                env.configure(&config);
                let ran = env.run(&[], "true");
                assert_eq!(ran.code, Some(78), "{level} {rule}: {ran:?}");
                for part in [&format!("`{rule}` in deny_read"), "ringwall.toml:3", &project] {
                    assert!(ran.stderr.contains(part), "{part}: {ran:?}");
                }
            }
        }
    }
}

/// What a terminal would act on is escaped as TOML and a shell read it.
#[test]
fn what_is_proposed_for_an_odd_name_can_be_pasted() {
    for who in users() {
        let env = TestEnv::new(who);
        let odd = env.path("outside/a\nb\u{1b}[31m\u{202e}c");
        std::fs::create_dir(&odd).unwrap();
        std::fs::write(odd.join("file"), "SECRET").unwrap();
        let script = format!(
            "cat $'{}/a\\nb\\x1b[31m\\u202ec/file' 2> /dev/null",
            env.path("outside").display()
        );
        let ran = env.run(&["--learn"], &script);
        assert!(ran.stderr.contains("a\\u000Ab\\u001B"), "{ran:?}");
        assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains('\u{202e}'), "{ran:?}");
        let ran = env.run(&[], &script);
        let word = r"a\x0ab\x1b[31m\xe2\x80\xaec'";
        let line = ran.stderr.lines().find(|line| line.contains("ringwall grant read"));
        let line = line.unwrap_or_else(|| panic!("{ran:?}"));
        assert!(line.contains("ringwall grant read $'") && line.contains(word), "{line}");
    }
}
