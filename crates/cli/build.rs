//! Puts the commit into `--version`, where the source is a git checkout, and links statically.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=RINGWALL_COMMIT={}", commit());
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/refs/heads");
    if let Some(out) = std::env::var_os("OUT_DIR") {
        link_statically(Path::new(&out));
    }
}

fn commit() -> String {
    let mut git = Command::new("git");
    printed(git.args(["rev-parse", "--short=12", "HEAD"]))
        .unwrap_or_else(|| "unknown commit".to_owned())
}

/// A static program starts in three quarters of the time. It also ignores `LD_PRELOAD`, which the
/// settings of a project can set for a hook. Cargo has no setting for this that leaves procedural
/// macros alone, so the linker finds a script under the name of each shared library, which points to
/// the static archive. Where the archives are missing, or the linked program does not run, the
/// program is linked dynamically.
fn link_statically(out: &Path) -> Option<()> {
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let native = std::env::var("HOST").ok() == std::env::var("TARGET").ok();
    if (target("OS").as_str(), target("ENV").as_str(), native) != ("linux", "gnu", true) {
        return None;
    }
    let unwinding = archive("libgcc_eh.a")?;
    // Tests use this as well: it is one library less to load.
    point(out, "libgcc_s.so", &[&unwinding])?;
    println!("cargo:rustc-link-search=native={}", out.display());
    let program = out.join("program");
    std::fs::create_dir_all(&program).ok()?;
    for name in ["util", "rt", "pthread", "m", "dl"] {
        point(&program, &format!("lib{name}.so"), &[&archive(&format!("lib{name}.a"))?])?;
    }
    point(&program, "libc.so", &[&archive("libc.a")?, &archive("libgcc.a")?, &unwinding])?;
    let args = [format!("-L{}", program.display()), "-static-pie".to_owned()];
    if runs(out, &args) {
        for arg in args {
            println!("cargo:rustc-link-arg-bins={arg}");
        }
    }
    Some(())
}

/// Whether a small program that is linked like ours starts. Before version 2.34, glibc loads another
/// part of itself to look up a name.
fn runs(out: &Path, args: &[String]) -> bool {
    let (source, program) = (out.join("trial.c"), out.join("trial"));
    let text = "#include <features.h>\n#if !__GLIBC_PREREQ(2, 34)\n#error old\n#endif\n\
        static int zero; int *where[] = {&zero}; int main(void) { return *where[0]; }\n";
    let mut compiler = Command::new("cc");
    compiler.arg("-fPIE").arg(&source).args(["-Wl,-Bdynamic", "-lgcc_s", "-lm", "-lc", "-pie"]);
    compiler.arg("-nodefaultlibs").arg("-L").arg(out).args(args).arg("-o").arg(&program);
    std::fs::write(&source, text).is_ok()
        && printed(&mut compiler).is_some()
        && printed(&mut Command::new(&program)).is_some()
}

/// An archive that comes with the compiler or the system.
fn archive(name: &str) -> Option<PathBuf> {
    let path = printed(Command::new("cc").arg(format!("-print-file-name={name}")))?;
    Some(PathBuf::from(path)).filter(|path| path.is_absolute() && path.is_file())
}

/// Writes a script for the linker under the name of a library.
fn point(dir: &Path, name: &str, archives: &[&Path]) -> Option<()> {
    let quoted: String = archives.iter().map(|path| format!("\"{}\" ", path.display())).collect();
    std::fs::write(dir.join(name), format!("GROUP ( {quoted})\n")).ok()
}

fn printed(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
