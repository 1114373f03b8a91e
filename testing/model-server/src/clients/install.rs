//! Installs a client from npm, once per target directory.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};

/// The file that is written last, so that an install which was cut short is done again.
const MARKER: &str = "installed";

/// The directory that holds `node_modules` with exactly `package` at `version`.
///
/// Safe to call from many test processes at once: the first installs, the others wait.
///
/// # Panics
/// If npm is missing or fails.
pub(super) fn npm(name: &str, package: &str, version: &str) -> PathBuf {
    let clients = target_dir().join("clients");
    fs::create_dir_all(&clients).expect("the target directory can be written");
    let dir = clients.join(format!("{name}-{version}"));

    let lock = File::create(clients.join(format!("{name}-{version}.lock"))).expect("a lock file");
    flock(&lock, FlockOperation::LockExclusive).expect("the lock");
    if !dir.join(MARKER).exists() {
        if dir.exists() {
            fs::remove_dir_all(&dir).expect("an unfinished install can be removed");
        }
        fs::create_dir(&dir).expect("a directory for the client");
        run_npm(&dir, &format!("{package}@{version}"));
        fs::write(dir.join(MARKER), version).expect("the marker");
    }
    dir
}

/// Install scripts stay off: what the tests need is in the packages, and nothing else should run.
fn run_npm(dir: &Path, package: &str) {
    let output = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--save-exact",
            "--prefix",
        ])
        .arg(dir)
        .arg(package)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| {
            panic!("cannot install `{package}`: npm did not start ({error}); is it on the PATH?")
        });
    assert!(
        output.status.success(),
        "cannot install `{package}`: npm ended with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}

/// The target directory that this test was built in: cargo marks its root with `CACHEDIR.TAG`.
fn target_dir() -> PathBuf {
    let test = env::current_exe().expect("the path of the running test");
    let root = test.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file());
    root.unwrap_or_else(|| panic!("`{}` is in no target directory", test.display())).to_owned()
}
