//! What runs write in toolchains and caches is kept for their workspace, and reaches nothing else.

use std::path::PathBuf;

use fixtures::{RunOutput, TestEnv, eventually, users};

/// Both ways to tell what was tried.
const ATTRIBUTIONS: [&str; 2] = ["tripwire", "notify"];

fn prepare(env: &TestEnv) {
    for (path, text) in [
        ("home/.cargo/registry/index/a", "host\n"),
        ("home/.cargo/credentials.toml", "CANARY"),
        ("home/.cache/pip/wheel", "host\n"),
        ("home/.local/share/pnpm/rc", "auth=CANARY\nkept=1\n"),
        ("home/.local/share/pnpm/store/x", "host\n"),
        ("other/file", ""),
    ] {
        env.write(path, text);
    }
}

fn assert_fine(ran: &RunOutput) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.violations().is_empty() && ran.events("tampering").is_empty(), "{ran:?}");
}

/// The directory of the only layer.
fn layer(env: &TestEnv) -> PathBuf {
    let layers = env.path("home/.local/state/ringwall/layers");
    let mut dirs: Vec<_> =
        std::fs::read_dir(layers).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(dirs.len(), 1, "{dirs:?}");
    dirs.remove(0)
}

const WRITE: &str = r"
set -e
echo changed >> ~/.cargo/registry/index/a; echo new > ~/.cargo/registry/new
mkdir -p ~/.cache/tool ~/.cargo/bin; echo new > ~/.cache/tool/x; echo new > ~/.cargo/bin/program
rm ~/.cache/pip/wheel; echo new > ~/.local/share/pnpm/store/y";
const READ: &str = r"
cat ~/.cargo/registry/index/a ~/.cargo/registry/new ~/.cache/tool/x ~/.cargo/bin/program \
    ~/.local/share/pnpm/store/y 2> /dev/null
[ -e ~/.cache/pip/wheel ] && echo wheel; true";
const HOST: &str = "host\nwheel\n";
const CHANGED: &str = "host\nchanged\nnew\nnew\nnew\nnew\n";

#[test]
fn what_a_run_writes_lasts_for_its_workspace_alone() {
    for (who, attribution) in users().iter().flat_map(|who| ATTRIBUTIONS.map(|it| (*who, it))) {
        let env = TestEnv::new(who);
        prepare(&env);
        let options = |more: &[&'static str]| {
            let mut options = vec!["--attribution", attribution];
            options.extend(more);
            options
        };
        assert_fine(&env.run(&options(&[]), WRITE));
        let read = |more: &[&'static str]| {
            let ran = env.run(&options(more), READ);
            assert_fine(&ran);
            let missing = ran.events("started")[0]["missing"].to_string();
            assert!(!missing.contains("private layer"), "{missing}");
            ran.stdout
        };
        assert_eq!(read(&[]), CHANGED);
        assert_eq!(read(&["--fresh"]), HOST);
        let other = env.path("other").display().to_string().leak();
        assert_eq!(read(&["--workspace", other]), HOST);
        assert_eq!(read(&[]), CHANGED);
        let outside = env.bare(READ);
        assert_eq!(String::from_utf8_lossy(&outside.stdout), HOST);
        assert!(!env.home().join(".cache/tool").exists());
    }
}

