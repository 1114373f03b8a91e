//! Run, stopped, granted as the message says, run again: the way that users go.

use std::path::Path;

use fixtures::{RunOutput, TestEnv, users};

/// The grant of a key is shown, and asks.
const KEY: &str = "\n  allow: ringwall grant read ~/.ssh/id_ed25519     (private key: asks before it \
                   grants)\n  rule:  workspace";

#[test]
fn a_read_outside_stops_the_run_and_a_grant_lets_it_pass() {
    for who in users() {
        let env = TestEnv::new(who);
        let script = format!(
            "echo made > made.txt; cat {}; echo next",
            env.home().join(".ssh/id_ed25519").display()
        );
        let ran = env.run(&[], &script);
        assert_eq!(ran.code, Some(77), "{ran:?}");
        assert_eq!(env.read("project/made.txt"), "made\n");
        assert!(!ran.stdout.contains("next") && !ran.stdout.contains("SECRET"), "{ran:?}");
        let path = env.home().join(".ssh/id_ed25519").display().to_string();
        let tried =
            "error: stopped: `cat` tried to read ~/.ssh/id_ed25519\n  why:   outside the workspace";
        for part in [tried, KEY] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        // It is not what a program that follows messages would take.
        assert_eq!(ran.violations()[0]["allow"], serde_json::Value::Null, "{ran:?}");
        let granted = env.ringwall(&["grant", "read", &path]);
        let said = fixtures::text(&granted.stderr);
        assert_eq!(granted.status.code(), Some(64), "{said}");
        assert!(said.contains("is a private key") && said.contains("`--yes`"), "{said}");
        let granted = env.ringwall(&["grant", "read", &path, "--yes"]);
        assert!(granted.status.success(), "{granted:?}");
        let ran = env.run(&[], &script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "SECRET-KEY\nnext\n"), "{ran:?}");
    }
}

/// Something that is refused at first, and what it does once it is granted.
struct Case {
    /// `{}` stands for the path.
    script: &'static str,
    /// Below the test environment.
    path: &'static str,
    access: &'static str,
    shown: &'static str,
    /// What the file says in the end; nothing for a directory.
    left: &'static str,
}

const CASES: &[Case] = &[
    Case {
        script: "cat '{}'",
        path: "outside/secret.txt",
        access: "read",
        shown: "SECRET-OUTSIDE\n",
        left: "SECRET-OUTSIDE\n",
    },
    Case {
        script: "grep -c . '{}'",
        path: "home/my notes [1] $x.txt",
        access: "read",
        shown: "1\n",
        left: "notes\n",
    },
    Case {
        script: "echo more >> '{}'",
        path: "outside/secret.txt",
        access: "write",
        shown: "",
        left: "SECRET-OUTSIDE\nmore\n",
    },
    Case {
        script: "mkdir '{}' 2> /dev/null; echo new > '{}/file'; cat '{}/file'",
        path: "outside/made later",
        access: "write",
        shown: "new\n",
        left: "",
    },
    Case {
        script: "echo new > '{}'; cat '{}'",
        path: "outside/made later.txt",
        access: "write",
        shown: "new\n",
        left: "new\n",
    },
];

/// A way out, as the message tells it.
struct Remedy {
    command: String,
    entry: String,
    key: String,
    file: String,
}

impl Remedy {
    fn of(ran: &RunOutput) -> Self {
        let text = ran.violations()[0]["remedy"].as_str().unwrap_or_default().to_owned() + "\n";
        let between = |from: &str, to: &str| {
            let (_, rest) = text.split_once(from)?;
            Some(rest.split_once(to)?.0.to_owned())
        };
        let told = || {
            Some(Self {
                command: between("with `", "`, which adds ")?,
                entry: between("which adds ", " to allow_")?,
                key: format!("allow_{}", between(" to allow_", " under [filesystem]")?),
                file: between(" under [filesystem] in ", "\n")?,
            })
        };
        told().unwrap_or_else(|| panic!("no remedy: {ran:?}"))
    }
}

/// Every way that the message names, each in a test environment of its own.
#[derive(Debug, Clone, Copy)]
enum Way {
    Command,
    ProjectFile,
    UserFile,
    Flag,
}

