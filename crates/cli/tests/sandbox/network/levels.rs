//! What each setting of the network opens: nothing, names, this machine's own ports, everything.

use fixtures::{RunOutput, Server, TestEnv, users};

use super::servers::{GRANTED, NetworkEnv, OTHER, PAGE, UNSET, run};

const DENY: &str = "[violation]\naction = \"deny\"\n";

#[test]
fn an_empty_list_is_no_network() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        for level in ["readonly", "readwrite"] {
            // With this machine's addresses allowed for every name: nothing else holds them.
            net_env.configure(&format!("{DENY}[phases.x]\nlevel = \"{level}\"\n"), "");
            for unset in ["", UNSET] {
                for (name, port) in [
                    (GRANTED, net_env.witness.port),
                    ("localhost", net_env.witness.port),
                    ("127.0.0.1", net_env.witness.port),
                    ("[::1]", net_env.witness.port),
                    ("0.0.0.0", net_env.witness.port),
                    // Outside of this machine, if anything passed.
                    ("192.0.2.1", 80),
                    ("[2001:db8::1]", 80),
                    ("198.18.1.0", net_env.witness.port),
                ] {
                    let script = format!("{unset}curl -sSf -m 30 http://{name}:{port}/page.txt");
                    let ran = net_env.run_with(&["--phase", "x"], &script);
                    assert!(!matches!(ran.code, Some(0 | 28)), "{script}: {ran:?}");
                    assert_eq!(ran.stdout, "", "{script}: {ran:?}");
                    net_env.assert_unseen(&ran);
                }
            }
        }
    }
}

#[test]
fn a_granted_name_that_leads_to_this_machine_needs_more() {
    for who in users() {
        let (env, server) = env(who);
        let target = format!("{GRANTED}:{}", server.port);
        let config = format!("allowed_domains = [\"{target}\"]\n");
        for unset in ["", UNSET] {
            configure(&env, &format!("[network]\n{config}"));
            let script = format!("{unset}curl -sSf http://{target}/page.txt; echo next");
            let ran = run(&env, &[], &script);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{ran:?}");
            let line = format!("network.private_domains = [\"{target}\"]");
            for part in ["127.0.0.1", "not a public address", &line, "curl"] {
                assert!(ran.stderr.contains(part), "{part}: {ran:?}");
            }
            assert_eq!(server.seen().connections, 0, "{ran:?}");
            // For another port, or another name, that line opens nothing.
            for other in [format!("{GRANTED}:1"), format!("{OTHER}:{}", server.port)] {
                configure(&env, &format!("[network]\n{config}private_domains = [\"{other}\"]\n"));
                assert_eq!(run(&env, &[], &script).code, Some(77), "{other}");
            }
            assert_eq!(server.seen().connections, 0);
        }
    }
}

#[test]
fn a_local_port_of_the_host_is_reached_where_it_is_named() {
    for who in users() {
        let (env, server) = env(who);
        let witness = Server::plain(env.path("served"));
        configure(&env, &format!("[network]\nallow_local_ports = [{}]\n{DENY}", server.port));
        for (name, options) in [
            ("127.0.0.1", ""),
            ("localhost", ""),
            ("127.0.0.1", "--noproxy '' -x http://127.0.0.1:978"),
            ("localhost", "--noproxy '' -x socks5h://127.0.0.1:978"),
            ("localhost", "--noproxy '' -p -x http://127.0.0.1:978"),
        ] {
            let fetch = |server: &Server| {
                let script = format!("curl -sSf {options} http://{name}:{}/page.txt", server.port);
                run(&env, &[], &script)
            };
            let ran = fetch(&server);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), PAGE), "{options}: {ran:?}");
            let ran = fetch(&witness);
            assert!(ran.code != Some(0) && ran.stdout.is_empty(), "{options}: {ran:?}");
        }
        // A name that leads there is another matter, and so is another address.
        for (name, options) in [
            (GRANTED, ""),
            ("127.0.0.2", "--noproxy ''"),
            ("0.0.0.0", "--noproxy ''"),
            ("[::ffff:127.0.0.1]", "--noproxy ''"),
        ] {
            server.take();
            let script = format!("curl -sSf {options} http://{name}:{}/page.txt", server.port);
            let ran = run(&env, &[], &script);
            let reached = server.seen().connections;
            // Written in another way, it is the same address.
            let same = name == "[::ffff:127.0.0.1]";
            assert_eq!(reached > 0, same, "{name}: {ran:?}");
        }
        assert_eq!(witness.seen().connections, 0);
    }
}

