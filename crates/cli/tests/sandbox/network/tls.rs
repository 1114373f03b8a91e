//! TLS has to name the server that was asked for, and plain requests the host.

use fixtures::{RunOutput, has, users};

use super::servers::{GRANTED, NetworkEnv, OTHER, PAGE};

/// A client that says too little or something else, and the rule that refuses it. `TLS`, `PLAIN` and
/// `PROXY` stand for ports.
const REFUSED: &[(&str, &str)] = &[
    // Another server than the one that was looked up.
    (
        "echo | openssl s_client -connect granted.example.org:TLS -servername other.example.org",
        "server-name",
    ),
    // Another server than the one that was asked for with CONNECT.
    (
        "curl -sS --cacert authority.crt --connect-to \
         other.example.org:TLS:granted.example.org:TLS https://other.example.org:TLS/page.txt",
        "server-name",
    ),
    (
        "echo | openssl s_client -proxy 127.0.0.1:PROXY -connect granted.example.org:TLS \
         -servername other.example.org",
        "server-name",
    ),
    (
        "curl -sS --socks5-hostname 127.0.0.1:PROXY --cacert authority.crt --connect-to \
         other.example.org:TLS:granted.example.org:TLS https://other.example.org:TLS/page.txt",
        "server-name",
    ),
    // No server at all.
    (
        "echo | openssl s_client -connect granted.example.org:TLS -noservername",
        "network.allow_without_sni",
    ),
    (
        "echo | openssl s_client -proxy 127.0.0.1:PROXY -connect granted.example.org:TLS \
         -noservername",
        "network.allow_without_sni",
    ),
    (
        "python3 -c '
import socket, ssl
context = ssl.create_default_context(cafile=\"authority.crt\")
context.check_hostname = False
stream = context.wrap_socket(socket.create_connection((\"granted.example.org\", TLS)))
stream.sendall(b\"GET /page.txt HTTP/1.1\\r\\nHost: other\\r\\n\\r\\n\")'",
        "network.allow_without_sni",
    ),
    // An address, with the granted name in what is said there.
    (
        "curl -sS -H 'Host: granted.example.org:PLAIN' http://127.0.0.1:PLAIN/page.txt",
        "network.allow_local_ports",
    ),
    (
        "curl -sS --noproxy '' -x http://127.0.0.1:PROXY -H 'Host: granted.example.org:PLAIN' \
         http://127.0.0.1:PLAIN/page.txt",
        "network.allow_local_ports",
    ),
    (
        "curl -sS -x socks5://127.0.0.1:PROXY --noproxy '' --cacert authority.crt \
         --connect-to granted.example.org:TLS:127.0.0.1:TLS https://granted.example.org:TLS/page.txt",
        "network.allow_local_ports",
    ),
    // Another host than the one that was asked for, in the clear.
    (
        "curl -sS -H 'Host: other.example.org:PLAIN' http://granted.example.org:PLAIN/page.txt",
        "request-host",
    ),
    (
        "curl -sS -p -H 'Host: other.example.org:PLAIN' http://granted.example.org:PLAIN/page.txt",
        "request-host",
    ),
    (
        "curl -sS --noproxy '*' -H 'Host: other.example.org:PLAIN' \
         http://granted.example.org:PLAIN/page.txt",
        "request-host",
    ),
];

#[test]
fn what_is_meant_for_another_server_never_gets_to_the_granted_one() {
    if !has("openssl") {
        return;
    }
    for who in users() {
        let net_env = NetworkEnv::new(who);
        for (script, rule) in REFUSED {
            let ran = net_env.run(&with_ports(&net_env, script));
            // The granted server was dialled, perhaps, and heard not one byte.
            for server in [&net_env.plain, &net_env.tls] {
                let seen = server.take();
                assert_eq!((seen.spoken, seen.requests.len()), (0, 0), "{script}: {ran:?}");
            }
            net_env.assert_unseen(&ran);
            let rules: Vec<_> = ran.violations().iter().map(|it| it["rule"].clone()).collect();
            assert_eq!(rules, [*rule], "{script}: {ran:?}");
            assert!(!ran.stdout.contains("PAGE"), "{script}: {ran:?}");
        }
    }
}

/// The second of two requests on one connection is judged as the first was.
#[test]
fn a_second_request_for_another_host_is_refused_too() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let port = net_env.plain.port;
        for target in [format!("{GRANTED} {port}"), "127.0.0.1 978".into()] {
            let whole =
                if target.ends_with("978") { "http://granted.example.org:PLAIN" } else { "" };
            let script = format!(
                "exec 3<>/dev/tcp/{}; printf 'GET {whole}/page.txt HTTP/1.1\\r\\n\
                 Host: granted.example.org:PLAIN\\r\\n\\r\\nGET {whole}/page.txt HTTP/1.1\\r\\n\
                 Host: other.example.org:PLAIN\\r\\n\\r\\n' >&3; cat <&3",
                target.replace(' ', "/")
            );
            let ran = net_env.run(&with_ports(&net_env, &script));
            let requests = net_env.plain.take().requests;
            let hosts: Vec<_> = requests.iter().map(|request| request.host.as_str()).collect();
            assert_eq!(hosts, [format!("{GRANTED}:{port}")], "{script}: {ran:?}");
            assert_eq!(ran.stdout.matches("PAGE").count(), 1, "{script}: {ran:?}");
            assert_eq!(ran.violations()[0]["rule"], "request-host", "{script}: {ran:?}");
        }
    }
}

/// The limit of all this: a request inside TLS cannot be seen, so a server that bears the granted
/// name may be asked for any other that it also serves.
#[test]
fn what_is_asked_for_inside_tls_is_not_seen() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let script = "curl -sS --cacert authority.crt -H 'Host: other.example.org' \
            https://granted.example.org:TLS/page.txt";
        let ran = net_env.run(&with_ports(&net_env, script));
        assert_page(&ran);
        let requests = net_env.tls.take().requests;
        assert_eq!((requests[0].host.as_str(), requests[0].path.as_str()), (OTHER, "/page.txt"));
    }
}

#[test]
fn tls_without_a_name_passes_where_the_user_says_so() {
    if !has("openssl") {
        return;
    }
    for who in users() {
        let net_env = NetworkEnv::new(who);
        net_env.configure("allow_without_sni = true\n", &net_env.grants());
        let request = "GET /page.txt HTTP/1.0\\r\\nHost: granted.example.org\\r\\n\\r\\n";
        let script = format!(
            "printf '{request}' | openssl s_client -quiet -CAfile authority.crt \
             -connect granted.example.org:TLS -noservername | grep PAGE"
        );
        let ran = net_env.run(&with_ports(&net_env, &script));
        assert_page(&ran);
        // It may stay silent about its server, but not name another.
        let script = "echo | openssl s_client -connect granted.example.org:TLS -servername \
            other.example.org; true";
        let ran = net_env.run(&with_ports(&net_env, script));
        assert_eq!(ran.code, Some(77), "{ran:?}");
    }
}

fn assert_page(ran: &RunOutput) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), PAGE), "{ran:?}");
    assert_eq!(ran.violations().len(), 0, "{ran:?}");
}

fn with_ports(net_env: &NetworkEnv, script: &str) -> String {
    [("PLAIN", net_env.plain.port), ("TLS", net_env.tls.port), ("PROXY", 978)]
        .iter()
        .fold(script.to_owned(), |script, (name, port)| script.replace(name, &port.to_string()))
}