#[test]
fn a_second_run_at_the_same_time_has_a_layer_of_its_own() {
    for who in users() {
        let env = TestEnv::new(who);
        prepare(&env);
        assert_fine(&env.run(&[], WRITE));
        let script = "touch ready; while [ ! -e go ]; do sleep 0.05; done; echo first > ~/.cargo/registry/new";
        let mut first = env.command(env.binary());
        let mut first = first.args(["run", "--", "sh", "-c", script]).spawn().unwrap();
        eventually(|| env.path("project/ready").exists().then_some(()));
        let planned = env.said(&["run", "--plan", "--", "true"]);
        assert!(planned.contains("another run in this workspace"), "{planned}");
        let second =
            env.run(&[], &format!("{READ}; echo second > ~/.cargo/registry/new; touch go"));
        assert_fine(&second);
        assert_eq!(second.stdout, HOST);
        let layer = second.events("started")[0]["plan"]["layer"].to_string();
        assert_eq!(layer, r#"{"temporary":"in_use"}"#);
        assert!(first.wait().unwrap().success());
        assert_eq!(env.run(&[], "cat ~/.cargo/registry/new").stdout, "first\n");
    }
}

/// Nothing that an earlier run has left changes what a later one sees of the host, or keeps it from
/// starting.
#[test]
fn what_a_run_leaves_opens_nothing_to_the_next() {
    const PLANT: &str = r"
rm -rf ~/.cargo/git ~/.cargo/config.toml
ln -s ~/.ssh ~/.cargo/git; ln -s ~/.ssh/id_ed25519 ~/.cargo/config.toml
ln -s ~/.ssh ~/.cache/uv; mkdir ~/.npm/_cacache; rmdir ~/.npm/_cacache; echo > ~/.npm/_cacache
mv ~/.local/share/pnpm/rc ~/.local/share/pnpm/elsewhere 2> /dev/null
ln ~/.local/share/pnpm/rc ~/.local/share/pnpm/linked 2> /dev/null
mkdir -p ~/.local/share/pnpm/nodejs; ln -s ~/.ssh ~/.local/share/pnpm/nodejs/v1
cp /bin/true ~/.cache/setuid; chmod 4755 ~/.cache/setuid; true";
    const TRY: &str = r"
cat ~/.cargo/credentials.toml ~/.cargo/git/id_ed25519 ~/.cargo/config.toml ~/.cache/uv/* \
    ~/.local/share/pnpm/rc ~/.local/share/pnpm/elsewhere ~/.local/share/pnpm/linked \
    ~/.local/share/pnpm/auth.ini ~/.local/share/pnpm/nodejs/*/* ~/.local/share/pnpm/nodejs/v1/etc/npmrc
grep -e '/.cache ' -e '/.cargo ' /proc/self/mountinfo | grep -v 'nosuid,nodev'; true";
    for (who, attribution) in users().iter().flat_map(|who| ATTRIBUTIONS.map(|it| (*who, it))) {
        let env = TestEnv::new(who);
        prepare(&env);
        env.write("home/.config/ringwall/ringwall.toml", "[violation]\naction = \"deny\"\n");
        let options = ["--attribution", attribution];
        let planted = env.run(&options, PLANT);
        assert_eq!(planted.code, Some(0), "{planted:?}");
        // What was planted is in the way of these now.
        for path in [
            ".cargo/git/db/x",
            ".cargo/config.toml",
            ".cache/uv/x",
            ".npm/_cacache/x",
            ".local/share/pnpm/auth.ini",
            ".local/share/pnpm/nodejs/v1/etc/npmrc",
        ] {
            env.write(&format!("home/{path}"), "token=CANARY\n[registry]\ntoken=\"CANARY\"\n");
        }
        for _ in 0..2 {
            let tried = env.run(&options, TRY);
            assert_eq!(tried.code, Some(0), "{tried:?}");
            for secret in ["CANARY", "SECRET", "nosuid", "/.ca"] {
                assert!(!tried.stdout.contains(secret), "{secret}: {tried:?}");
            }
            assert!(tried.stdout.contains("kept=1"), "{tried:?}");
        }
    }
}

/// The layer itself is nowhere in a run, also where what is around it is granted.
#[test]
fn a_run_reaches_its_layer_by_no_other_path() {
    for who in users() {
        let env = TestEnv::new(who);
        prepare(&env);
        assert_fine(&env.run(&[], WRITE));
        let dir = layer(&env);
        let script = format!(
            "echo planted > {0}/upper/planted; echo planted > {0}/own/planted; \
             rm -rf {0}/upper {0}/lock; mv {0} {0}.old; ls {0}; true",
            dir.display()
        );
        for options in [
            &["--allow-write", "~/.local/state"][..],
            &["--allow-write", "~/.local"],
            &["--level", "full"],
        ] {
            env.write("home/.config/ringwall/ringwall.toml", "[violation]\naction = \"deny\"\n");
            let ran = env.run(options, &script);
            assert_eq!(ran.code, Some(0), "{options:?}: {ran:?}");
            for path in ["upper/planted", "own/planted"] {
                assert!(!dir.join(path).exists(), "{options:?}: {path}");
            }
            assert!(dir.join("lock").exists() && dir.join("upper").exists(), "{options:?}");
        }
        let _ = std::fs::remove_file(env.home().join(".config/ringwall/ringwall.toml"));
        assert_eq!(env.run(&[], READ).stdout, CHANGED);
    }
}

#[test]
fn clean_removes_what_no_run_is_using() {
    for who in users() {
        let env = TestEnv::new(who);
        prepare(&env);
        assert_fine(
            &env.run(&[], &format!("{WRITE}; mkdir ~/.cache/closed; chmod 0 ~/.cache/closed")),
        );
        let dir = layer(&env);
        let listed = env.said(&["clean", "--all", "--dry-run", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed[0]["workspace"], env.project().display().to_string());
        assert!(dir.exists());
        let script = "touch ready; while [ ! -e go ]; do sleep 0.05; done";
        let mut run = env.command(env.binary());
        let mut run = run.args(["run", "--", "sh", "-c", script]).spawn().unwrap();
        eventually(|| env.path("project/ready").exists().then_some(()));
        let refused = env.ringwall(&["clean"]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&refused.stdout).contains("a run is using it"));
        env.write("project/go", "");
        assert!(run.wait().unwrap().success());
        assert!(env.said(&["clean", "--older-than", "1h"]).contains("no private caches"));
        assert!(dir.exists());
        env.said(&["clean"]);
        assert!(!dir.exists());
        assert_eq!(env.run(&[], READ).stdout, HOST);
    }
}

/// New dot-files and dot-directories of the home directory can be made, and are the workspace's own.
#[test]
fn the_home_directory_has_a_private_layer_for_new_names() {
    const MAKE: &str = r#"
set -e
echo one > ~/.history; echo two >> ~/.history; cat ~/.history
echo three > ~/.history.tmp; mv ~/.history.tmp ~/.history; cat ~/.history
mkdir ~/.tool; echo in > ~/.tool/file; cat ~/.tool/file; chmod 700 ~/.tool; ln -s file ~/.tool/link
mkdir -p ~/.config/x/deep ~/.local/share/y; echo x > ~/.config/x/deep/f; echo y > ~/.local/share/y/f
mkdir ~/.exists; [ -z "$(ls -A ~/.exists)" ]; ln ~/.history ~/.other; cat ~/.other
mkdir ~/.gone; rmdir ~/.gone; ! ls ~/.gone; echo now > ~/.gone; cat ~/.gone; rm ~/.gone
[ ! -e ~/.gone ]; cp /bin/true ~/.program; ~/.program; stat -c %F ~/.history ~/.tool"#;
    const MADE: &str = "one\ntwo\nthree\nin\nthree\nnow\nregular file\ndirectory\n";
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.exists/file", "HOST");
        env.write("other/file", "");
        let ran = env.run(&["--attribution", "tripwire"], MAKE);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), MADE), "{ran:?}");
        assert!(ran.violations().is_empty(), "{ran:?}");
        let read = "cat ~/.history ~/.tool/link ~/.config/x/deep/f ~/.local/share/y/f 2> /dev/null; \
                    ls -A ~ | grep -c -e '^.history$' -e '^.tool$' -e '^.exists$'; true";
        assert_eq!(env.run(&[], read).stdout, "three\nin\nx\ny\n3\n");
        for options in [&["--fresh"][..], &["--workspace", env.path("other").to_str().unwrap()]] {
            assert_eq!(env.run(options, read).stdout, "0\n", "{options:?}");
        }
        let fresh = env.run(&["--fresh"], "echo new > ~/.history; mkdir ~/.tool; cat ~/.history");
        assert_eq!((fresh.code, fresh.stdout.as_str()), (Some(0), "new\n"), "{fresh:?}");
        assert_eq!(env.run(&[], read).stdout, "three\nin\nx\ny\n3\n");
        for name in [".history", ".tool", ".config/x", ".other", ".program"] {
            assert!(!env.home().join(name).exists(), "{name}");
        }
        assert_eq!(env.read("home/.exists/file"), "HOST");
    }
}

