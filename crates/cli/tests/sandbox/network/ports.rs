//! Many ports: all of them lead somewhere, or the run does not start.

use fixtures::users;

use super::servers::{GRANTED, NetworkEnv, PAGE, UNSET};

/// Entries for that many ports, none of them a server's.
fn entries(count: u16) -> String {
    (0..count).map(|number| format!("\"{GRANTED}:{}\", ", 1500 + number)).collect()
}

#[test]
fn every_granted_port_is_a_way_out() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let (port, local) = (net_env.plain.port, net_env.witness.port);
        // The servers' own are the last ones. Of the addresses only the way to them is tried: it
        // ends at the supervisor, who may find nobody there.
        let addresses: String = (1..100).map(|number| format!("\"192.0.2.{number}\", ")).collect();
        let grants = format!("{}{addresses}{}", entries(150), net_env.grants());
        net_env.configure(&format!("allow_local_ports = [{local}, {local}]\n"), &grants);
        let script = format!(
            "{UNSET}curl -sS http://{GRANTED}:{port}/page.txt http://127.0.0.1:{local}/page.txt; \
             (exec 3<> /dev/tcp/192.0.2.99/80) && echo way"
        );
        let ran = net_env.run(&script);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), &*format!("{PAGE}{PAGE}way\n")),
            "{ran:?}"
        );
    }
}

#[test]
fn more_ports_than_there_can_be_are_refused_by_name() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        net_env.configure("allow_local_ports = [7, 9]\n", &entries(255));
        let ran = net_env.run("echo ran");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(78), ""), "{ran:?}");
        for part in ["257", "256", "network.allowed_domains", "network.allow_local_ports", "hint:"]
        {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
        // One port for many names is one port, and who has the host's network needs none.
        let ran = net_env.run_with(&["--level", "full"], "echo ran");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ran\n"), "{ran:?}");
        net_env.configure("allow_local_ports = [7, 1500]\n", &entries(255));
        let ran = net_env.run("echo ran");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ran\n"), "{ran:?}");
    }
}
