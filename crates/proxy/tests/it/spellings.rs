//! The table: spellings of hosts and of requests, and what each gets over a real socket.
//!
//! A row that is refused must reach no server at all, on any route.

use std::io::Write;
use std::net::Ipv4Addr;

use crate::support::{Origin, Setup, TestProxy, read_all, status};

/// A spelling, and whether it passes where these names are granted, and where this machine's
/// address is.
const HOSTS: &[(&str, bool, bool)] = &[
    // Names that are granted, in every honest spelling.
    ("example.org", true, false),
    ("EXAMPLE.ORG", true, false),
    ("eXaMpLe.oRg", true, false),
    ("example.org.", true, false),
    ("a.example.net", true, false),
    ("a.b.c.example.net", true, false),
    ("A.EXAMPLE.NET.", true, false),
    ("_srv.example.net", true, false),
    ("a--b.example.net", true, false),
    ("xn--bcher-kva.example", true, false),
    ("XN--BCHER-KVA.example", true, false),
    // Names that are like them.
    ("example.net", false, false),
    ("www.example.org", false, false),
    ("evil.example", false, false),
    ("evilexample.org", false, false),
    ("evil-example.org", false, false),
    ("example.org.evil.example", false, false),
    ("example.orgx", false, false),
    ("xexample.net", false, false),
    ("example.net.evil.example", false, false),
    ("exampl.org", false, false),
    ("example.com", false, false),
    ("org", false, false),
    ("xn--e1afmkfd.example", false, false),
    ("xn--exmple-cua.org", false, false),
    ("bucher.example", false, false),
    // What is no host at all.
    ("example.org..", false, false),
    (".example.org", false, false),
    ("example..org", false, false),
    ("*.example.net", false, false),
    ("*", false, false),
    ("-a.example.net", false, false),
    ("a-.example.net", false, false),
    ("exa%6dple.org", false, false),
    ("example%2eorg", false, false),
    ("example.org%00.evil.example", false, false),
    ("evil.example%00.example.org", false, false),
    ("evil.example%23.example.net", false, false),
    ("user@example.org", false, false),
    ("example.org@evil.example", false, false),
    ("user:pass@example.org", false, false),
    ("evil.example,example.org", false, false),
    ("evil.example;example.org", false, false),
    ("evil.example\\.example.net", false, false),
    ("evil.example\\@example.org", false, false),
    ("example.org:80", false, false),
    ("example.org:", false, false),
    ("xn--a.example.net", false, false),
    ("\"example.org\"", false, false),
    ("{example.org}", false, false),
    ("example.org|evil.example", false, false),
    ("[example.org]", false, false),
    ("[::1", false, false),
    ("::1]", false, false),
    // This machine, in every spelling.
    ("127.0.0.1", false, true),
    ("127.0.0.1.", false, true),
    ("127.1", false, true),
    ("127.0.1", false, true),
    ("2130706433", false, true),
    ("0x7f000001", false, true),
    ("0x7F.0.0.1", false, true),
    ("0x7f.1", false, true),
    ("017700000001", false, true),
    ("0177.0.0.1", false, true),
    ("0177.0.0.01", false, true),
    ("[::ffff:127.0.0.1]", false, true),
    ("[::ffff:7f00:1]", false, true),
    ("[0:0:0:0:0:ffff:7f00:0001]", false, true),
    // Other addresses, and numbers that are none.
    ("127.0.0.2", false, false),
    ("0.0.0.0", false, false),
    ("0", false, false),
    ("0x", false, false),
    ("localhost", false, false),
    ("LOCALHOST.", false, false),
    ("a.localhost", false, false),
    ("[::1]", false, false),
    ("[::]", false, false),
    ("[::127.0.0.1]", false, false),
    ("[64:ff9b::127.0.0.1]", false, false),
    ("[2002:7f00:1::]", false, false),
    ("[fe80::1%25eth0]", false, false),
    ("[fe80::1%lo]", false, false),
    ("[::1%25lo]", false, false),
    ("169.254.169.254", false, false),
    ("[fd00:ec2::254]", false, false),
    ("100.100.100.200", false, false),
    ("168.63.129.16", false, false),
    ("10.0.0.1", false, false),
    ("192.168.0.1", false, false),
    ("198.18.0.1", false, false),
    ("198.19.255.255", false, false),
    ("256.0.0.1", false, false),
    ("127.0.0.256", false, false),
    ("127.0.0.1.1", false, false),
    ("127.0.0.08", false, false),
    ("4294967296", false, false),
    ("1.2.3.4.example.0", false, false),
    ("example.org.127.0.0.1", false, false),
    ("[127.0.0.1]", false, false),
];