/// What the home directory has is not opened by that, and what may not be made is not.
#[test]
fn the_private_layer_of_the_home_directory_is_no_hole() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.exists/file", "HOST");
        env.write("home/.aws/credentials", "SECRET");
        env.write("home/notes/a", "SECRET");
        env.configure("[filesystem]\ndeny_read = [\"~/.denied\"]\ndeny_write = [\"~/.fixed\"]\n");
        for (script, path) in [
            ("cat ~/.ssh/id_ed25519", "home/.ssh/id_ed25519"),
            ("echo x >> ~/.ssh/authorized_keys", "home/.ssh/authorized_keys"),
            ("mkdir ~/.gnupg", "home/.gnupg"),
            ("cat ~/.aws/credentials", "home/.aws/credentials"),
            ("echo x > ~/.bashrc", "home/.bashrc"),
            (
                "mkdir ~/.config; mkdir ~/.config/git; echo x > ~/.config/git/config",
                "home/.config/git",
            ),
            ("mkdir ~/.codex", "home/.codex"),
            ("echo x > ~/.new; mv ~/.new ~/.profile", "home/.profile"),
            ("echo x > ~/.new; ln ~/.new ~/.zshrc", "home/.zshrc"),
            ("echo x > ~/.denied", "home/.denied"),
            ("echo x > ~/.fixed", "home/.fixed"),
            ("echo x > ~/notes/new", "home/notes/new"),
            ("echo x > ~/new", "home/new"),
            ("cat ~/notes/a", "home/notes/a"),
            ("mkdir ~/.d; cat ~/.d/../notes/a", "home/notes/a"),
            ("mkdir ~/.d; ln -s ../notes ~/.d/l; cat ~/.d/l/a", "home/notes/a"),
            ("mkdir ~/.d; ln -s ../notes ~/.d/l; echo x > ~/.d/l/new", "home/notes/new"),
        ] {
            let ran = env.run(&["--attribution", "tripwire"], &format!("{script}; echo went on"));
            assert_eq!(ran.code, Some(77), "{script}: {ran:?}");
            assert!(!ran.stdout.contains("went on"), "{script}: {ran:?}");
            let stopped = ran.violations().into_iter().find(|it| it["class"] == "stop").unwrap();
            let tried = stopped["path"].as_str().unwrap();
            assert!(tried.starts_with(env.path(path).to_str().unwrap()), "{script}: {ran:?}");
            assert!(!ran.stdout.contains("SECRET"), "{script}: {ran:?}");
            env.ringwall(&["clean"]);
        }
        // Absent, and noted.
        let ran = env.run(&["--attribution", "tripwire"], "cat ~/.exists/file; echo went on");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "went on\n"), "{ran:?}");
        let exists = env.path("home/.exists").display().to_string();
        let noted = ran.events("violation").into_iter().find(|it| it["path"] == exists);
        assert_eq!(noted.map(|it| &it["class"]), Some(&"probe".into()), "{ran:?}");
        let failed = env.run(&["--attribution", "tripwire"], "cat ~/.exists/file");
        assert!(failed.stderr.contains("which the run does not see"), "{failed:?}");
    }
}