#[test]
fn what_the_message_says_is_enough() {
    for who in users() {
        for case in CASES {
            for way in [Way::Command, Way::ProjectFile, Way::UserFile, Way::Flag] {
                follow(&TestEnv::new(who), case, way);
            }
        }
    }
}

fn follow(env: &TestEnv, case: &Case, way: Way) {
    env.write("home/my notes [1] $x.txt", "notes\n");
    let path = env.path(case.path).display().to_string();
    let script = case.script.replace("{}", &path);
    let before = std::fs::read(&path).ok();
    let ran = env.run(&[], &script);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{script}: {ran:?}");
    assert_eq!(std::fs::read(&path).ok(), before, "{script}");
    let home = format!("{}/", env.home().display());
    let remedy = Remedy::of(&ran);
    let shown = path.replace(&home, "~/");
    for part in ["error: stopped: `", &shown, "rule:  workspace (built in)"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    // The command is on a line of its own, as it can be pasted.
    let allow = ran.stderr.lines().find_map(|line| line.strip_prefix("  allow: "));
    assert_eq!(allow.map(|line| line.replace("~/", &home)), Some(remedy.command.clone()));
    assert_eq!(remedy.key, format!("allow_{}", case.access));
    let lines = format!("[filesystem]\n{} = [{}]\n", remedy.key, remedy.entry);
    let mut options: Vec<String> = Vec::new();
    match way {
        Way::Command => {
            let grant = env.bare(&format!("PATH=$PWD/..:$PATH; {}", remedy.command));
            assert!(grant.status.success(), "{grant:?}");
        }
        Way::UserFile => drop(env.write("home/.config/ringwall/ringwall.toml", &lines)),
        Way::Flag => {
            let slash = if case.left.is_empty() { "/" } else { "" };
            options.extend([format!("--allow-{}", case.access), format!("{path}{slash}")]);
        }
        Way::ProjectFile => {
            assert_eq!(Path::new(&remedy.file), env.path("project/ringwall.toml"));
            env.write("project/ringwall.toml", &lines);
            let ran = env.run(&[], &script);
            assert_eq!(ran.code, Some(78), "{ran:?}");
            assert!(ran.stderr.contains("ringwall trust"), "{ran:?}");
            let asked = env.ringwall(&["trust"]);
            let told = String::from_utf8_lossy(&asked.stderr).into_owned();
            assert!(!asked.status.success() && told.contains("ringwall trust --yes"), "{told}");
            let trusted = env.ringwall(&["trust", "--yes"]);
            assert!(trusted.status.success(), "{trusted:?}");
        }
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let ran = env.run(&options, &script);
    let went = (ran.code, ran.stdout.as_str());
    // A pattern in a name is a pattern on the command line too.
    if matches!(way, Way::Flag) && path.contains('[') {
        return;
    }
    assert_eq!(went, (Some(0), case.shown), "{script} by {way:?}: {ran:?}");
    assert!(ran.violations().is_empty(), "{script} by {way:?}: {ran:?}");
    let left = if case.left.is_empty() { format!("{path}/file") } else { path };
    let left = std::fs::read_to_string(left).unwrap();
    assert!([case.left, case.shown].contains(&left.as_str()), "{script} by {way:?}: {left}");
    // Nothing beside the directory was opened.
    let beside = env.path("beside/beside.txt");
    env.write("beside/beside.txt", "SECRET\n");
    let ran = env.run(&[], &format!("cat {}", beside.display()));
    assert_eq!(ran.code, Some(77), "{ran:?}");
}

#[test]
fn a_violation_names_who_tried_what() {
    for who in users() {
        let env = TestEnv::new(who);
        let secret = env.path("outside/secret.txt").display().to_string();
        let made = env.path("outside/made.txt").display().to_string();
        let project = env.path("project/ringwall.toml").display().to_string();
        for (script, operation, path, argv, words) in [
            ("cat -n SECRET", "read", &secret, vec!["cat", "-n", &secret], "read"),
            ("cp hello.txt MADE", "create", &made, vec!["cp", "hello.txt", &made], "create"),
            ("rm -f SECRET", "remove", &secret, vec!["rm", "-f", &secret], "remove"),
            ("truncate -s 0 SECRET", "create", &secret, vec!["truncate", "-s", "0", &secret], ""),
            ("mv hello.txt MADE", "rename", &made, vec!["mv", "hello.txt", &made], "rename"),
            ("mkdir MADE", "make_directory", &made, vec!["mkdir", &made], "create the directory"),
            (
                "ln -s x MADE",
                "symbolic_link",
                &made,
                vec!["ln", "-s", "x", &made],
                "create the symbolic link",
            ),
            ("touch ringwall.toml", "create", &project, vec!["touch", "ringwall.toml"], "create"),
        ] {
            let script = script.replace("SECRET", &secret).replace("MADE", &made);
            let ran = env.run(&[], &script);
            assert_eq!(ran.code, Some(77), "{script}: {ran:?}");
            let violations = ran.violations();
            assert_eq!(violations.len(), 1, "{script}: {ran:?}");
            let violation = violations[0];
            assert_eq!(violation["class"], "stop", "{script}: {ran:?}");
            assert_eq!(violation["operation"], operation, "{script}: {ran:?}");
            assert_eq!(violation["path"], **path, "{script}: {ran:?}");
            assert_eq!(violation["program"]["argv"], serde_json::json!(argv), "{script}: {ran:?}");
            let program = violation["program"]["path"].as_str().unwrap();
            assert!(program.ends_with(&format!("bin/{}", argv[0])), "{script}: {ran:?}");
            assert!(violation["program"]["pid"].as_u64().unwrap() > 1, "{script}: {ran:?}");
            for field in ["rule", "origin", "text", "remedy", "run", "time", "wall"] {
                assert!(!violation[field].is_null(), "{field}: {ran:?}");
            }
            let line = ran.stderr.lines().find(|line| line.starts_with("error: stopped: `"));
            let line = line.unwrap_or_else(|| panic!("{script}: {ran:?}"));
            assert!(line.contains(argv[0]) && line.contains(words), "{line}");
            assert!(line.ends_with(&**path), "{line}");
            let stopped = ran.events("stopped")[0];
            assert_eq!((&stopped["exit"], &stopped["end"]), (&77.into(), &"violation".into()));
            assert_eq!(stopped["violations"]["stop"], 1, "{ran:?}");
        }
        assert_eq!(env.read("outside/secret.txt"), "SECRET-OUTSIDE\n");
        assert!(env.path("project/hello.txt").exists() && !env.path("outside/made.txt").exists());
    }
}

#[test]
fn looking_for_what_is_not_there_stops_nothing() {
    for who in users() {
        let env = TestEnv::new(who);
        for (file, text) in [
            ("home/.bashrc", "echo BASHRC\n"),
            ("home/.npmrc", "//registry.example.org/:_authToken=SECRET\n"),
            ("package.json", "{}\n"),
            (".git/config", "[core]\n"),
            ("home/.config/git/config", "[user]\n\tname = Other\n"),
        ] {
            env.write(file, text);
        }
        let outside = env.path("outside").display().to_string();
        let project = env.project().display().to_string();
        let ran = env.run(
            &["--workspace", &project],
            &format!(
                "stat ~/.gitconfig ~/.bashrc ~/.npmrc ~/.vimrc ~/nothing ../package.json
                cat ~/.bashrc ~/.npmrc ../package.json ../.git/config /nowhere {outside}/nothing
                test -e {outside}/secret.txt; test -r ~/.ssh/id_ed25519; ls -d ~/.ssh {outside}
                ls -la ~ / /etc .. > /dev/null; cd ~; cd ..; find . -maxdepth 1 > /dev/null
                bash -i -l -c true; vim --version > /dev/null; command -v rg nothing; echo end"
            ),
        );
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.violations().is_empty() && ran.stdout.ends_with("end\n"), "{ran:?}");
        let seen = |text: &str| ran.stdout.contains(text) || ran.stderr.contains(text);
        assert!(!seen("BASHRC") && !seen("SECRET"), "{ran:?}");
        let probes = ran.events("violation");
        let probed =
            |name: &str| probes.iter().any(|event| event["path"].as_str().unwrap().ends_with(name));
        assert!(probed(".bashrc") && probed("package.json"), "{ran:?}");
    }
}

#[test]
fn a_phase_lets_its_own_file_be_written_and_nothing_else() {
    for who in users() {
        for (phase, file) in [("plan", "TODO.md"), ("learn", "AGENTS.md")] {
            let env = TestEnv::new(who);
            let options = ["--phase", phase];
            for script in ["echo x > hello.txt", "echo x > new.txt", "rm hello.txt", "mkdir new"] {
                let ran = env.run(&options, script);
                assert_eq!(ran.code, Some(77), "{script}: {ran:?}");
                assert!(ran.stderr.contains("level `readonly`"), "{script}: {ran:?}");
            }
            // Absent, then there.
            let script =
                format!("cat hello.txt; echo one > {file} && echo two >> {file} && cat {file}");
            let ran = env.run(&options, &script);
            let went = (ran.code, ran.stdout.as_str());
            assert_eq!(went, (Some(0), "hello\none\ntwo\n"), "{phase}: {ran:?}");
            assert!(ran.violations().is_empty(), "{ran:?}");
            let path = format!("project/{file}");
            assert_eq!(env.read(&path), "one\ntwo\n");
            let ran = env.run(&options, &format!("cat {file}; echo three >> {file}; echo x > y"));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), "one\ntwo\n"), "{ran:?}");
            assert_eq!(env.read(&path), "one\ntwo\nthree\n");
            let ran = env.run(&options, &format!("echo new > {file}"));
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert_eq!(env.read(&path), "new\n");
            // It is that file, and not whatever has its name.
            let ran = env.run(&options, &format!("mkdir -p /tmp/x; echo x > sub-{file}"));
            assert_eq!(ran.code, Some(77), "{ran:?}");
            assert_eq!(env.read("project/hello.txt"), "hello\n");
            assert!(!env.path("project/y").exists());
        }
        let env = TestEnv::new(who);
        let ran = env.run(&["--phase", "build"], "echo x > new.txt && cat new.txt");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "x\n"), "{ran:?}");
        // A phase's file that a link leads out of the workspace is no way out.
        std::os::unix::fs::symlink(env.path("outside/secret.txt"), env.path("project/TODO.md"))
            .unwrap();
        let ran = env.run(&["--phase", "plan"], "echo PLANTED > TODO.md");
        assert_eq!(ran.code, Some(77), "{ran:?}");
        assert_eq!(env.read("outside/secret.txt"), "SECRET-OUTSIDE\n");
    }
}

