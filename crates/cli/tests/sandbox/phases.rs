//! The seed's cycle for writes, by hand and by `grant`; phases and levels; what a run teaches.

use fixtures::{TestEnv, users};

#[test]
fn a_write_outside_stops_the_run_and_a_grant_lets_it_pass() {
    for who in users() {
        let env = TestEnv::new(who);
        let target = env.path("outside/new.txt").display().to_string();
        let script = format!("echo made > {target}; echo next");
        let ran = env.run(&[], &script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{ran:?}");
        assert!(!env.path("outside/new.txt").exists());
        let grant = format!("ringwall grant write {}\n", env.path("outside").display());
        for part in [target.as_str(), "tried to create or write", &grant] {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
        let granted = env.ringwall(&["grant", "write", &target]);
        assert!(granted.status.success(), "{granted:?}");
        let ran = env.run(&[], &script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "next\n"), "{ran:?}");
        assert_eq!(env.read("outside/new.txt"), "made\n");
    }
}

#[test]
fn the_line_that_the_message_names_works_when_it_is_written_by_hand() {
    for who in users() {
        let env = TestEnv::new(who);
        let secret = env.path("outside/secret.txt").display().to_string();
        let script = format!("cat {secret} && echo more >> {secret}");
        assert_eq!(env.run(&[], &script).code, Some(77));
        let line = format!("version = 1\n[filesystem]\nallow_write = [\"{secret}\"]\n");
        // In the user's own file it counts at once.
        env.write("home/.config/ringwall/ringwall.toml", &line);
        let ran = env.run(&[], &script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "SECRET-OUTSIDE\n"), "{ran:?}");
        assert_eq!(env.read("outside/secret.txt"), "SECRET-OUTSIDE\nmore\n");
    }
}

#[test]
fn a_project_file_that_widens_counts_only_once_it_is_trusted() {
    for who in users() {
        let env = TestEnv::new(who);
        let secret = env.path("outside/secret.txt").display().to_string();
        let line = format!("version = 1\n[filesystem]\nallow_read = [\"{secret}\"]\n");
        env.write("project/ringwall.toml", &line);
        let script = format!("cat {secret}");
        let ran = env.run(&[], &script);
        assert_eq!(ran.code, Some(78), "{ran:?}");
        assert!(ran.stderr.contains("ringwall trust") && ran.stdout.is_empty(), "{ran:?}");
        assert!(env.ringwall(&["trust", "--yes"]).status.success());
        let ran = env.run(&[], &script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "SECRET-OUTSIDE\n"), "{ran:?}");
    }
}

#[test]
fn a_phase_writes_its_own_file_and_no_source() {
    for who in users() {
        for (phase, file) in [("plan", "TODO.md"), ("learn", "AGENTS.md")] {
            let env = TestEnv::new(who);
            let ran = env.run(&["--phase", phase], "echo changed > hello.txt; echo next");
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{ran:?}");
            assert_eq!(env.read("project/hello.txt"), "hello\n");
            // Made where it is missing, changed where it is there.
            let ran = env.run(&["--phase", phase], &format!("echo one > {file} && cat hello.txt"));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{ran:?}");
            let ran = env.run(&["--phase", phase], &format!("echo two >> {file}"));
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert_eq!(env.read(&format!("project/{file}")), "one\ntwo\n");
        }
        let env = TestEnv::new(who);
        assert_eq!(env.run(&["--phase", "build"], "echo x > new.txt").code, Some(0));
        assert_eq!(env.run(&["--level", "readonly"], "echo x > other.txt").code, Some(77));
    }
}

