//! Projects and homes that are laid out to make the wall give more than it was told to.

use std::os::unix::fs::symlink;

use fixtures::{RunOutput, TestEnv, users};

const WATCHED: &[&str] = &[];
const UNWATCHED: &[&str] = &["--attribution", "inferred"];

fn moved_aside(ran: &RunOutput, name: &str) -> bool {
    let path = |event: &&serde_json::Value| event["path"].as_str().unwrap().ends_with(name);
    ran.events("tampering").into_iter().any(|event| path(&event) && !event["moved_to"].is_null())
}

#[test]
fn a_checkout_that_calls_itself_a_worktree_gets_nothing_around_it() {
    for who in users() {
        let env = TestEnv::new(who);
        std::fs::remove_dir_all(env.path("project/.git")).unwrap_or_default();
        env.write("secret", "SECRET\n");
        env.write("project/HEAD", "ref: refs/heads/main\n");
        for (git, common) in [(".", "../.."), (".", ".."), ("x", "../.."), ("worktrees/w", "../..")]
        {
            env.write("project/.git", &format!("gitdir: {git}\n"));
            let back = env.project().join(".git").display().to_string();
            for (name, text) in
                [("commondir", common), ("gitdir", &back), ("HEAD", "ref: refs/heads/m")]
            {
                env.write(&format!("project/{git}/{name}"), text);
            }
            let ran = env.run(&["--level", "readonly"], "cat ../secret ../home/.ssh/id_ed25519");
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{git} {common}: {ran:?}");
            let ran = env.run(&["--level", "readonly"], "echo x > planted");
            assert!(!env.path("project/planted").exists(), "{git} {common}: {ran:?}");
            assert!(!env.path("refs").exists() && !env.path("logs").exists(), "{git} {common}");
        }
    }
}

#[test]
fn a_link_on_the_search_path_grants_nothing() {
    for who in users() {
        let env = TestEnv::new(who);
        let tools = env.path("project/bin");
        std::fs::create_dir_all(&tools).unwrap();
        let key = env.home().join(".ssh/id_ed25519");
        for name in ["bash", "cat"] {
            symlink(&key, tools.join(name)).unwrap();
        }
        env.own();
        let path = format!("{}:/usr/bin:/bin", tools.display());
        for program in ["bash", "bin/cat"] {
            let mut command = env.command(env.binary());
            command.args(["run", "--", program, "-c", &format!("cat {}", key.display())]);
            let output = command.env("PATH", &path).output().unwrap();
            assert!(!output.status.success() && output.stdout.is_empty(), "{program}: {output:?}");
        }
        let plan = env
            .command(env.binary())
            .env("PATH", &path)
            .args(["run", "--plan", "--", "bash"])
            .output();
        let plan = String::from_utf8_lossy(&plan.unwrap().stdout).into_owned();
        assert!(!plan.contains(".ssh"), "{plan}");
    }
}

#[test]
fn a_link_called_git_is_moved_aside() {
    for who in users() {
        let env = TestEnv::new(who);
        let ran = env.run(
            UNWATCHED,
            "mkdir -p sub other/objects other/refs && cp -r .git/HEAD other/ 2> /dev/null
            ln -s ../other sub/.git",
        );
        assert!(moved_aside(&ran, "sub/.git"), "{ran:?}");
        assert!(env.path("project/sub/.git").symlink_metadata().is_err());
    }
}

#[test]
fn what_a_dangling_protected_name_leads_to_is_moved_aside() {
    for who in users() {
        let env = TestEnv::new(who);
        symlink("real.json", env.path("project/.mcp.json")).unwrap();
        symlink("../outside/later.json", env.path("project/.envrc")).unwrap();
        let ran = env.run(UNWATCHED, "echo '{}' > real.json");
        assert!(moved_aside(&ran, "real.json"), "{ran:?}");
        // Where the run cannot write, it was somebody else.
        let mut host = env.command("/bin/bash");
        let script =
            "until [ -e ready ]; do sleep 0.05; done; echo > ../outside/later.json; touch made";
        let mut host = host.args(["-c", script]).spawn().unwrap();
        let ran = env.run(&[], "touch ready; until [ -e made ]; do sleep 0.05; done");
        assert!(host.wait().unwrap().success());
        assert!(ran.events("tampering").is_empty(), "{ran:?}");
        assert!(env.path("outside/later.json").exists());
    }
}

#[test]
fn what_is_hidden_is_protected_all_the_same() {
    for who in users() {
        let env = TestEnv::new(who);
        env.configure("[filesystem]\ndeny_read = [\"**/.env*\"]\n");
        let ran = env.run(UNWATCHED, "echo evil > .envrc");
        let gone = env.path("project/.envrc").symlink_metadata().is_err();
        assert!(gone || moved_aside(&ran, ".envrc"), "{ran:?}");
    }
}

