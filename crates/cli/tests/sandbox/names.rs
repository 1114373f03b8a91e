//! Names that run something later: those that act without being asked cannot be written, those that
//! choose a toolchain cannot name a program, and what the user's own build runs is listed.

use fixtures::{RunOutput, TestEnv, users};

/// Each is read by a program that the user did not ask to run anything.
const ACTING: &[&str] = &[
    ".hg/hgrc",
    ".jj/repo/config.toml",
    ".qwen/settings.json",
    ".kiro/settings/mcp.json",
    ".kiro/hooks/save.kiro.hook",
    ".amp/settings.json",
    ".factory/settings.json",
    ".windsurf/hooks.json",
    ".clinerules/hooks/TaskStart",
    "mise.toml",
    ".envrc",
    ".mcp.json",
    ".claude/settings.json",
    ".cursor/mcp.json",
    ".bashrc",
    "sub/.inputrc",
    ".bash_aliases",
    ".ssh/rc",
    ".xsessionrc",
    "_darcs/prefs/defaults",
    ".amazonq/mcp.json",
    ".pam_environment",
];

/// Each acts when the user does something with a tool.
const LATER: &[&str] = &[
    ".helix/languages.toml",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".husky/pre-commit",
    ".pnpmfile.cjs",
    ".yarn/releases/yarn.cjs",
    ".Rprofile",
    "sub/.RData",
    ".ghci",
    ".iex.exs",
    ".pdbrc",
    ".irbrc",
    ".gdbinit",
    ".vimrc",
    "web.sublime-project",
    ".vscode/settings.json",
    ".devcontainer/devcontainer.json",
    ".cargo/config.toml",
    ".cargo/env",
    ".vim/vimrc",
    ".config/nvim/init.lua",
    ".emacs.d/init.el",
    ".lazygit.yml",
    ".vs/tasks.vs.json",
];

/// What agents write all the time, or what acts on no one.
const ORDINARY: &[&str] = &[
    "Makefile",
    "package.json",
    "rust-toolchain.toml",
    ".tool-versions",
    ".npmrc",
    "AGENTS.md",
    ".kiro/specs/x/design.md",
    ".jj/repo/store/type",
    ".yarn/cache/x.zip",
    ".amazonq/rules/style.md",
    ".vim/notes",
    ".python-version",
    "node_modules/x/.husky/pre-commit",
    "node_modules/x/.pre-commit-config.yaml",
];

fn write_all(names: &[&str]) -> String {
    let write = |name: &&str| {
        format!("mkdir -p \"$(dirname {name})\"; echo stable > {name} 2> /dev/null\n")
    };
    names.iter().map(write).collect::<String>() + "true"
}

fn lists(ran: &RunOutput, path: &str, change: &str) -> bool {
    let events = ran.events("build_files_changed");
    let files = events.iter().flat_map(|event| event["files"].as_array().unwrap());
    let ends = |file: &&serde_json::Value| file["path"].as_str().unwrap().ends_with(path);
    files.filter(ends).any(|file| file["change"] == change)
}

#[test]
fn names_that_act_without_being_asked_are_not_written() {
    for who in users() {
        for options in [&[][..], &["--attribution", "notify"]] {
            let env = TestEnv::new(who);
            env.configure("version = 1\n[violation]\naction = \"deny\"\n");
            // Half of them exist; these can be neither changed nor replaced.
            for name in ACTING.iter().step_by(2) {
                env.write(&format!("project/{name}"), "KEPT\n");
            }
            let replace: String = ACTING
                .iter()
                .map(|name| format!("echo stable > new; mv -f new {name} 2> /dev/null\n"))
                .collect();
            let ran = env.run(options, &format!("{}\n{replace}true", write_all(ACTING)));
            assert_eq!(ran.code, Some(0), "{ran:?}");
            for (number, name) in ACTING.iter().enumerate() {
                let text = std::fs::read_to_string(env.path(&format!("project/{name}"))).ok();
                let expected = (number % 2 == 0).then_some("KEPT\n");
                assert_eq!(text.as_deref(), expected, "{name}: {ran:?}");
            }
            assert!(ran.events("tampering").is_empty(), "{ran:?}");
        }
    }
}

#[test]
fn names_that_act_later_are_as_before_at_the_end_of_a_run() {
    for who in users() {
        for options in [&[][..], &["--attribution", "notify"], &["--attribution", "inferred"]] {
            let env = TestEnv::new(who);
            for name in LATER.iter().step_by(2) {
                env.write(&format!("project/{name}"), "KEPT\n");
            }
            let seen = format!("{}\ncat {}", write_all(LATER), LATER.join(" "));
            let ran = env.run(options, &seen);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert_eq!(ran.stdout, "stable\n".repeat(LATER.len()), "the run sees what it wrote");
            for (number, name) in LATER.iter().enumerate() {
                let text = std::fs::read_to_string(env.path(&format!("project/{name}"))).ok();
                let expected = (number % 2 == 0).then_some("KEPT\n");
                assert_eq!(text.as_deref(), expected, "{name}: {ran:?}");
            }
            let kept = ran.events("kept_aside");
            assert_eq!(kept[0]["files"].as_array().unwrap().len(), LATER.len(), "{ran:?}");
            assert!(ran.violations().is_empty() && ran.events("tampering").is_empty(), "{ran:?}");
            // Those that existed are not lost, either.
            let ran = env.run(options, &format!("rm -rf {}", LATER.join(" ")));
            for name in LATER.iter().step_by(2) {
                assert_eq!(env.read(&format!("project/{name}")), "KEPT\n", "{name}: {ran:?}");
            }
        }
    }
}