/// Names in bytes that only SOCKS can carry, and whether they pass where names are granted.
const SOCKS_NAMES: &[(&[u8], bool)] = &[
    ("bücher.example".as_bytes(), true),
    ("BÜCHER.example".as_bytes(), true),
    ("ｅｘａｍｐｌｅ.org".as_bytes(), true),
    ("example。org".as_bytes(), true),
    ("exаmple.org".as_bytes(), false),
    ("example\u{2024}org".as_bytes(), false),
    (b"evil.example\0.example.net", false),
    (b"example.org\0", false),
    (b"\0example.org", false),
    (b"example.org\r\n", false),
    (b"example.org ", false),
    (b" example.org", false),
    (b"exam ple.org", false),
    (b"example.org\t", false),
    (b"example.org\x7f", false),
    (b"example.org\xff", false),
    (b"example.org\xc0\x80", false),
    (b"example.org/", false),
    (b"http://example.org", false),
    (b"example.org#", false),
    (b"example.org?", false),
    (b"", false),
    (b".", false),
];

fn world() -> (TestProxy, TestProxy, Origin) {
    let origin = Origin::start();
    let port = origin.port;
    let entry = |name: &str| format!("{name}:{port}");
    let names = ["example.org", "*.example.net", "bücher.example"].map(entry);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut setup = Setup::granting(&names);
    // Every name exists, so that a wrong verdict would be seen.
    for (name, ..) in HOSTS {
        let name = name.trim_end_matches('.').to_lowercase();
        setup.names.push((name, vec![Ipv4Addr::LOCALHOST.into()]));
    }
    let named = setup.start();
    let address = Setup::granting(&[&entry("127.0.0.1")]).start();
    (named, address, origin)
}