/// Programs write the next version of a file beside it and move it there.
#[test]
fn a_phases_file_can_be_saved_as_editors_do() {
    let ways = [
        "sed -i s/one/two/ TODO.md",
        "perl -pi -e s/one/two/ TODO.md",
        "sed s/one/two/ TODO.md > TODO.md.new && mv TODO.md.new TODO.md",
        "python3 -c \"import os; d = os.open('.', 0); t = f'/proc/self/fd/{d}/TODO.md'
f = os.open(t + '.tmp', os.O_WRONLY | os.O_CREAT | os.O_EXCL); os.write(f, b'two\\n')
os.replace(t + '.tmp', t)\"",
    ];
    for who in users() {
        let env = TestEnv::new(who);
        for way in ways {
            for first in ["one\n", ""] {
                let todo = env.project().join("TODO.md");
                let _ = std::fs::remove_file(&todo);
                if !first.is_empty() {
                    env.write("project/TODO.md", first);
                } else if way.contains("sed ") || way.contains("perl") {
                    continue;
                }
                let ran = env.run(&["--phase", "plan"], way);
                assert_eq!(ran.code, Some(0), "{way}: {ran:?}");
                assert!(ran.violations().is_empty(), "{way}: {ran:?}");
                assert_eq!(env.read("project/TODO.md"), "two\n", "{way}");
                let names: Vec<_> = std::fs::read_dir(env.project()).unwrap().flatten().collect();
                let beside = names
                    .iter()
                    .filter(|entry| entry.file_name().to_string_lossy().starts_with("TODO.md."));
                assert_eq!(beside.count(), 0, "{way}");
            }
        }
        // What is private to the run is not the host's of the same name.
        let shared = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        std::fs::set_permissions(
            shared.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o666),
        )
        .unwrap();
        let name = shared.path().display();
        let script =
            format!("echo x > TODO.md.new; touch {name}; mv TODO.md.new {name}; echo next");
        let ran = env.run(&["--phase", "plan"], &script);
        assert_eq!(ran.stdout, "next\n", "{ran:?}");
        assert_eq!(std::fs::read_to_string(shared.path()).unwrap(), "", "{ran:?}");
        let ran = env.run(&["--phase", "plan"], "echo x > TODO.md.bak");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("TODO.md.bak cannot be written"), "{ran:?}");
        let ran = env.run(&["--phase", "plan"], "echo x > TODO.md.new; mv TODO.md.new main.c");
        assert_eq!(ran.code, Some(77), "{ran:?}");
        assert!(!env.project().join("main.c").exists());
    }
}

/// Whatever way a call names a path, it is told which one it is.
#[test]
fn a_path_through_a_process_or_a_private_link_is_told() {
    let ways = [
        "/proc/self/cwd/",
        "/proc/thread-self/cwd/",
        "/proc/self/root$PWD/",
        "/proc/$$/cwd/",
        "/proc/self/task/$$/cwd/",
        "/proc/self/fd/5/",
        "/dev/fd/5/",
        "/tmp/link/",
        "/tmp/deep/../link/",
        "/tmp/fd/",
    ];
    for who in users() {
        let env = TestEnv::new(who);
        for way in ways {
            let script = format!(
                "ln -s $PWD /tmp/link; ln -s /proc/self/fd/5 /tmp/fd; mkdir /tmp/deep
                exec 5< .; echo x > {way}.mcp.json; echo next"
            );
            let ran = env.run(&[], &script);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{way}: {ran:?}");
            let path = env.project().join(".mcp.json");
            assert_eq!(ran.violations()[0]["path"], path.to_str().unwrap(), "{way}: {ran:?}");
        }
    }
}

/// `/proc/self` is the process, also for a thread that works elsewhere.
#[test]
fn a_thread_names_what_its_process_finds() {
    let script = "import ctypes, os, threading
def other():
    ctypes.CDLL(None).unshare(0x200)
    os.chdir('/tmp')
    open('/proc/self/cwd/.mcp.json', 'w')
    print('next')
thread = threading.Thread(target=other)
thread.start()
thread.join()";
    for who in users() {
        let env = TestEnv::new(who);
        env.write("project/thread.py", script);
        let ran = env.run(&[], "python3 thread.py");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{ran:?}");
        assert!(ran.stderr.contains("/project/.mcp.json"), "{ran:?}");
    }
}

