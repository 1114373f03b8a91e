//! Names that are looked up: a question about one that is not granted goes nowhere, and is told.

use fixtures::users;

use super::servers::{GRANTED, NetworkEnv, OTHER, UNSET};

#[test]
fn a_lookup_that_is_refused_is_told_and_stops_only_where_the_user_says_so() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let script = format!("getent hosts {OTHER}; echo $?; echo next");
        for (action, lookups, stops) in [
            ("deny", "deny", false),
            ("deny", "stop", false),
            ("stop", "deny", false),
            ("stop", "stop", true),
        ] {
            let more = format!("[violation]\naction = \"{action}\"\nlookups = \"{lookups}\"\n");
            net_env.configure(&more, &net_env.grants());
            let ran = net_env.run(&script);
            let (code, stdout) = if stops { (77, "") } else { (0, "2\nnext\n") };
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), stdout), "{ran:?}");
            let violations = ran.violations();
            let [violation] = &violations[..] else { panic!("{ran:?}") };
            assert_eq!(violation["class"], if stops { "stop" } else { "deny" }, "{ran:?}");
            assert_eq!(violation["operation"], "look_up", "{ran:?}");
            assert_eq!(violation["path"], OTHER, "{ran:?}");
            assert_eq!(violation["program"]["argv"][0], "getent", "{ran:?}");
            assert_eq!(violation["rule"], "network.allowed_domains", "{ran:?}");
            for part in ["getent", "tried to look up", OTHER, "ringwall grant domain"] {
                assert!(ran.stderr.contains(part), "{part}: {ran:?}");
            }
        }
    }
}

/// The default leaves lookups to be told: tools look names up that they never connect to.
#[test]
fn by_default_a_lookup_stops_nothing() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        net_env.configure("", &net_env.grants());
        let ran = net_env.run(&format!("{UNSET}curl -sS http://{OTHER}/; echo next"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "next\n"), "{ran:?}");
        assert_eq!(ran.violations()[0]["class"], "deny", "{ran:?}");
        assert_eq!(ran.violations()[0]["program"]["argv"][0], "curl", "{ran:?}");
    }
}

/// A name is an answer from inside; what lies behind it is looked up by nobody inside.
#[test]
fn a_granted_name_has_an_address_that_is_made_up() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let ask = "import socket; print(socket.getaddrinfo(\"NAME\", None, 0, 1)[0][4][0])";
        let ask = ask.replace("NAME", GRANTED);
        let ran = net_env.run(&format!("python3 -c '{ask}'"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.starts_with("198.18."), "{ran:?}");
        assert_eq!(ran.violations().len(), 0, "{ran:?}");
    }
}

/// A name that was granted for one port is not reached on another, and that is told by its name.
#[test]
fn a_port_that_is_not_granted_is_named_with_its_host() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let port = net_env.witness.port;
        for (unset, action) in [("", "stop"), (UNSET, "stop"), ("", "deny"), (UNSET, "deny")] {
            let more = format!("[violation]\naction = \"{action}\"\n");
            net_env.configure(&more, &net_env.grants());
            let ran = net_env.run(&format!("{unset}curl -sS http://{GRANTED}:{port}/; echo next"));
            let expected = if action == "stop" { (77, "") } else { (0, "next\n") };
            assert_eq!(ran.code, Some(expected.0), "{ran:?}");
            assert!(ran.stdout.ends_with(expected.1), "{ran:?}");
            let violations = ran.violations();
            assert_eq!(violations[0]["path"], format!("{GRANTED}:{port}"), "{ran:?}");
            assert_eq!(violations[0]["program"]["argv"][0], "curl", "{ran:?}");
            assert!(violations[0]["program"]["pid"].as_u64().unwrap() < 100, "{ran:?}");
            let grant = format!("ringwall grant domain {GRANTED}:{port}");
            assert!(ran.stderr.contains(&grant), "{ran:?}");
            net_env.assert_unseen(&ran);
        }
    }
}
