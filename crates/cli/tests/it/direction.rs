//! The crates depend on each other in one direction, and the pure ones on nothing that acts.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Who may depend on whom. A crate that is not listed here fails the test.
const MAY_USE: &[(&str, &[&str])] = &[
    ("ringwall-model", &[]),
    ("ringwall-shell", &[]),
    ("ringwall-policy", &["ringwall-model", "ringwall-shell"]),
    ("ringwall-plan", &["ringwall-model", "ringwall-policy"]),
    ("ringwall-agents", &["ringwall-model"]),
    ("ringwall-facts", &["ringwall-model"]),
    ("ringwall-audit", &["ringwall-model"]),
    (
        "ringwall-config",
        &["ringwall-agents", "ringwall-facts", "ringwall-model", "ringwall-policy"],
    ),
    ("ringwall-sandbox", &["ringwall-model"]),
    ("ringwall-proxy", &["ringwall-model", "ringwall-policy"]),
    (
        "ringwall-run",
        &[
            "ringwall-agents",
            "ringwall-audit",
            "ringwall-config",
            "ringwall-facts",
            "ringwall-model",
            "ringwall-plan",
            "ringwall-policy",
            "ringwall-proxy",
            "ringwall-sandbox",
        ],
    ),
    (
        "ringwall",
        &[
            "ringwall-agents",
            "ringwall-audit",
            "ringwall-config",
            "ringwall-facts",
            "ringwall-model",
            "ringwall-plan",
            "ringwall-policy",
            "ringwall-proxy",
            "ringwall-run",
            "ringwall-sandbox",
            "ringwall-shell",
        ],
    ),
];
/// Crates that map data to data.
const PURE: &[&str] =
    &["ringwall-model", "ringwall-shell", "ringwall-policy", "ringwall-plan", "ringwall-agents"];
/// What a pure crate may use from outside: data, no effects.
const PURE_MAY_USE: &[&str] = &[
    "fast-glob",
    "idna",
    "jsonc-parser",
    "schemars",
    "serde",
    "serde_json",
    "sha2",
    "shuck-ast",
    "shuck-parser",
    "thiserror",
    "unicode-normalization",
];

fn packages() -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn dependencies(package: &Value) -> BTreeSet<String> {
    let all = package["dependencies"].as_array().unwrap().iter();
    let normal = all.filter(|dependency| dependency["kind"].is_null());
    normal.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn crates_depend_in_one_direction() {
    let packages = packages();
    let ours: BTreeSet<_> =
        packages.iter().map(|package| package["name"].as_str().unwrap().to_owned()).collect();
    for package in &packages {
        let name = package["name"].as_str().unwrap();
        if ["xtask", "model-server", "ringwall-fixtures"].contains(&name) {
            continue;
        }
        let allowed = MAY_USE.iter().find(|(known, _)| *known == name);
        let allowed = allowed.unwrap_or_else(|| panic!("{name} has no place in the order")).1;
        for dependency in dependencies(package).intersection(&ours) {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not use {dependency}");
        }
    }
}

#[test]
fn pure_crates_use_nothing_that_acts_and_keep_the_ban_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bans = std::fs::read_to_string(root.join("lints/pure.toml")).unwrap();
    let packages = packages();
    for name in PURE {
        let package = packages.iter().find(|package| package["name"] == *name).unwrap();
        for dependency in dependencies(package) {
            let fine =
                PURE.contains(&dependency.as_str()) || PURE_MAY_USE.contains(&dependency.as_str());
            assert!(fine, "{name} must not use {dependency}");
        }
        let own = std::fs::read_to_string(
            root.join("crates").join(name.trim_start_matches("ringwall-")).join("clippy.toml"),
        );
        assert_eq!(own.unwrap(), bans, "{name} has lost its ban list");
    }
}

/// The files that may hold unsafe code: the system calls of the sandbox, and tests of it.
const UNSAFE: &[&str] = &[
    "crates/sandbox/src/child/seccomp/tests/kernel.rs",
    "crates/sandbox/src/child/seccomp/tests/ordinary.rs",
    "crates/sandbox/src/network/sock_diag.rs",
    "crates/sandbox/src/observe/tripwire/live.rs",
    "crates/sandbox/src/sys.rs",
];

#[test]
fn unsafe_code_stays_where_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    for package in packages() {
        let manifest = std::path::PathBuf::from(package["manifest_path"].as_str().unwrap());
        let text = std::fs::read_to_string(&manifest).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{}", manifest.display());
    }
    let mut lifted = Vec::new();
    let mut directories = ["crates", "testing", "xtask"].map(|dir| root.join(dir)).to_vec();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                // In two parts, so that this file is not one of them.
                if text.contains(concat!("(unsafe", "_code")) {
                    lifted.push(path.strip_prefix(&root).unwrap().display().to_string());
                }
            }
        }
    }
    lifted.sort();
    assert_eq!(lifted, UNSAFE);
}
