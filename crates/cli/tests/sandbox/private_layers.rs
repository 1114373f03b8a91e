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
