//! Programs that fetch, with the proxy's variables and without them: all of them reach what is
//! granted, and none reaches anything else.

use std::process::Command;

use fixtures::{RunOutput, Server, has, users};

use super::servers::{GRANTED, NetworkEnv, OTHER, PAGE, UNSET};

struct Client {
    program: &'static str,
    /// Prints the page of the server at `URL`, and fails if it cannot.
    script: &'static str,
    /// How it comes to a server in the clear and to one behind TLS, as long as it knows the proxy.
    routes: [&'static str; 2],
}

/// A client that knows no proxy, or knows it only in some versions.
const ANY: &str = "";

const CLIENTS: &[Client] = &[
    Client {
        program: "curl",
        script: "curl -sSf --cacert authority.crt URL/page.txt",
        routes: ["http", "connect"],
    },
    Client {
        program: "python3",
        script: "SSL_CERT_FILE=$PWD/authority.crt python3 -c 'import sys, urllib.request as r\n\
            sys.stdout.write(r.urlopen(sys.argv[1]).read().decode())' URL/page.txt",
        routes: ["http", "connect"],
    },
    Client {
        program: "node",
        script: "NODE_EXTRA_CA_CERTS=$PWD/authority.crt node -e '
            fetch(process.argv[1]).then(answer => answer.text())
                .then(text => process.stdout.write(text))
                .catch(error => { console.error(error); process.exitCode = 1 })' URL/page.txt",
        routes: [ANY, ANY],
    },
    Client {
        program: "git",
        script: "git -c http.sslCAInfo=$PWD/authority.crt clone -q URL/repository.git \
            /tmp/clone && cat /tmp/clone/page.txt",
        routes: ["http", "connect"],
    },
];

#[test]
fn clients_reach_what_is_granted_and_nothing_else() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        publish_repository(&net_env);
        for client in CLIENTS.iter().filter(|client| has(client.program)) {
            for unset in ["", UNSET] {
                try_client(&net_env, client, false, unset);
                try_client(&net_env, client, true, unset);
            }
        }
    }
}

/// The control: nothing but the missing grant keeps clients from the witnesses.
#[test]
fn the_witness_hears_who_is_granted() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        for (scheme, witness) in [("http", &net_env.witness), ("https", &net_env.tls_witness)] {
            let target = format!("{OTHER}:{}", witness.port);
            net_env.configure("", &format!("\"{target}\""));
            for unset in ["", UNSET] {
                let fetch = CLIENTS[0].script.replace("URL", &format!("{scheme}://{target}"));
                let ran = net_env.run(&format!("{unset}{fetch}"));
                assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), PAGE), "{ran:?}");
                assert_eq!(witness.take().connections, 1, "{ran:?}");
            }
        }
    }
}

/// A program that knows nothing but sockets, and has its own resolver in it.
#[test]
fn a_static_program_does_too() {
    let client = Client {
        program: "fetch",
        script: "./fetch $(echo URL | tr '/:' '  ') /page.txt",
        routes: ["transparent", "transparent"],
    };
    for who in users() {
        let net_env = NetworkEnv::new(who);
        if !build_static(&net_env) {
            return;
        }
        for unset in ["", UNSET] {
            try_client(&net_env, &client, false, unset);
        }
    }
}

#[test]
fn a_go_program_does_too() {
    // Its resolver is its own, and asks in its own way.
    if !has("go") {
        return;
    }
    let client =
        Client { program: "fetch", script: "./fetch URL/page.txt", routes: ["http", "connect"] };
    for who in users() {
        let net_env = NetworkEnv::new(who);
        net_env.env.write("outside/fetch.go", GO_FETCH);
        let build = "cd ../outside && CGO_ENABLED=0 GOCACHE=$PWD/cache go build -o ../project/fetch \
            fetch.go";
        let built = net_env.env.bare(build);
        assert!(built.status.success(), "{built:?}");
        for unset in ["", UNSET] {
            try_client(&net_env, &client, false, unset);
        }
    }
}

