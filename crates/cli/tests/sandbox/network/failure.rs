//! The proxy fails while a run goes on: its network is closed, and stays closed.

use fixtures::users;

use super::servers::{GRANTED, NetworkEnv, OTHER, PAGE, UNSET, hosts};

/// Something that no proxy understands; with the fault it is what the proxy dies of.
const BREAK: &str = "exec 3<>/dev/tcp/127.0.0.1/978; printf 'neither\\r\\n\\r\\n' >&3; cat <&3; \
    until ! (exec 4<>/dev/tcp/127.0.0.1/978); do sleep 0.05; done 2> /dev/null; ";

#[test]
fn a_proxy_that_fails_takes_the_network_with_it() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        // With everything that could be open: it must not be the rules that hold.
        let more = format!("allow_local_ports = [{}]\n", net_env.witness.port);
        let grants = format!("{}, \"{GRANTED}\"", net_env.grants());
        net_env.configure(&format!("{more}[violation]\naction = \"deny\"\n"), &grants);
        let plain = format!("http://{GRANTED}:{}/page.txt", net_env.plain.port);
        let tls = format!("https://{GRANTED}:{}/page.txt", net_env.tls.port);
        let local = format!("http://127.0.0.1:{}/page.txt", net_env.witness.port);
        let other = format!("http://{OTHER}:{}/page.txt", net_env.witness.port);
        let all = format!(
            "for url in {plain} {tls} {local} {other}; do \
             curl -sS -m 60 --cacert authority.crt $url; echo $?; done; "
        );
        let known = "address=$(getent hosts granted.example.org | cut -d' ' -f1); ";
        let direct = format!(
            "curl -sS -m 60 --resolve {GRANTED}:{}:$address {plain}; echo $?; ",
            net_env.plain.port
        );
        // A connection that stands when the proxy fails ends too.
        let standing = format!(
            "exec 5<>/dev/tcp/{GRANTED}/{0}; printf 'GET /page.txt HTTP/1.1\\r\\nHost: \
             {GRANTED}:{0}\\r\\n\\r\\n' >&5; while read -r line <&5 && [ \"$line\" != PAGE ]; do :; done; \
             echo $line; ",
            net_env.plain.port
        );
        let script = format!(
            "{known}curl -sS {plain}; {standing}{BREAK}timeout 60 cat <&5; echo after; {all}{UNSET}{all}\
             {direct}exit 9"
        );
        let variables =
            [("RINGWALL_TEST_HOSTS", hosts()), ("RINGWALL_FAULT", "proxy-panic".into())];
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        let ran = net_env.env.run_with(&variables, &[], &script);
        assert_eq!(ran.code, Some(9), "{ran:?}");
        let after = ran.stdout.strip_prefix(&format!("{PAGE}{PAGE}after\n"));
        let after = after.unwrap_or_else(|| panic!("{ran:?}"));
        let statuses: Vec<_> = after.lines().collect();
        assert_eq!(statuses.len(), 9, "{ran:?}");
        // Every try failed, and none because it had to wait.
        assert!(statuses.iter().all(|status| !["0", "28"].contains(status)), "{ran:?}");
        assert_eq!(net_env.plain.seen().requests.len(), 2, "{ran:?}");
        assert_eq!(net_env.tls.seen().spoken, 0, "{ran:?}");
        net_env.assert_unseen(&ran);

        let closed = ran.events("network_closed");
        assert_eq!(closed.len(), 1, "{ran:?}");
        assert!(closed[0]["why"].as_str().unwrap().contains("the proxy failed"), "{ran:?}");
        let message = "warning: the proxy failed; nothing on the network can be reached any more";
        assert!(ran.stderr.contains(message), "{ran:?}");
        assert_eq!(ran.events("stopped")[0]["exit"], 9, "{ran:?}");
        // The first fetch, and the one that stood.
        assert_eq!(ran.events("connection").len(), 2, "{ran:?}");
    }
}

/// The check above runs a build for tests. What is released must not end as a whole either: a panic
/// that aborts takes the supervisor along, and nobody is left to say what happened.
#[test]
fn what_is_released_outlives_its_proxy_too() {
    let manifest = include_str!("../../../../../Cargo.toml");
    let (_, release) = manifest.split_once("[profile.release]").unwrap();
    let release = release.split("\n[").next().unwrap();
    assert!(release.contains("lto"), "{release}");
    assert!(!release.lines().any(|line| line.starts_with("panic")), "{release}");
}

/// The same words without the fault: a proxy that is spoken to in an unknown language goes on.
#[test]
fn a_client_that_speaks_nonsense_breaks_nothing() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let url = format!("http://{GRANTED}:{}/page.txt", net_env.plain.port);
        let speak = "exec 3<>/dev/tcp/127.0.0.1/978; printf 'neither\\r\\n\\r\\n' >&3; cat <&3; ";
        let ran = net_env.run(&format!("{speak}{speak}curl -sS {url}"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.ends_with(PAGE), "{ran:?}");
        assert_eq!(ran.events("network_closed").len(), 0, "{ran:?}");
    }
}
