//! The ordinary work that is measured: three programs, each with a repository of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::scene::{Scene, write};
use crate::bench::peers::Peers;
use crate::failure::{Context, Failure};
use crate::workspace::{announce, output};

const MANIFEST: &str = r#"[package]
name = "small"
version = "0.1.0"
edition = "2021"

[dependencies]
aho-corasick = "=1.1.4"
memchr = "=2.8.3"

[workspace]
"#;

const MAIN: &str = r#"fn main() {
    let words = aho_corasick::AhoCorasick::new(["wall", "ring"]).expect("words");
    println!("{:?} {}", words.find("a ring"), memchr::memchr(b'r', b"a ring").is_some());
}
"#;

/// A command, where it works, and how often it is measured.
pub(super) struct Work {
    /// The repository it works in.
    pub(super) dir: PathBuf,
    /// The command.
    pub(super) words: Vec<OsString>,
    /// It is measured in one round of so many.
    pub(super) every: u32,
    /// What it creates; removed before it runs again.
    pub(super) product: Option<PathBuf>,
}

/// A kind of work: its name, and how to set it up.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The names of its figures: relative to outside, and to an empty sandbox.
    pub(super) claims: [&'static str; 2],
    pub(super) set: fn(&Scene, &Peers) -> Result<Work, Failure>,
}

pub(super) const ALL: &[Kind] = &[
    Kind {
        name: "git status, 5,000 files",
        claims: [
            "git status, CPU time, relative to outside",
            "git status, CPU time, relative to an empty sandbox",
        ],
        set: git_status,
    },
    Kind {
        name: "rg, 30,000 files",
        claims: ["rg, CPU time, relative to outside", "rg, CPU time, relative to an empty sandbox"],
        set: search,
    },
    Kind {
        name: "cargo build, aho-corasick and memchr",
        claims: [
            "cargo build, CPU time, relative to outside",
            "cargo build, CPU time, relative to an empty sandbox",
        ],
        set: cargo_build,
    },
];

fn git_status(scene: &Scene, _: &Peers) -> Result<Work, Failure> {
    let dir = scene.repository("git")?;
    files(&dir, 50)?;
    for words in [&["add", "."][..], &["commit", "--quiet", "--message=all"]] {
        let mut git = scene.command(Path::new("git"));
        git.current_dir(&dir).args(["-c", "user.name=bench", "-c", "user.email=bench@example.org"]);
        output(git.args(words))?;
    }
    let words = vec!["git".into(), "status".into()];
    Ok(Work { dir, words, every: 1, product: None })
}

fn search(scene: &Scene, peers: &Peers) -> Result<Work, Failure> {
    let program = peers.ripgrep.as_ref().ok_or_else(|| Failure::new("rg is not available"))?;
    let dir = scene.repository("search")?;
    files(&dir.join("tree"), 300)?;
    fs::copy(program, dir.join("rg")).context(|| "cannot copy rg".into())?;
    let words = vec!["./rg".into(), "line 7 of file 77$".into(), "tree".into()];
    Ok(Work { dir, words, every: 3, product: None })
}

fn cargo_build(scene: &Scene, _: &Peers) -> Result<Work, Failure> {
    let dir = scene.repository("crate")?;
    write(&dir.join("Cargo.toml"), MANIFEST)?;
    write(&dir.join("src/main.rs"), MAIN)?;
    let mut fetch = scene.command(Path::new("cargo"));
    fetch.current_dir(&dir).arg("fetch");
    announce(&fetch);
    output(&mut fetch)?;
    let words = ["cargo", "build", "--quiet", "--offline", "--target-dir=made"];
    let product = Some(dir.join("made"));
    let words = words.into_iter().map(OsString::from).collect();
    Ok(Work { dir, words, every: 15, product })
}

/// Small files of a few lines, a hundred in each directory.
fn files(dir: &Path, directories: u32) -> Result<(), Failure> {
    for directory in 0..directories {
        let dir = dir.join(format!("{}/{directory}", directory / 20));
        for file in 0..100 {
            let line = |line| format!("line {line} of file {file}\n");
            write(&dir.join(format!("{file}.txt")), &(0..40).map(line).collect::<String>())?;
        }
    }
    Ok(())
}