/// Whatever is granted, there is a wall; and the ports of the run's own network stay its own.
#[test]
fn any_port_and_any_address_can_be_granted() {
    for who in users() {
        let (env, server) = env(who);
        let target = format!("{GRANTED}:{}", server.port);
        let grants = [53, 978].map(|port| format!("\"{GRANTED}:{port}\", \"192.0.2.1:{port}\""));
        let odd = ["0.0.0.0", "255.255.255.255", "224.0.0.1", "240.0.0.1", "198.18.0.1", "[::1]"];
        let odd = odd.map(|address| format!("\"{address}:{}\"", server.port));
        // More than there can be doors for.
        let many = (2000..2200).map(|port| format!("\"{OTHER}:{port}\""));
        let grants: Vec<_> = grants.into_iter().chain(odd).chain(many).collect();
        configure(
            &env,
            &format!(
                "[network]\nallow_local_ports = [53, 978]\nprivate_domains = [\"{target}\"]\n\
                 allowed_domains = [\"{target}\", {}]\n",
                grants.join(", ")
            ),
        );
        let ran = run(&env, &[], &format!("curl -sSf http://{target}/page.txt"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), PAGE), "{ran:?}");
    }
}

#[test]
fn loopback_inside_is_the_runs_own() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let script = "cd /tmp && echo own > page.txt
            python3 -m http.server --bind 127.0.0.1 8765 2> /dev/null & server=$!
            until curl -s http://127.0.0.1:8765/page.txt; do sleep 0.1; done; kill $server";
        let ran = net_env.run(script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "own\n"), "{ran:?}");
        assert_eq!(ran.violations().len(), 0, "{ran:?}");
    }
}

#[test]
fn what_is_denied_is_denied_although_it_is_granted() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        for denied in [GRANTED, "*.example.org"] {
            for (level, by) in [("readwrite", ""), ("network", UNSET), ("network", "")] {
                let more = format!(
                    "denied_domains = [\"{denied}\"]\n{DENY}[phases.x]\nlevel = \"{level}\"\n"
                );
                net_env.configure(&more, &net_env.grants());
                let url = format!("http://{GRANTED}:{}/page.txt", net_env.plain.port);
                let ran = net_env.run_with(&["--phase", "x"], &format!("{by}curl -sSf {url}"));
                assert!(!ran.stdout.contains("PAGE"), "{ran:?}");
                assert_eq!(ran.violations()[0]["rule"], "network.denied_domains", "{ran:?}");
                assert_eq!(net_env.plain.seen().connections, 0, "{ran:?}");
            }
        }
    }
}

#[test]
fn the_network_level_reaches_names_but_no_private_address() {
    for who in users() {
        let (env, server) = env(who);
        let fetch = |name: &str, more: &str| -> RunOutput {
            let private = format!("[network]\nprivate_domains = [{more}]\n{DENY}");
            configure(&env, &format!("level = \"network\"\n{private}"));
            let url = format!("http://{name}:{}/page.txt", server.port);
            run(&env, &[], &format!("curl -sSf {url}"))
        };
        let ran = fetch(GRANTED, "");
        assert_eq!(ran.violations()[0]["rule"], "network.private_domains", "{ran:?}");
        // Names that lead nowhere else than to this machine, however they are written.
        for name in ["127.0.0.1", "0x7f.1", "2130706433", "[::ffff:7f00:1]", "a.localhost"] {
            let ran = fetch(name, "");
            assert!(!ran.stdout.contains("PAGE"), "{name}: {ran:?}");
        }
        assert_eq!(server.seen().connections, 0);
        let ran = fetch(GRANTED, &format!("\"{GRANTED}:{}\"", server.port));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), PAGE), "{ran:?}");
        assert_eq!(ran.violations().len(), 0, "{ran:?}");
    }
}

#[test]
fn the_full_level_has_the_hosts_network() {
    for who in users() {
        let (env, server) = env(who);
        configure(&env, "level = \"full\"\n");
        let script = format!(
            "env | grep -i _proxy; readlink /proc/self/ns/net; curl -sSf http://127.0.0.1:{}/page.txt",
            server.port
        );
        let ran = run(&env, &["--level", "full"], &script);
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let expected = format!("{}\n{PAGE}", own.display());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected.as_str()), "{ran:?}");
        assert_eq!(server.seen().requests.len(), 1);
    }
}

fn env(who: fixtures::User) -> (TestEnv, Server) {
    let env = TestEnv::new(who);
    env.write("served/page.txt", PAGE);
    let server = Server::plain(env.path("served"));
    (env, server)
}

fn configure(env: &TestEnv, text: &str) {
    env.write("home/.config/ringwall/ringwall.toml", &format!("version = 1\n{text}"));
}
