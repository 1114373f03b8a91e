//! Two thousand generated projects: the wall comes up in every one, and protected names stay what
//! they were.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fixtures::{TestEnv, users};

/// Names that would run something later, as files and directories of a project have them.
const PROTECTED: &[&str] = &[
    ".git/config",
    ".git/hooks/post-checkout",
    ".claude/settings.json",
    ".mcp.json",
    ".envrc",
    ".vscode/tasks.json",
    ".codex/config.toml",
    ".cursor/mcp.json",
    ".bashrc",
    "ringwall.toml",
    "sub/.git/hooks/pre-commit",
    "a b/.git/config",
    "deep/er/.claude/settings.local.json",
];
const PLAIN: &[&str] = &[
    "README.md",
    "src/main.rs",
    "new\nline",
    " space ",
    "-rf",
    "grüße",
    "[x]{y}*",
    "a/b/c/d/e/f",
    "long/NAME",
    "sub/file",
    "a b/file",
    "deep/er/file",
    "q\"uo'te",
    "\u{202e}rtl",
];

/// Numbers that only look random, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn put(project: &Path, name: &str, dice: &mut Dice) {
    let name = name.replace("NAME", &"n".repeat(255));
    let path = project.join(name);
    if fs::create_dir_all(path.parent().unwrap()).is_err() || path.symlink_metadata().is_ok() {
        return;
    }
    if path.ends_with("ringwall.toml") {
        // Anything else than a valid file is an error, and there is no run.
        let _ = fs::write(&path, "version = 1\n");
        return;
    }
    // Parents may have become links, fifos or closed directories: what cannot be made is not made.
    let _ = match dice.roll(10) {
        0 => symlink("/etc/passwd", &path),
        1 => symlink("nowhere/at/all", &path),
        2 => symlink(path.file_name().unwrap(), &path),
        3 => symlink("..", &path),
        4 => fs::create_dir(&path),
        5 => std::os::unix::net::UnixListener::bind(&path).map(drop),
        6 => rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from(0o600),
            0,
        )
        .map_err(Into::into),
        _ => fs::write(&path, "before\n"),
    };
    let mode = match dice.roll(12) {
        0 => 0o000,
        1 => 0o444,
        _ => return,
    };
    if path.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_dir()) {
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(mode));
    }
}

fn generate(project: &Path, seed: u64) {
    let mut dice = Dice(seed);
    for _ in 0..8 {
        let (table, at) =
            if dice.roll(2) == 0 { (PROTECTED, dice.roll(13)) } else { (PLAIN, dice.roll(14)) };
        put(project, table[usize::try_from(at).unwrap()], &mut dice);
    }
}

/// What stands at each protected name: the kind of it, and what it says.
fn look(project: &Path) -> BTreeMap<PathBuf, String> {
    let describe = |path: &Path| {
        let Ok(found) = path.symlink_metadata() else { return "nothing".to_owned() };
        if found.is_file() {
            let _ = fs::set_permissions(
                path,
                fs::Permissions::from_mode(found.permissions().mode() | 0o400),
            );
            format!("file {}", fs::read_to_string(path).unwrap_or_default())
        } else if found.is_symlink() {
            format!("link {}", fs::read_link(path).unwrap().display())
        } else {
            format!("{:?}", found.file_type())
        }
    };
    PROTECTED.iter().map(|name| (project.join(name), describe(&project.join(name)))).collect()
}

/// Overwrites, replaces, removes, moves away, and moves the parent away. None of it may work.
fn attack() -> String {
    let mut script = String::from("echo up; exec 2>/dev/null\n");
    for name in PROTECTED {
        let parent = Path::new(name).parent().unwrap().display().to_string();
        script.push_str(&format!(
            "n='{name}'; [ -p \"$n\" ] || echo evil > \"$n\"; echo evil > x; mv -f x \"$n\"; rm -f x\n\
             rm -rf \"$n\"; mv \"$n\" away; mkdir -p '{parent}/'; [ -p \"$n\" ] || echo evil > \"$n\"\n"
        ));
        if !parent.is_empty() {
            script.push_str(&format!(
                "mv '{parent}' gone && mkdir -p '{parent}' && echo evil > \"$n\"\n"
            ));
        }
    }
    script + "true\n"
}

#[test]
fn the_wall_comes_up_and_protected_names_stay() {
    let users = users();
    let script = attack();
    for (who, share) in users.iter().zip([1400, 600]) {
        let count: u64 = if users.len() == 1 { 2000 } else { share };
        let env = TestEnv::new(*who);
        let config = env.write("deny.toml", "version = 1\n[violation]\naction = \"deny\"\n");
        std::thread::scope(|scope| {
            for half in 0..2 {
                let (env, config, script) = (&env, &config, &script);
                scope.spawn(move || {
                    for seed in (half..count).step_by(2) {
                        one(env, config, script, seed);
                    }
                });
            }
        });
    }
}

fn one(env: &TestEnv, config: &Path, script: &str, seed: u64) {
    let project = env.path(&format!("layout-{seed}"));
    fs::create_dir(&project).unwrap();
    generate(&project, seed);
    env.own_tree(&project);
    let before = look(&project);
    let ran = env
        .command(env.binary())
        .arg("run")
        .arg("--config")
        .arg(config)
        .arg("--workspace")
        .arg(&project)
        .args(["--", "/bin/sh", "-c", script])
        .current_dir(&project)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(said.starts_with("up\n"), "layout {seed}: {}", String::from_utf8_lossy(&ran.stderr));
    for (path, was) in &before {
        let is = look(&project).remove(path).unwrap();
        // Git has no empty directories. Where nothing acts before the user does something, one may go.
        let empty = was.contains("is_dir: true") && path.starts_with(project.join(".vscode"));
        assert!(
            is == *was || (was == "nothing" && !is.contains("evil")) || (empty && is == "nothing"),
            "layout {seed}: {} was {was:?} and is {is:?}",
            path.display()
        );
    }
    let _ = std::process::Command::new("chmod")
        .args(["-R", "u+rwx"])
        .arg(&project)
        .stderr(Stdio::null())
        .status();
    let _ = fs::remove_dir_all(&project);
}
