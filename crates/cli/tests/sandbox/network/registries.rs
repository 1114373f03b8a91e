//! npm, pip and cargo against registries on this machine, behind TLS of the tests' own authority.

use std::path::PathBuf;
use std::process::Command;

use fixtures::{has, users};

use super::servers::{GRANTED, NetworkEnv, OTHER, UNSET};

#[test]
fn npm_installs_from_a_granted_registry() {
    if !has("npm") {
        return;
    }
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let address = format!("https://{GRANTED}:{}", net_env.tls.port);
        let document = serde_json::json!({
            "name": "leaf",
            "dist-tags": { "latest": "1.0.0" },
            "versions": { "1.0.0": {
                "name": "leaf",
                "version": "1.0.0",
                "dist": { "tarball": format!("{address}/leaf/-/leaf-1.0.0.tgz") },
            }},
        });
        net_env.env.write("served/leaf/index", &document.to_string());
        net_env.env.write("outside/package/package.json", r#"{"name":"leaf","version":"1.0.0"}"#);
        publish(
            &net_env,
            "mkdir ../served/leaf/- && tar czf ../served/leaf/-/leaf-1.0.0.tgz package",
        );
        let script = "npm install --registry URL --cafile authority.crt --cache /tmp/npm \
            --no-audit --no-fund --no-update-notifier --fetch-retries 0 leaf >&2 \
            && cat node_modules/leaf/package.json; status=$?; rm -rf node_modules package*; \
            exit $status";
        installs(&net_env, script, r#"{"name":"leaf","version":"1.0.0"}"#);
    }
}

#[test]
fn pip_installs_from_a_granted_index() {
    let pip = Command::new("/usr/bin/python3").args(["-m", "pip", "--version"]).output();
    if !pip.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no pip here");
        return;
    }
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let wheel = "leaf-1.0-py3-none-any.whl";
        net_env.env.write("served/leaf/index", &format!("<a href=\"{wheel}\">{wheel}</a>"));
        let make = format!(
            "/usr/bin/python3 - <<'END'
import zipfile
with zipfile.ZipFile('../served/leaf/{wheel}', 'w') as wheel:
    info = 'leaf-1.0.dist-info/'
    for name, text in {{
        'leaf.py': 'text = 1',
        info + 'METADATA': 'Metadata-Version: 2.1\\nName: leaf\\nVersion: 1.0\\n',
        info + 'WHEEL': 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
        info + 'RECORD': 'leaf.py,,\\n' + info + 'METADATA,,\\n' + info + 'WHEEL,,\\n',
    }}.items():
        wheel.writestr(name, text)
END"
        );
        publish(&net_env, &make);
        let script = "/usr/bin/python3 -m pip install --index-url URL --cert authority.crt \
            --target /tmp/installed --no-cache-dir --disable-pip-version-check --retries 0 \
            leaf >&2 && cat /tmp/installed/leaf.py";
        installs(&net_env, script, "text = 1");
    }
}

#[test]
fn cargo_fetches_from_a_granted_registry() {
    let Some(toolchain) = toolchain() else {
        eprintln!("skipped: there is no cargo here");
        return;
    };
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let address = format!("https://{GRANTED}:{}", net_env.tls.port);
        net_env.env.write("served/config.json", &format!("{{\"dl\":\"{address}/crates\"}}"));
        net_env.env.write(
            "outside/leaf-1.0.0/Cargo.toml",
            "[package]\nname = \"leaf\"\nversion = \"1.0.0\"\n",
        );
        net_env.env.write("outside/leaf-1.0.0/src/lib.rs", "");
        publish(
            &net_env,
            "mkdir -p ../served/crates/leaf/1.0.0 ../served/le/af \
             && tar czf ../served/crates/leaf/1.0.0/download leaf-1.0.0 \
             && sum=$(sha256sum < ../served/crates/leaf/1.0.0/download | cut -d' ' -f1) \
             && echo '{\"name\":\"leaf\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"'$sum'\",\
             \"features\":{},\"yanked\":false}' > ../served/le/af/leaf",
        );
        let manifest = "[package]\nname = \"tree\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";
        net_env.env.write("project/src/lib.rs", "");
        net_env.env.write("project/Cargo.toml", manifest);
        lend_cargo(&net_env, &toolchain);
        let needy = format!("{manifest}[dependencies]\nleaf = \"1\"\n");
        net_env.env.write("project/Cargo.toml", &needy);
        let script = "export CARGO_HOME=/tmp/cargo CARGO_HTTP_CAINFO=$PWD/authority.crt \
            CARGO_NET_RETRY=0 RUSTC=$PWD/tools/rustc; mkdir /tmp/cargo; \
            printf '[source.crates-io]\\nreplace-with = \"here\"\\n\
            [source.here]\\nregistry = \"sparse+URL/\"\\n' > /tmp/cargo/config.toml; \
            tools/cargo fetch >&2 && ls /tmp/cargo/registry/src/*/; status=$?; rm -f Cargo.lock; \
            exit $status";
        installs(&net_env, script, "leaf-1.0.0\n");
    }
}