#[test]
fn a_level_gives_what_it_says() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/notes.txt", "notes\n");
        let home = "cat ~/notes.txt";
        let outside = format!("cat {}", env.path("outside/secret.txt").display());
        let beyond = format!("echo x > {}", env.path("outside/made.txt").display());
        let codes = |level: &str| {
            [
                "cat hello.txt",
                "echo x > made.txt",
                home,
                &outside,
                "echo x > ~/made.txt",
                &beyond,
                "echo x > ringwall.toml",
                "mkdir -p sub && echo x > sub/.envrc",
            ]
            .map(|script| env.run(&["--level", level], script).code)
        };
        let (done, stop) = (Some(0), Some(77));
        assert_eq!(codes("readonly"), [done, stop, stop, stop, stop, stop, stop, stop]);
        for level in ["readwrite", "network"] {
            assert_eq!(codes(level), [done, done, stop, stop, stop, stop, stop, stop], "{level}");
        }
        // What lies in /tmp is outside at every level: a run has its own.
        let seen = if env.home().starts_with("/tmp") { stop } else { done };
        assert_eq!(codes("full"), [done, done, done, seen, done, stop, stop, stop]);
        assert_eq!(env.read("home/made.txt"), "x\n");
        assert!(!env.path("outside/made.txt").exists() && !env.path("project/sub/.envrc").exists());
        let ran = env.run(&["--level", "nothing"], "true");
        assert_eq!(ran.code, Some(64), "{ran:?}");
    }
}