/// A request that is too long for its buffer is answered by the kernel, and there is no other.
#[test]
fn nobody_waits_for_a_request_that_never_comes() {
    let script = "import os
root = os.open('/', os.O_RDONLY)
os.fstat(root)
try:
    os.setxattr(root, 'user.x', b'x' * 65536)
except OSError as error:
    print('refused')
os.mkdir('made')";
    for who in users() {
        let env = TestEnv::new(who);
        env.write("project/long.py", script);
        let mut command = env.command("timeout");
        command.args(["--signal=KILL", "60"]).arg(env.binary());
        let ran = command.args(["run", "--", "python3", "long.py"]).output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        assert_eq!(ran.stdout, b"refused\n", "{ran:?}");
        assert!(env.project().join("made").is_dir());
    }
}

#[test]
fn what_a_run_learns_is_what_it_needs() {
    for who in users() {
        let env = TestEnv::new(who);
        let (read, write) = (env.path("outside/secret.txt"), env.path("outside/new.txt"));
        let script = format!(
            "cat {}; echo x > {}; echo y >> ~/.bashrc; true",
            read.display(),
            write.display()
        );
        let ran = env.run(&["--learn"], &script);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stdout.contains("SECRET"), "{ran:?}");
        let config = ran.stderr.split_once("[filesystem]").unwrap().1;
        let offered = config.lines().any(|line| !line.starts_with('#') && line.contains(".bashrc"));
        assert!(!offered, "no line is offered for a protected name: {config}");
        env.write(
            "home/.config/ringwall/ringwall.toml",
            &format!("version = 1\n[filesystem]{config}"),
        );
        let script = format!("cat {}; echo x > {}", read.display(), write.display());
        let ran = env.run(&[], &script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "SECRET-OUTSIDE\n"), "{ran:?}");
    }
}

#[test]
fn what_programs_look_for_by_habit_never_stops_them() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.netrc", "machine registry.example.org\n");
        env.write("package.json", "{}");
        let script = "cat ~/.netrc ../package.json ~/.bashrc /nonexistent 2>/dev/null; echo next";
        let ran = env.run(&[], script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "next\n"), "{ran:?}");
        assert!(ran.violations().is_empty(), "{ran:?}");
        assert!(!ran.events("violation").is_empty(), "probes are noted: {ran:?}");
    }
}

/// A shell looks for every program in every directory of PATH, also in those it may not see.
#[test]
fn a_program_outside_the_ground_is_not_found_and_that_is_told() {
    for who in users() {
        let env = TestEnv::new(who);
        let tool = env.write("outside/tools/mytool", "#!/bin/sh\necho it runs\n");
        std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let path = format!("/usr/bin:/bin:{}", tool.parent().unwrap().display());
        let run = |script: &str| {
            let mut command = env.command(env.binary());
            command.args(["run", "--", "sh", "-c", script]);
            command.env("PATH", &path).output().unwrap()
        };
        let ran = run("mytool; echo next");
        assert_eq!(
            (ran.status.code(), ran.stdout.as_slice()),
            (Some(0), &b"next\n"[..]),
            "{ran:?}"
        );
        let ran = run("mytool");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(127), "{said}");
        assert!(said.contains(&format!("ringwall grant read {}", tool.display())), "{said}");
    }
}

#[test]
fn events_tell_what_was_tried_by_whom() {
    for who in users() {
        let env = TestEnv::new(who);
        let path = env.path("outside/secret.txt").display().to_string();
        let ran = env.run(&[], &format!("cat {path}"));
        let [violation] = ran.violations()[..] else { panic!("{ran:?}") };
        assert_eq!(violation["class"], "stop");
        assert_eq!(violation["operation"], "read");
        assert_eq!(violation["path"], path.as_str());
        assert_eq!(violation["program"]["argv"][0], "cat");
        assert!(violation["program"]["path"].as_str().unwrap().ends_with("/cat"), "{violation}");
        assert!(violation["remedy"].as_str().unwrap().contains("ringwall grant read"));
        let started = ran.events("started");
        let tried = started[0]["self_test"].as_array().unwrap();
        assert!(tried.len() >= 3 && tried.iter().all(|act| act[1] == true), "{tried:?}");
        let stopped = ran.events("stopped");
        assert_eq!((&stopped[0]["exit"], &stopped[0]["end"]), (&77.into(), &"violation".into()));
    }
}