fn try_client(net_env: &NetworkEnv, client: &Client, tls: bool, unset: &str) {
    let (scheme, server, witness) = if tls {
        ("https", &net_env.tls, &net_env.tls_witness)
    } else {
        ("http", &net_env.plain, &net_env.witness)
    };
    let fetch = |name: &str, server: &Server| {
        client.script.replace("URL", &format!("{scheme}://{name}:{}", server.port))
    };
    let ran = net_env.run(&format!("{unset}{}", fetch(GRANTED, server)));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), PAGE), "{}: {ran:?}", client.program);
    assert_eq!(ran.violations().len(), 0, "{}: {ran:?}", client.program);
    let route = if unset.is_empty() { client.routes[usize::from(tls)] } else { "transparent" };
    assert_route(&ran, server, route);
    assert_ne!(server.take().requests.len(), 0, "{}: {ran:?}", client.program);

    let ran = net_env.run(&format!("{unset}{}", fetch(OTHER, witness)));
    assert!(ran.code != Some(0) && ran.code != Some(77), "{}: {ran:?}", client.program);
    assert_eq!(ran.stdout, "", "{}: {ran:?}", client.program);
    net_env.assert_unseen(&ran);
    // Who asks the proxy names the port; who looks a name up has not come so far.
    let tried = ran.violations();
    let tried = tried.iter().find(|violation| match violation["operation"].as_str() {
        Some("connect") => violation["path"] == format!("{OTHER}:{}", witness.port),
        Some("look_up") => violation["path"] == OTHER,
        _ => false,
    });
    let tried = tried.unwrap_or_else(|| panic!("{}: {ran:?}", client.program));
    assert_eq!(tried["class"], "deny", "{ran:?}");
    assert_ne!(tried["program"]["argv"], serde_json::json!([]), "{ran:?}");
}

fn assert_route(ran: &RunOutput, server: &Server, route: &str) {
    let connections = ran.events("connection");
    assert!(!connections.is_empty(), "{ran:?}");
    for connection in connections {
        assert_eq!(connection["host"], GRANTED, "{ran:?}");
        assert_eq!(connection["port"], server.port, "{ran:?}");
        assert!(route == ANY || connection["route"] == route, "{route}: {ran:?}");
    }
}

/// A repository as files, which any server can give out.
pub(super) fn publish_repository(net_env: &NetworkEnv) {
    let script = "cd ../outside && git init -q -b main repository && cd repository \
        && printf 'PAGE\\n' > page.txt && git add -A && git commit -qm first \
        && git clone -q --bare . ../../served/repository.git \
        && git -C ../../served/repository.git update-server-info";
    let made = net_env.env.bare(script);
    assert!(made.status.success(), "{made:?}");
}

/// Builds the client without libraries, or as well as can be.
fn build_static(net_env: &NetworkEnv) -> bool {
    let source = net_env.env.write("outside/fetch.rs", RUST_FETCH);
    let arch = std::env::consts::ARCH;
    let targets = [format!("{arch}-unknown-linux-musl"), format!("{arch}-unknown-linux-gnu")];
    let built = targets.iter().any(|target| {
        let mut rustc = Command::new("rustc");
        rustc
            .args(["--edition=2024", "--target", target, "-o"])
            .arg(net_env.env.path("project/fetch"));
        rustc.arg(&source).output().is_ok_and(|output| output.status.success())
    });
    if !built {
        eprintln!("skipped: there is no rustc here that builds for {arch}");
    }
    net_env.env.own();
    built
}

const RUST_FETCH: &str = r#"
use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, _scheme, host, port, path] = &words[..] else { panic!("{words:?}") };
    let mut stream = std::net::TcpStream::connect((host.as_str(), port.parse().unwrap()))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    print!("{}", answer.split_once("\r\n\r\n").expect("an answer").1);
    Ok(())
}
"#;

const GO_FETCH: &str = r#"
package main

import ("fmt"; "io"; "net/http"; "os")

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
	// An answer that denies the request is no error to this client.
	if answer.StatusCode != http.StatusOK { fmt.Fprintln(os.Stderr, answer.Status); os.Exit(1) }
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
}
"#;