/// A configuration without its comments.
fn entries(config: &str) -> String {
    config.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn learning_prints_what_would_have_been_enough() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/notes/one.txt", "one\n");
        env.write("project/.claude/settings.json", "{}\n");
        let outside = env.path("outside").display().to_string();
        let wanted = format!(
            "cat {outside}/secret.txt; ls ~/notes; cat ~/notes/one.txt; echo x > {outside}/made.txt
            mkdir -p {outside}/new && echo x > {outside}/new/file"
        );
        let protected = "echo x > ringwall.toml; echo x > .claude/settings.json; echo x > .envrc
            mkdir -p sub/.cursor; echo x > sub/.cursor/mcp.json; echo x > ~/.bashrc; echo x > ~/.ssh/rc";
        let ran = env.run(&["--learn"], &format!("{protected}\n{wanted}\necho end"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "end\n"), "{ran:?}");
        assert!(ran.violations().iter().all(|event| event["class"] == "deny"), "{ran:?}");
        let (_, learned) = ran.stderr.split_once("\n[filesystem]\n").unwrap();
        let config = format!("[filesystem]\n{learned}");
        for name in ["ringwall.toml", "settings.json", ".envrc", ".cursor", ".bashrc"] {
            assert!(!entries(&config).contains(name), "{config}");
            assert!(config.contains(name), "{config}");
        }
        for name in ["home/notes\"", "allow_write = [\"", "/outside\"]"] {
            assert!(entries(&config).contains(name), "{config}");
        }
        // What a listed directory covers needs no line of its own.
        assert!(!config.contains("one.txt"), "{config}");
        env.write("home/.config/ringwall/ringwall.toml", &config);
        let ran = env.run(&[], &wanted);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.violations().is_empty(), "{ran:?}");
        assert_eq!(ran.stdout, "SECRET-OUTSIDE\none.txt\none\n");
        assert_eq!(env.read("outside/made.txt") + &env.read("outside/new/file"), "x\nx\n");
        let ran = env.run(&["--learn"], &wanted);
        assert!(ran.stderr.contains("# nothing more is needed"), "{ran:?}");
        let ran = env.run(&[], protected);
        assert_eq!(ran.code, Some(77), "{ran:?}");
    }
}