#[test]
fn nothing_gives_ringwalls_own_files_away() {
    for who in users() {
        let env = TestEnv::new(who);
        env.run(&[], "true");
        for (path, text) in [("audit/kept", "KEPT\n"), ("trust/kept", "KEPT\n")] {
            env.write(&format!("home/.local/state/ringwall/{path}"), text);
        }
        for rules in [
            "[filesystem]\nallow_write = [\"~/.local/state/*\"]",
            "[filesystem]\nallow_write = [\"~/.local/state/ringwall\"]",
            "[filesystem]\nallow_write = [\"~/.local/state/ringwall/audit\", \"~/.local/state/ringwall/trust\"]",
            "[filesystem]\nallow_write = [\"~\"]",
            "level = \"full\"\n[filesystem]\ndeny_read = [\"~/.local/state/ringwall/audit\"]",
        ] {
            env.configure(&format!("{rules}\n"));
            for attribution in [WATCHED, UNWATCHED] {
                let ran = env.run(
                    attribution,
                    "cd ~/.local/state/ringwall; echo x > trust/new; echo x > audit/kept
                    rm -rf audit; echo x > ~/.config/ringwall/new; mv trust trust2",
                );
                for kept in ["audit/kept", "trust/kept"] {
                    let kept = env.read(&format!("home/.local/state/ringwall/{kept}"));
                    assert_eq!(kept, "KEPT\n", "{rules}: {ran:?}");
                }
                for new in [".local/state/ringwall/trust/new", ".config/ringwall/new"] {
                    assert!(!env.path(&format!("home/{new}")).exists(), "{rules}: {ran:?}");
                }
            }
        }
    }
}

#[test]
fn another_checkout_in_the_workspace_is_not_written() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(
            "git init -q -b main . && git add -A && git commit -qm first && git worktree add -q wt",
        );
        for attribution in [WATCHED, UNWATCHED] {
            let ran = env.run(attribution, "echo x > wt/planted");
            assert_ne!(ran.code, Some(0), "{ran:?}");
            assert!(!env.path("project/wt/planted").exists(), "{ran:?}");
        }
    }
}

#[test]
fn credentials_that_are_links_are_closed_where_they_lie() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.cargo/private/token", "TOKEN\n");
        symlink("private/token", env.path("home/.cargo/credentials.toml")).unwrap();
        for path in ["~/.cargo/credentials.toml", "~/.cargo/private/token"] {
            let ran = env.run(&[], &format!("cat {path}"));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{path}: {ran:?}");
        }
        // A pattern happens to match it, its name means it.
        env.configure("[filesystem]\nallow_read = [\"~/.cargo/*\"]\n");
        env.write("home/.cargo/credentials", "TOKEN\n");
        for path in ["~/.cargo/private/token", "~/.cargo/credentials"] {
            let ran = env.run(&[], &format!("cat {path}"));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{path}: {ran:?}");
        }
        env.configure("");
        // A toolchain that is elsewhere as a whole.
        env.write("outside/cargo/credentials.toml", "TOKEN\n");
        std::fs::remove_dir_all(env.path("home/.cargo")).unwrap();
        symlink(env.path("outside/cargo"), env.path("home/.cargo")).unwrap();
        let ran = env.run(&[], "true");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let cargo = env.path("outside/cargo").display().to_string();
        let ran = env.run(&["--allow-read", &cargo], "cat ~/.cargo/credentials.toml");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{ran:?}");
    }
}

#[test]
fn at_level_full_what_is_protected_in_the_home_stays() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare("mkdir ~/repo && git init -q ~/repo");
        env.write("home/.bashrc", "KEPT\n");
        env.write("home/notes/kept", "KEPT\n");
        env.configure("level = \"full\"\n[filesystem]\ndeny_write = [\"~/notes\"]\n");
        for attribution in [WATCHED, UNWATCHED] {
            for file in [".bashrc", "notes/kept"] {
                let ran = env.run(attribution, &format!("echo x > ~/{file}"));
                assert_ne!(ran.code, Some(0), "{file}: {ran:?}");
                assert_eq!(env.read(&format!("home/{file}")), "KEPT\n", "{file}: {ran:?}");
            }
        }
        let before = env.read("home/repo/.git/config");
        for script in [
            "printf '[core]\\n\\tfsmonitor = evil\\n' >> ~/repo/.git/config",
            "rm ~/repo/.git/config",
            "mkdir ~/h && echo x > ~/h/pre-commit && rm -rf ~/repo/.git/hooks && mv ~/h ~/repo/.git/hooks",
        ] {
            let ran = env.run(&[], script);
            assert_eq!(ran.code, Some(77), "{script}: {ran:?}");
            assert_eq!(env.read("home/repo/.git/config"), before, "{script}");
            assert!(!env.path("home/repo/.git/hooks/pre-commit").exists(), "{script}");
        }
        // One of its own can be made as ever, and is looked at afterwards.
        let ran = env.run(&[], "git init -q ~/mine && cd ~/mine && git config user.name me");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.events("tampering").is_empty(), "{ran:?}");
        let ran = env.run(
            &[],
            "git init -q ~/evil && git -C ~/evil config core.fsmonitor evil
            mv ~/mine ~/old && cp -r ~/old ~/mine && git -C ~/mine config core.fsmonitor evil",
        );
        for name in ["evil/.git/config", "mine/.git/config"] {
            let gone = env.home().join(name).symlink_metadata().is_err();
            assert!(gone && moved_aside(&ran, name), "{name}: {ran:?}");
        }
        // A directory that is moved into a repository could hold links.
        let hooks = "mkdir ~/g && echo x > ~/g/pre-commit && rm -rf ~/old/.git/hooks && mv ~/g ~/old/.git/hooks";
        let ran = env.run(&[], hooks);
        assert_eq!(ran.code, Some(77), "{ran:?}");
        assert!(env.home().join("old/.git/hooks/pre-commit").symlink_metadata().is_err());
    }
}

