//! Puts the commit into `--version`, where the source is a git checkout, and links one library less.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=RINGWALL_COMMIT={}", commit());
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/refs/heads");
    link_without_libgcc_s();
}

fn commit() -> String {
    let mut git = Command::new("git");
    printed(git.args(["rev-parse", "--short=12", "HEAD"]))
        .unwrap_or_else(|| "unknown commit".to_owned())
}

/// The standard library asks for `libgcc_s.so`, and loading it takes a tenth of every start. The
/// compiler has the same code as an archive: a linker script under the name of the one leads to
/// the other. Where there is no such archive, everything stays as it was.
fn link_without_libgcc_s() {
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let native = std::env::var("HOST").ok() == std::env::var("TARGET").ok();
    if (target("OS").as_str(), target("ENV").as_str(), native) != ("linux", "gnu", true) {
        return;
    }
    let mut compiler = Command::new("cc");
    let archive = printed(compiler.arg("-print-file-name=libgcc_eh.a")).map(PathBuf::from);
    let Some(archive) = archive.filter(|path| path.is_absolute() && path.is_file()) else { return };
    let Some(out) = std::env::var_os("OUT_DIR") else { return };
    let script = format!("INPUT ( \"{}\" )\n", archive.display());
    if std::fs::write(Path::new(&out).join("libgcc_s.so"), script).is_ok() {
        println!("cargo:rustc-link-search=native={}", Path::new(&out).display());
    }
}

fn printed(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