#[test]
fn a_project_file_widens_only_once_it_is_trusted() {
    for who in users() {
        let env = TestEnv::new(who);
        let secret = env.path("outside/secret.txt").display().to_string();
        let narrow = "[filesystem]\ndeny_read = [\"hello.txt\"]\n";
        env.write("project/ringwall.toml", narrow);
        let ran = env.run(&[], "cat hello.txt");
        assert_eq!(ran.code, Some(77), "{ran:?}");
        assert!(ran.stderr.contains("filesystem.deny_read"), "{ran:?}");
        for line in [
            format!("[filesystem]\nallow_read = [\"{secret}\"]\n"),
            "level = \"full\"\n".to_owned(),
            "[violation]\naction = \"deny\"\n".to_owned(),
            "[environment]\npass = [\"AWS_*\"]\n".to_owned(),
        ] {
            env.write("project/ringwall.toml", &line);
            let ran = env.run(&[], &format!("touch ran; cat {secret}"));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(78), ""), "{line}: {ran:?}");
            assert!(!env.path("project/ran").exists(), "{line}");
            let said = ran.stderr.contains("`ringwall trust`") && ran.stderr.contains("hint:");
            assert!(said, "{line}: {ran:?}");
            let key = line.lines().last().unwrap().split(' ').next().unwrap();
            assert!(ran.stderr.contains(key), "{key}: {ran:?}");
        }
        // Trust is for the content: any other is another.
        env.write("project/ringwall.toml", &format!("[filesystem]\nallow_read = [\"{secret}\"]\n"));
        assert!(env.ringwall(&["trust", "--yes"]).status.success());
        let ran = env.run(&[], &format!("cat {secret}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "SECRET-OUTSIDE\n"), "{ran:?}");
        env.write("project/ringwall.toml", "[filesystem]\nallow_read = [\"~\"]\n");
        assert_eq!(env.run(&[], "true").code, Some(78));
        // And a run cannot give it to itself.
        let own = env.binary().display().to_string();
        std::fs::remove_file(env.path("project/ringwall.toml")).unwrap();
        let ran =
            env.run(&["--allow-read", &own], &format!("{own} grant read {secret}; cat {secret}"));
        assert_eq!(ran.code, Some(77), "{ran:?}");
        assert!(!env.path("project/ringwall.toml").exists());
    }
}