#[test]
fn ringwalls_own_directories_cannot_be_made_by_a_run() {
    for who in users() {
        for (options, file) in [
            (&["--level", "full"][..], "home/.local/state/ringwall/trust/new"),
            (
                &["--level", "full", "--attribution", "inferred"],
                "home/.config/ringwall/ringwall.toml",
            ),
            (&["--allow-write", "../home"], "home/.local/state/ringwall/trust/new"),
        ] {
            let env = TestEnv::new(who);
            std::fs::remove_dir_all(env.path("home/.local")).unwrap_or_default();
            std::fs::remove_dir_all(env.path("home/.config")).unwrap_or_default();
            let dir = env.path(file).parent().unwrap().display().to_string();
            let ran =
                env.run(options, &format!("mkdir -p {dir}; echo x > {}", env.path(file).display()));
            assert!(!env.path(file).exists(), "{options:?}: {ran:?}");
            assert!(!env.path("home/.config/ringwall").exists(), "{options:?}: {ran:?}");
        }
    }
}

#[test]
fn places_behind_links_do_not_keep_the_wall_from_coming_up() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/dotfiles/claude/settings.json", "KEPT\n");
        env.write("outside/nvm/a.pem", "PEM\n");
        symlink("dotfiles/claude", env.path("home/.claude")).unwrap();
        symlink(env.path("outside/nvm"), env.path("home/.nvm")).unwrap();
        std::fs::create_dir_all(env.path("outside/state")).unwrap();
        std::fs::create_dir_all(env.path("home/.local")).unwrap();
        symlink(env.path("outside/state"), env.path("home/.local/state")).unwrap();
        env.own();
        env.configure("[filesystem]\ndeny_read = [\"~/**/*.pem\"]\n");
        for level in ["readwrite", "full"] {
            for attribution in ["tripwire", "inferred"] {
                let options = ["--level", level, "--attribution", attribution];
                let ran = env.run(&options, "true");
                assert_eq!(ran.code, Some(0), "{level} {attribution}: {ran:?}");
                env.run(&options, "echo x > ~/.claude/settings.json");
                let kept = env.read("home/dotfiles/claude/settings.json");
                assert_eq!(kept, "KEPT\n", "{level} {attribution}");
            }
        }
    }
}

#[test]
fn repositories_can_be_copied_and_set_up() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(
            "git init -q -b main ../lib && cd ../lib && git commit -q --allow-empty -m one",
        );
        let lib = env.path("lib").display().to_string();
        let ran = env.run(
            &["--allow-read", &lib],
            &format!(
                "set -ex
                git clone -q {lib} one && cp -a one two && tar cf - one | tar xf - -C two
                git clone -q --mirror {lib} mirror.git
                git -C one config push.default simple && git -C one config core.autocrlf input"
            ),
        );
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.events("tampering").is_empty(), "{ran:?}");
        // Looking writes nothing.
        env.prepare("rm -rf one two mirror.git && git init -q -b main . && git add -A && git commit -qm first",
        );
        env.prepare("sleep 0.01; touch hello.txt");
        let ran = env.run(&["--level", "readonly"], "git status --short");
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

#[test]
fn a_home_whose_name_is_no_text_is_a_home() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(
            "mkdir -p ../$'odd\\377 home\\n'/.ssh && echo key > ../$'odd\\377 home\\n'/.ssh/id",
        );
        let run =
            format!("HOME=$(realpath ..)/$'odd\\377 home\\n' {} run --", env.binary().display());
        // The first one makes the log, which is what the second must not reach.
        for _ in 0..2 {
            let ran = env.bare(&format!("{run} bash -c 'echo fine'"));
            assert_eq!(String::from_utf8_lossy(&ran.stdout), "fine\n", "{ran:?}");
        }
        let ran = env.bare(&format!("{run} bash -c 'cat ~/.ssh/id; echo next'"));
        assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(77), &b""[..]), "{ran:?}");
    }
}
