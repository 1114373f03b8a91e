//! A name that is not granted stops the run; a grant, by hand or by command, lets it pass.

use fixtures::{Server, TestEnv, users};

use super::servers::{GRANTED, PAGE, UNSET, run};

const CLIENTS: [(&str, &str); 2] = [
    ("curl", "curl -sS URL"),
    (
        "python3",
        "python3 -c 'import sys, urllib.request as r\n\
         sys.stdout.write(r.urlopen(sys.argv[1]).read().decode())' URL",
    ),
];

fn env(who: fixtures::User) -> (TestEnv, Server) {
    let env = TestEnv::new(who);
    env.write("served/page.txt", PAGE);
    let server = Server::plain(env.path("served"));
    (env, server)
}

#[test]
fn a_name_that_is_not_granted_stops_the_run_until_it_is() {
    for who in users() {
        for (program, script) in CLIENTS {
            for by_command in [false, true] {
                let (env, server) = env(who);
                let target = format!("{GRANTED}:{}", server.port);
                let fetch = script.replace("URL", &format!("http://{target}/page.txt"));
                let script = format!("echo made > made.txt; {fetch}; echo next; touch next.txt");

                let ran = run(&env, &[], &script);
                assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{ran:?}");
                assert_eq!(env.read("project/made.txt"), "made\n");
                assert!(!env.path("project/next.txt").exists(), "{ran:?}");
                let file = env.project().join("ringwall.toml").display().to_string();
                let line = format!("network.allowed_domains = [\"{target}\"]");
                let grant = format!("ringwall grant domain {target}");
                for part in ["tried to connect to", &target, program, &grant] {
                    assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
                }
                let violation = ran.violations()[0];
                let remedy = violation["remedy"].as_str().unwrap();
                assert!(remedy.contains(&line) && remedy.contains(&file), "{remedy}");
                assert_eq!(violation["class"], "stop", "{ran:?}");
                assert_eq!(violation["operation"], "connect", "{ran:?}");
                assert_eq!(violation["path"], target, "{ran:?}");
                assert_eq!(server.seen().connections, 0, "{ran:?}");

                // Only what leads to this machine itself needs a line that no command writes.
                let private = format!("[network]\nprivate_domains = [\"{target}\"]\n");
                if by_command {
                    env.write("home/.config/ringwall/ringwall.toml", &private);
                    let granted = env.ringwall(&["grant", "domain", &target]);
                    assert!(granted.status.success(), "{granted:?}");
                    assert!(env.read("project/ringwall.toml").contains(&target));
                } else {
                    let text = format!("{private}allowed_domains = [\"{target}\"]\n");
                    env.write("home/.config/ringwall/ringwall.toml", &text);
                }
                let ran = run(&env, &[], &script);
                let expected = format!("{PAGE}next\n");
                assert_eq!((ran.code, ran.stdout), (Some(0), expected), "{}", ran.stderr);
                assert_eq!(server.seen().requests.len(), 1);
            }
        }
    }
}

/// A client that sees its refusal could act on it before everything is killed. It must not.
#[test]
fn nothing_happens_after_the_attempt_that_stops_a_run() {
    for who in users() {
        let (env, server) = env(who);
        let url = format!("http://{GRANTED}:{}/page.txt", server.port);
        env.write(
            "home/.config/ringwall/ringwall.toml",
            "[violation]\naction = \"stop\"\nlookups = \"stop\"\n",
        );
        for unset in ["", UNSET] {
            for _ in 0..20 {
                // The client itself says what it has seen, at once.
                let script = format!("{unset}curl -sS {url} || echo seen > seen.txt");
                let ran = run(&env, &[], &script);
                assert_eq!(ran.code, Some(77), "{ran:?}");
                assert!(!ran.stderr.contains("curl: ("), "{ran:?}");
                assert!(!env.path("project/seen.txt").exists(), "{ran:?}");
            }
        }
        assert_eq!(server.seen().connections, 0);
    }
}