/// Whether a request over each route reached the server.
fn reaches(world: &TestProxy, origin: &Origin, host: &str) -> [bool; 3] {
    let port = origin.port;
    let count = || origin.heads().len();
    let plain = format!("GET / HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    let before = count();
    let request = format!(
        "GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    );
    let code = status(&world.say(request.as_bytes()));
    let http = count() > before;
    assert_eq!(code == 200, http, "http {host:?}: {code}");
    assert!(http || matches!(code, 400 | 403), "http {host:?}: {code}");

    let before = count();
    let (mut stream, code) = world.connect(&format!("{host}:{port}"));
    if code == 200 {
        stream.write_all(plain.as_bytes()).unwrap();
        let answer = read_all(&mut stream);
        assert_eq!(status(&answer), 200, "connect {host:?}: {}", answer.escape_ascii());
    }
    let connect = count() > before;
    assert!(connect || matches!(code, 400 | 403), "connect {host:?}: {code}");

    let before = count();
    let (mut stream, code) = world.socks(host.as_bytes(), port);
    if code == 0 {
        stream.write_all(plain.as_bytes()).unwrap();
        let answer = read_all(&mut stream);
        assert_eq!(status(&answer), 200, "socks {host:?}: {}", answer.escape_ascii());
    }
    let socks = count() > before;
    assert!(socks || code == 2, "socks {host:?}: {code}");
    [http, connect, socks]
}

#[test]
fn every_spelling_of_a_host_means_the_same_on_every_route() {
    let (named, address, origin) = world();
    for (host, as_name, as_address) in HOSTS {
        assert_eq!(
            reaches(&named, &origin, host),
            [*as_name; 3],
            "{host:?} where names are granted"
        );
        let got = reaches(&address, &origin, host);
        assert_eq!(got, [*as_address; 3], "{host:?} where the address is granted");
    }
    for refusal in named.witness.refusals.lock().unwrap().iter() {
        assert!(!refusal.reason.text.is_empty(), "{refusal:?}");
    }
}

#[test]
fn socks_carries_any_bytes_and_they_change_nothing() {
    let (named, _, origin) = world();
    for (name, passes) in SOCKS_NAMES {
        let (_, code) = named.socks(name, origin.port);
        assert_eq!(code == 0, *passes, "{}: {code}", name.escape_ascii());
        assert!(matches!(code, 0 | 2), "{}: {code}", name.escape_ascii());
    }
    // Addresses in their own form are judged like those in text.
    let port = origin.port.to_be_bytes();
    let mapped = [&[5, 1, 0, 4][..], &[0; 10], &[0xff, 0xff, 127, 0, 0, 1], &port].concat();
    let plain = [&[5, 1, 0, 1, 127, 0, 0, 1][..], &port].concat();
    for request in [&mapped, &plain] {
        assert_eq!(named.socks_raw(request).1, 2);
    }
    // What is not asked for in the right way is not served.
    assert_eq!(named.socks_raw(&[5, 2, 0, 1, 127, 0, 0, 1, 0, 80]).1, 7);
    assert_eq!(named.socks_raw(&[5, 3, 0, 1, 127, 0, 0, 1, 0, 80]).1, 7);
    assert_eq!(named.socks_raw(&[5, 1, 0, 9, 127, 0, 0, 1, 0, 80]).1, 8);
    assert_eq!(named.socks_raw(&[5, 1, 0, 1, 127, 0, 0, 1, 0, 0]).1, 1);
    assert_eq!(named.say(&[5, 1, 2]), [5, 0xff]);
    assert_eq!(named.say(&[4, 1, 0, 80, 127, 0, 0, 1, 0]), b"");
}

/// Whole requests, with `P` for the port of the server, and the status each gets. 200 means that it
/// reached the server, 0 that the proxy has closed without a word; nothing else reaches it.
const REQUESTS: &[(&str, u16)] = &[
    ("GET http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nConnection: close\r\n\r\n", 200),
    ("GET http://example.org:P HTTP/1.1\r\nHost: example.org:P\r\nConnection: close\r\n\r\n", 200),
    (
        "GET http://example.org:P?q HTTP/1.1\r\nHost: example.org:P\r\nConnection: close\r\n\r\n",
        200,
    ),
    ("GET HTTP://EXAMPLE.ORG:P/ HTTP/1.1\r\nHost: Example.org\r\nConnection: close\r\n\r\n", 200),
    ("GET http://example.org:P/ HTTP/1.0\r\n\r\n", 200),
    (
        "\r\nGET http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nConnection: close\r\n\r\n",
        0,
    ),
    (
        "POST http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
        200,
    ),
    (
        "FROB http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nConnection: close\r\n\r\n",
        200,
    ),
    // Another host in one of the places.
    ("GET http://evil.example:P/ HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("GET http://example.org:P/ HTTP/1.1\r\nHost: evil.example:P\r\n\r\n", 403),
    ("GET http://example.org:P/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
    ("GET http://example.org:P/ HTTP/1.1\r\nHost: example.org:1\r\n\r\n", 403),
    ("GET http://example.org:P/ HTTP/1.1\r\nHost: 127.0.0.1:P\r\n\r\n", 403),
    ("GET http://example.org:1/ HTTP/1.1\r\nHost: example.org:1\r\n\r\n", 403),
    ("GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n", 403),
    ("GET http://user@example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("GET http://example.org:P@evil.example/ HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("GET http://example.org:P\\@evil.example/ HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("GET http://example.org:0/ HTTP/1.1\r\nHost: example.org:0\r\n\r\n", 403),
    ("GET http://example.org:65536/ HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("GET http://example.org:/ HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("GET http:///x HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("CONNECT evil.example:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n", 403),
    ("CONNECT example.org:P HTTP/1.1\r\nHost: evil.example:P\r\n\r\n", 403),
    ("CONNECT example.org HTTP/1.1\r\nHost: example.org\r\n\r\n", 403),
    ("CONNECT example.org:0 HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("CONNECT example.org:65536 HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("CONNECT example.org:+P HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("CONNECT ::1:P HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("CONNECT http://example.org:P HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("CONNECT /x HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 403),
    ("GET http://example.org:P/ HTTP/1.1\r\nHost: example.org:P, evil.example\r\n\r\n", 403),
    ("GET http://example.org:P/ HTTP/1.1\r\nHost:\r\n\r\n", 403),
    // What could be read in two ways.
    ("GET http://example.org:P/ HTTP/1.1\r\n\r\n", 400),
    (
        "GET http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nHost: evil.example\r\n\r\n",
        400,
    ),
    (
        "GET http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nHost: example.org:P\r\n\r\n",
        400,
    ),
    ("GET http://example.org:P/ HTTP/1.1\r\nHost : example.org:P\r\n\r\n", 400),
    ("GET http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\n X: folded\r\n\r\n", 400),
    (
        "GET http://example.org:P/ HTTP/1.1\r\nX: y\r\n\tHost: evil.example\r\nHost: example.org:P\r\n\r\n",
        400,
    ),
    ("GET http://example.org:P/ HTTP/1.1\nHost: example.org:P\n\n", 400),
    ("GET http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\nX: y\r\n\r\n", 400),
    ("GET http://example.org:P/ HTTP/1.1\r\nX: a\rb\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET http://example.org:P/ HTTP/1.1\r\nX: a\0b\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET http://example.org:P/ HTTP/1.1\r\nX y: a\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET http://example.org:P/ HTTP/1.1\r\nX: a\r\nnocolon\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET  http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET http://example.org:P/ x HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET http://example.org:P/ HTTP/1.2\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET http://example.org:P/ HTTP/2.0\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET http://example.org:P/\r\n\r\n", 400),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 400),
    ("OPTIONS * HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET * HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET example.org:P HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET https://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET ftp://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET file:///etc/passwd HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 400),
    ("GET http://example.org:P#x HTTP/1.1\r\nHost: example.org:P\r\n\r\n", 400),
    (
        "POST http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        400,
    ),
    (
        "POST http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nContent-Length: 1, 1\r\n\r\nx",
        400,
    ),
    (
        "POST http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nContent-Length: -1\r\n\r\nx",
        400,
    ),
    (
        "POST http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nContent-Length: 1e1\r\n\r\nx",
        400,
    ),
    (
        "POST http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    (
        "POST http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        400,
    ),
    (
        "POST http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    (
        "POST http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
        400,
    ),
    (
        "POST http://example.org:P/ HTTP/1.0\r\nHost: example.org:P\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    ("GET http://example.org:P/ HTTP/1.1\r\nHost: example.org:P\r\nConnection: host\r\n\r\n", 400),
];

#[test]
fn every_request_is_for_one_host_and_ends_in_one_place() {
    let (named, _, origin) = world();
    for (request, expected) in REQUESTS {
        let before = origin.heads().len();
        let request = request.replace(":P", &format!(":{}", origin.port));
        let request = request.replace(":+P", &format!(":+{}", origin.port));
        let answer = named.say(request.as_bytes());
        assert_eq!(status(&answer), *expected, "{request:?}: {}", answer.escape_ascii());
        let reached = origin.heads().len() - before;
        assert_eq!(reached, usize::from(*expected == 200), "{request:?}");
    }
    assert!(HOSTS.len() + SOCKS_NAMES.len() + REQUESTS.len() >= 120);
}