/// What is planted in the private directory itself does not show in the home directory.
#[test]
fn only_names_that_may_be_private_show_in_the_home_directory() {
    let script = r"
rm -f /run/ringwall/home/.local; mkdir -p /run/ringwall/home/.local; cd /run/ringwall/home && echo x > .bashrc; mkdir .ssh; echo PLANTED > .ssh/config; echo PLANTED > notes
ln -s /etc/passwd .link; rm -r .local; ln -s {} .local; true";
    for who in users() {
        let env = TestEnv::new(who);
        env.configure("[violation]\naction = \"deny\"\n");
        env.write("home/.local/share/pnpm/x", "");
        env.write("outside/in/file", "");
        // Where a supervisor that followed it would create directories, and one that would wait for itself.
        for target in [env.path("outside/in").to_str().unwrap(), "../../..", "../../../root"] {
            env.run(&["--attribution", "tripwire"], &script.replace("{}", target));
            let ran = env.run(
                &["--attribution", "tripwire"],
                "ls ~/.local ~/.local/share; mkdir ~/.local/x",
            );
            assert_eq!(ran.code, Some(1), "{target}: {ran:?}");
            assert_eq!(std::fs::read_dir(env.path("outside/in")).unwrap().count(), 1, "{target}");
        }
        let tried = env.run(
            &["--attribution", "tripwire"],
            "ls -A ~ | grep -e notes -e bashrc -e ssh -e link; cat ~/.ssh/config ~/notes ~/.link; true",
        );
        assert_eq!((tried.code, tried.stdout.as_str()), (Some(0), ""), "{tried:?}");
    }
}

/// Nobody looks for a program in vain that a run said it had installed.
#[test]
fn programs_that_a_run_installs_are_named_at_its_end() {
    const INSTALL: &str = r"
for dir in .cargo/bin .local/bin go/bin; do
    mkdir -p ~/$dir; cp /bin/true ~/$dir/new-$(basename $(dirname $dir))
done
echo data > ~/.cargo/bin/data; ln -s new-go ~/go/bin/linked; ~/.cargo/bin/new-.cargo";
    for (who, attribution) in users().iter().flat_map(|who| ATTRIBUTIONS.map(|it| (*who, it))) {
        let env = TestEnv::new(who);
        prepare(&env);
        env.program("home/.cargo/bin/old", "#!/bin/sh\n");
        std::thread::sleep(std::time::Duration::from_millis(100));
        let ran = env.run(&["--attribution", attribution], INSTALL);
        assert_fine(&ran);
        let note =
            "installed for runs in this workspace only: linked, new-.cargo, new-.local, new-go;";
        assert!(ran.stderr.contains(note), "{ran:?}");
        let again = env.run(&["--attribution", attribution], "~/.cargo/bin/new-.cargo; touch x");
        assert!(again.code == Some(0) && !again.stderr.contains("installed"), "{again:?}");
        let fresh = env.run(&["--attribution", attribution, "--fresh"], INSTALL);
        assert!(
            fresh.stderr.contains("installed for this run only, and gone with it"),
            "{fresh:?}"
        );
    }
}
