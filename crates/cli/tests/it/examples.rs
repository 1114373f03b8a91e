//! The configurations in `examples/config` are valid, each by itself.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::hook_env::HookEnv;

/// Fewer files mean that they were not found.
const AT_LEAST: usize = 4;

fn examples() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/config");
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect()
}

/// As a project would have it: copied to its top directory, and trusted.
#[test]
fn every_example_is_valid_and_has_no_warnings() {
    let examples = examples();
    assert!(examples.len() >= AT_LEAST, "{examples:?}");
    for example in examples {
        let env = HookEnv::new();
        // A rule about a file in a directory that does not exist is a warning.
        for dir in ["deploy", "docs", "migrations"] {
            std::fs::create_dir(env.project().join(dir)).unwrap();
        }
        let text = std::fs::read_to_string(&example).unwrap();
        env.write("project/ringwall.toml", &text);
        env.said(&["trust", "--yes"]);
        let checked: Value =
            serde_json::from_str(&env.said(&["policy", "check", "--json"])).unwrap();
        for key in ["warnings", "untrusted"] {
            assert_eq!(checked[key], Value::Array(Vec::new()), "{key} of {}", example.display());
        }
    }
}

#[test]
fn every_example_is_accepted_by_name() {
    for example in examples() {
        let env = HookEnv::new();
        let example = example.to_str().unwrap();
        let shown = env.said(&["policy", "show", "--config", example]);
        assert!(shown.contains("examples/config/"), "{shown}");
    }
}

/// Only names that are reserved for documentation.
#[test]
fn every_host_in_an_example_is_below_example_org() {
    for example in examples() {
        let env = HookEnv::new();
        let args = ["policy", "show", "--json", "--config", example.to_str().unwrap()];
        let shown: Value = serde_json::from_str(&env.said(&args)).unwrap();
        for row in shown["values"].as_array().unwrap() {
            let is_host = row["key"].as_str().unwrap().ends_with("_domains");
            if is_host && let Some(host) = row["value"].as_str() {
                let name = host.split(':').next().unwrap();
                assert!(name == "example.org" || name.ends_with(".example.org"), "{row}");
            }
        }
    }
}