#[test]
fn ordinary_names_beside_them_are_written() {
    for who in users() {
        let env = TestEnv::new(who);
        let ran = env.run(&[], &write_all(ORDINARY));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for name in ORDINARY {
            assert_eq!(env.read(&format!("project/{name}")), "stable\n", "{ran:?}");
        }
    }
}

/// Start files of shells, sessions and editors, where a run can write in the home directory.
#[test]
fn start_files_are_not_written_in_the_home_directory() {
    let names = [
        ".bash_aliases",
        ".cshrc",
        ".kshrc",
        ".cargo/env",
        ".xsessionrc",
        ".pam_environment",
        ".emacs",
        ".emacs.d/init.el",
        ".vim/vimrc",
        ".config/nvim/init.lua",
        ".ssh/authorized_keys",
        ".ssh/config",
        ".ssh/rc",
        ".local/lib/python3.11/site-packages/a.pth",
    ];
    for who in users() {
        let env = TestEnv::new(who);
        env.configure("[violation]\naction = \"deny\"\n");
        let ran = env.run(&["--level", "full"], &format!("cd ~; {}", write_all(&names)));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for name in names {
            assert!(!env.path(&format!("home/{name}")).exists(), "{name}: {ran:?}");
        }
        // A home directory of the run's own is the run's.
        let ran = env.run(
            &[],
            "mkdir -p ~/.cargo; echo x > ~/.cargo/env; cat ~/.cargo/env
            d=~/.local/lib/python3.11/site-packages; mkdir -p $d; echo y > $d/a.pth; cat $d/a.pth",
        );
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "x\ny\n"), "{ran:?}");
    }
}

#[test]
fn a_toolchain_is_chosen_by_version_and_not_by_path() {
    let armed = "mkdir -p sub; printf '[toolchain]\\npath = \"evil\"\\n' > rust-toolchain.toml
        echo 'ruby path:./evil' > sub/.tool-versions; ln -s sub/.tool-versions Rust-Toolchain
        echo 'python ../../../evil' > .tool-versions; echo ../../../evil > .python-version";
    for who in users() {
        let env = TestEnv::new(who);
        let ran = env.run(&[], armed);
        for name in [
            "rust-toolchain.toml",
            "sub/.tool-versions",
            "Rust-Toolchain",
            ".tool-versions",
            ".python-version",
        ] {
            let gone = env.path(&format!("project/{name}")).symlink_metadata().is_err();
            assert!(gone, "{name}: {ran:?}");
        }
        assert_eq!(ran.events("tampering").len(), 5, "{ran:?}");
        // An ordinary one can be changed, and what it becomes is judged.
        let env = TestEnv::new(who);
        let file = env.write("project/rust-toolchain.toml", "[toolchain]\nchannel = \"1.90\"\n");
        let ran = env.run(&[], "sed -i s/1.90/1.91/ rust-toolchain.toml");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(env.read("project/rust-toolchain.toml").contains("1.91"), "{ran:?}");
        let ran = env.run(&[], "echo 'path = \"evil\"' >> rust-toolchain.toml");
        assert!(file.symlink_metadata().is_err(), "{ran:?}");
        // One that names a path belongs to the user, and stays what it is.
        let text = "[toolchain]\npath = \"/opt/mine\"\n";
        env.write("project/rust-toolchain.toml", text);
        let ran = env.run(&[], "echo > rust-toolchain.toml; rm -f rust-toolchain.toml");
        assert_eq!(env.read("project/rust-toolchain.toml"), text, "{ran:?}");
        assert_eq!(ran.code, Some(77), "{ran:?}");
    }
}

#[test]
fn what_the_users_build_runs_is_listed_at_the_end() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("project/Makefile", "all:\n");
        env.write("project/deep/setup.py", "x\n");
        env.write("project/go.mod", "module x\n");
        env.write("project/node_modules/.bin/tsc", "x\n");
        let ran = env.run(&[], "cat Makefile; echo x > src.c");
        assert!(ran.events("build_files_changed").is_empty(), "{ran:?}");
        assert!(!ran.stderr.contains("your own commands"), "{ran:?}");
        // As many new ones as one likes do not hide that one changed. Times can be set back.
        let script = "for n in {1..1500}; do echo > $n.config.js; done; mkdir -p .github/workflows
            echo > .github/workflows/ci.yml; touch -r Makefile then; echo 'x:' > Makefile
            touch -r then Makefile; rm deep/setup.py; echo y > node_modules/.bin/tsc; echo {} > package.json";
        let ran = env.run(&[], script);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for (path, change) in [
            ("project/Makefile", "changed"),
            ("project/deep/setup.py", "removed"),
            ("project/node_modules/.bin", "changed"),
            ("project/package.json", "created"),
            ("project/.github/workflows", "created"),
        ] {
            assert!(lists(&ran, path, change), "{path}: {}", ran.stderr);
        }
        assert!(!lists(&ran, "project/go.mod", "changed"), "{}", ran.stderr);
        let events = ran.events("build_files_changed");
        let listed = events[0]["files"].as_array().unwrap();
        assert_eq!((listed.len(), &events[0]["more"]), (1000, &505.into()));
        assert_eq!((&listed[0]["acts"], events.len()), (&"make".into(), 1));
        let note = "changed files that your own commands run: Makefile, node_modules/.bin, \
                    deep/setup.py, .github/workflows, package.json, ";
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        assert!(ran.stderr.contains("and 1500 more"), "{}", ran.stderr);
        // It comes before the end, and no run ends without its last event.
        assert_eq!(ran.events.last().unwrap()["event"], "stopped", "{}", ran.stderr);
    }
}