/// Runs an installer with the proxy's variables and without them, from a registry that is granted
/// and from one that is not.
fn installs(net_env: &NetworkEnv, script: &str, expected: &str) {
    for unset in ["", UNSET] {
        let from = |name: &str, port: u16| {
            let url = format!("https://{name}:{port}");
            net_env.run(&format!("{unset}{}", script.replace("URL", &url)))
        };
        let ran = from(GRANTED, net_env.tls.port);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected), "{ran:?}");
        let connections = ran.events("connection");
        assert!(!connections.is_empty(), "{ran:?}");
        let route = if unset.is_empty() { "connect" } else { "transparent" };
        for connection in connections {
            assert_eq!(connection["host"], GRANTED, "{ran:?}");
            assert_eq!(connection["route"], route, "{ran:?}");
        }
        assert_ne!(net_env.tls.take().requests.len(), 0, "{ran:?}");

        let ran = from(OTHER, net_env.tls_witness.port);
        assert!(ran.code != Some(0) && ran.code != Some(77), "{ran:?}");
        assert_eq!(ran.stdout, "", "{ran:?}");
        net_env.assert_unseen(&ran);
        let names = |path: &str| path.split(':').next() == Some(OTHER);
        let tried = ran.violations().iter().any(|it| names(it["path"].as_str().unwrap()));
        assert!(tried, "{ran:?}");
    }
}

fn publish(net_env: &NetworkEnv, script: &str) {
    let made = net_env.env.bare(&format!("cd ../outside && {script}"));
    assert!(made.status.success(), "{made:?}");
}

/// Where the real cargo is, behind whatever stands for it in the search path.
fn toolchain() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let programs = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()).join("bin");
    programs.join("cargo").exists().then_some(programs)
}

/// Cargo asks rustc about the machine, which is too large to lend: its answers are written down.
fn lend_cargo(net_env: &NetworkEnv, toolchain: &std::path::Path) {
    let env = &net_env.env;
    let tools = env.path("project/tools");
    std::fs::create_dir_all(tools.join("answers")).unwrap();
    // By another process: a program that this one wrote could still be open in a third one.
    let copied = Command::new("cp").arg(toolchain.join("cargo")).arg(&tools).status().unwrap();
    assert!(copied.success());
    let rustc = format!(
        "#!/bin/sh\nkey={}/answers/$(printf %s \"$*\" | cksum | tr -d ' ')\n\
         test -f $key || {}/rustc \"$@\" > $key\ncat $key\n",
        tools.display(),
        toolchain.display()
    );
    env.write("project/tools/rustc", &rustc);
    let mut asked = Command::new("/bin/sh");
    asked.args(["-c", "chmod +x tools/rustc && RUSTC=$PWD/tools/rustc tools/cargo fetch"]);
    let asked = asked
        .current_dir(env.project())
        .env("CARGO_HOME", env.path("outside/cargo"))
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    assert!(asked.status.success(), "{asked:?}");
    std::fs::remove_file(env.path("project/Cargo.lock")).unwrap();
    env.own();
}
