//! Every connection is told: where to, how much, how long, and by whom.

use fixtures::users;

use super::servers::{GRANTED, NetworkEnv, UNSET};

#[test]
fn every_connection_is_told_with_its_program() {
    const SIZE: u64 = 3_000_000;
    for who in users() {
        let net_env = NetworkEnv::new(who);
        net_env.env.write("served/large", &"x".repeat(usize::try_from(SIZE).unwrap()));
        net_env.env.write("project/upload", &"y".repeat(200_000));
        for (unset, plain, tls) in [("", "http", "connect"), (UNSET, "transparent", "transparent")]
        {
            for (route, url, server) in [
                (plain, format!("http://{GRANTED}:{}", net_env.plain.port), &net_env.plain),
                (tls, format!("https://{GRANTED}:{}", net_env.tls.port), &net_env.tls),
            ] {
                // The run ends with the connection: it is told all the same.
                let script = format!(
                    "{unset}curl -sS --cacert authority.crt -o /dev/null -H Expect: --data-binary \
                     @upload {url}/large"
                );
                let ran = net_env.run(&script);
                assert_eq!(ran.code, Some(0), "{ran:?}");
                let connections = ran.events("connection");
                let [connection] = &connections[..] else { panic!("{ran:?}") };
                assert_eq!(connection["host"], GRANTED, "{ran:?}");
                assert_eq!(connection["port"], server.port, "{ran:?}");
                assert_eq!(connection["address"], format!("127.0.0.1:{}", server.port), "{ran:?}");
                assert_eq!(connection["route"], route, "{ran:?}");
                let (sent, received) = (&connection["sent"], &connection["received"]);
                // All of the body, and not much more.
                let about = |count: u64, size: u64| (size..size + 100_000).contains(&count);
                assert!(about(sent.as_u64().unwrap(), 200_000), "{ran:?}");
                assert!(about(received.as_u64().unwrap(), SIZE), "{ran:?}");
                assert!(connection["seconds"].as_f64().unwrap() > 0.0, "{ran:?}");
                let program = &connection["program"];
                assert_eq!(program["path"], "/usr/bin/curl", "{ran:?}");
                assert_eq!(program["argv"][0], "curl", "{ran:?}");
                assert_ne!(program["pid"], 0, "{ran:?}");
                assert_eq!(connection["run"], ran.events("started")[0]["run"], "{ran:?}");
            }
        }
    }
}

/// Short runs end in the same moment as their last connection.
#[test]
fn none_is_lost_at_the_end_of_a_run() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let url = format!("http://{GRANTED}:{}/page.txt", net_env.plain.port);
        for _ in 0..20 {
            let ran = net_env.run(&format!("exec curl -sS {url}"));
            let connections = ran.events("connection");
            assert_eq!(connections.len(), 1, "{ran:?}");
            assert_eq!(connections[0]["program"]["argv"][0], "curl", "{ran:?}");
        }
        // One that still stands when the run ends is told as well.
        let script = format!(
            "exec 3<>/dev/tcp/{GRANTED}/{0}; printf 'GET /page.txt HTTP/1.1\\r\\nHost: \
             {GRANTED}:{0}\\r\\n\\r\\n' >&3; while read -r line <&3 && [ \"$line\" != PAGE ]; do :; done",
            net_env.plain.port
        );
        let ran = net_env.run(&script);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.events("connection").len(), 1, "{ran:?}");
    }
}
