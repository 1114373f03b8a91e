//! Plain HTTP through the proxy: what is passed on, and what holds for every request.

use std::io::{Read, Write};

use fixtures::serve;
use proxy::Route;

use crate::support::{Origin, Setup, Temper, TestProxy, read_all, read_head, status};

fn world() -> (TestProxy, Origin) {
    let origin = Origin::start();
    let entry = format!("example.org:{}", origin.port);
    (Setup::granting(&[&entry]).named("example.org").named("evil.example").start(), origin)
}

fn get(port: u16, path: &str) -> Vec<u8> {
    format!(
        "GET http://example.org:{port}{path} HTTP/1.1\r\nHost: example.org:{port}\r\nConnection: \
         close\r\nProxy-Authorization: Basic eA==\r\nX-Mine: 1\r\n\r\n"
    )
    .into_bytes()
}

#[test]
fn a_request_is_passed_on_in_its_plain_form() {
    let (world, origin) = world();
    let answer = world.say(&get(origin.port, "/a?b"));
    assert_eq!(status(&answer), 200, "{}", answer.escape_ascii());
    let heads = origin.heads();
    let expected =
        format!("GET /a?b HTTP/1.1\r\nHost: example.org:{}\r\nX-Mine: 1\r\n\r\n", origin.port);
    assert_eq!(heads, [expected]);
    let connection = world.witness.connection();
    assert_eq!((connection.host.as_str(), connection.port), ("example.org", origin.port));
    assert_eq!((connection.route, connection.address.port()), (Route::Http, origin.port));
    assert!(connection.sent > 50 && connection.received > 50, "{connection:?}");
}

#[test]
fn every_way_to_end_a_response_is_understood() {
    let (world, origin) = world();
    for path in ["/plain", "/chunked", "/close"] {
        let answer = world.say(&get(origin.port, path));
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert_eq!(status(&answer), 200, "{text}");
        assert!(text.contains("X-Mine: 1"), "{text}");
        assert!(!text.contains("X-Trailer") && !text.contains("x=y"), "{text}");
    }
}

#[test]
fn a_connection_serves_many_requests_and_each_is_judged() {
    let (world, origin) = world();
    let port = origin.port;
    let mut stream = world.dial();
    let request = |method: &str, host: &str, tail: &str| {
        format!("{method} http://{host}:{port}/x HTTP/1.1\r\nHost: {host}:{port}\r\n{tail}")
    };
    // All at once: two that are fine, with bodies in both forms, a HEAD, and one that is not.
    let all = [
        request("POST", "example.org", "Content-Length: 5\r\n\r\nhello"),
        request("POST", "example.org", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        request("HEAD", "example.org", "\r\n"),
        request("GET", "evil.example", "\r\n"),
        request("GET", "example.org", "\r\n"),
    ];
    stream.write_all(all.concat().as_bytes()).unwrap();
    let answer = String::from_utf8(read_all(&mut stream)).unwrap();
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 3, "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 403").count(), 1, "{answer}");
    assert!(answer.contains("hello") && answer.contains("abc"), "{answer}");
    assert_eq!(origin.heads().len(), 3, "what follows a refusal is not looked at");
    assert_eq!(origin.accepted.load(std::sync::atomic::Ordering::SeqCst), 1, "not kept alive");
    assert_eq!(world.witness.rules(), ["network.allowed_domains"]);
}

#[test]
fn a_refusal_says_what_who_and_how_to_allow_it() {
    let (world, origin) = world();
    let answer = world.say(b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    let text = String::from_utf8(answer).unwrap();
    assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
    for word in [
        "evil.example",
        "network.allowed_domains",
        "ringwall grant domain evil.example",
        "network.allowed_domains = [\"evil.example\"]",
    ] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
    let refusals = world.witness.refusals.lock().unwrap();
    let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
    assert_eq!((refusal.host.as_str(), refusal.port), ("evil.example", 80));
    let (end, listener) = (refusal.client.end, refusal.client.listener);
    assert!(end.ip().is_loopback() && end.port() != 0);
    assert_eq!(listener, world.proxy);
    assert_eq!(origin.heads().len(), 0);
}

#[test]
fn the_host_field_must_be_the_target_on_every_route() {
    let (world, origin) = world();
    let port = origin.port;
    let fronted = format!("GET http://example.org:{port}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(status(&world.say(fronted.as_bytes())), 403);
    let inner = format!(
        "GET / HTTP/1.1\r\nHost: example.org:{port}\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    );
    let target = format!("example.org:{port}");
    let (mut stream, code) = world.connect(&target);
    assert_eq!(code, 200);
    stream.write_all(inner.as_bytes()).unwrap();
    let text = String::from_utf8(read_all(&mut stream)).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("HTTP/1.1 403"), "{text}");
    let (mut stream, code) = world.socks(b"example.org", port);
    assert_eq!(code, 0);
    stream.write_all(inner.as_bytes()).unwrap();
    let text = String::from_utf8(read_all(&mut stream)).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("HTTP/1.1 403"), "{text}");
    assert_eq!(world.witness.rules(), ["request-host"; 3]);
    assert_eq!(origin.heads().len(), 2);
}

#[test]
fn a_websocket_passes_once_the_server_agrees_and_h2c_never() {
    let port = serve(|mut stream| {
        let head = String::from_utf8(read_head(&mut stream).unwrap()).unwrap();
        if !head.to_lowercase().contains("upgrade: websocket") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
            return;
        }
        let _ = stream.write_all(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi",
        );
        let mut buffer = [0; 64];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            stream.write_all(&buffer[..count]).unwrap();
        }
    });
    let world = Setup::granting(&[&format!("example.org:{port}")]).named("example.org").start();
    let ask = |upgrade: &str| {
        format!(
            "GET http://example.org:{port}/ HTTP/1.1\r\nHost: example.org:{port}\r\nConnection: \
             Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\nHTTP2-Settings: AAMA\r\n\r\n"
        )
    };
    let mut stream = world.dial();
    stream.write_all(ask("websocket").as_bytes()).unwrap();
    assert_eq!(status(&read_head(&mut stream).unwrap()), 101);
    stream.write_all(b"\x81\x02yo").unwrap();
    let mut back = [0; 6];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hi\x81\x02yo");
    let mut stream = world.dial();
    stream.write_all(ask("h2c").as_bytes()).unwrap();
    assert_eq!(status(&read_head(&mut stream).unwrap()), 200);
}

#[test]
fn an_early_answer_and_a_long_body_do_not_lock_each_other() {
    let port = serve(|mut stream| {
        let _ = read_head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
        let _ = read_all(&mut stream);
    });
    let world = Setup::granting(&[&format!("example.org:{port}")]).named("example.org").start();
    let mut stream = world.dial();
    let head = format!(
        "POST http://example.org:{port}/ HTTP/1.1\r\nHost: example.org:{port}\r\nContent-Length: \
         100000000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(status(&read_head(&mut stream).unwrap()), 413);
}

#[test]
fn a_server_that_talks_nonsense_is_a_bad_gateway() {
    for nonsense in
        ["hello\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", ""]
    {
        let port = serve(move |mut stream| {
            let _ = read_head(&mut stream);
            let _ = stream.write_all(nonsense.as_bytes());
        });
        let world = Setup::granting(&[&format!("example.org:{port}")]).named("example.org").start();
        assert_eq!(status(&world.say(&get(port, "/"))), 502, "{nonsense:?}");
    }
    // Nobody listens on port 1.
    let world = Setup::granting(&["example.org:1"]).named("example.org").start();
    assert_eq!(world.connect("example.org:1").1, 502);
    assert_eq!(world.socks(b"example.org", 1).1, 4);
    assert_eq!(world.witness.rules().len(), 0, "that is no violation");
}

#[test]
fn other_protocols_pass_as_they_are_whoever_speaks_first() {
    let port = serve(|mut stream| {
        stream.write_all(b"SSH-2.0-server\r\n").unwrap();
        let mut buffer = [0; 64];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            stream.write_all(&buffer[..count]).unwrap();
        }
    });
    let world =
        Setup::granting(&[&format!("git.example.org:{port}")]).named("git.example.org").start();
    let mut greeting = [0; 16];
    // The client waits for the server.
    let (mut stream, code) = world.connect(&format!("git.example.org:{port}"));
    assert_eq!(code, 200);
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"SSH-2.0-server\r\n");
    stream.write_all(b"SSH-2.0-client v\r\n").unwrap();
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"SSH-2.0-client v");
    // The client speaks first.
    let (mut stream, code) = world.socks(b"git.example.org", port);
    assert_eq!(code, 0);
    stream.write_all(b"SSH-2.0-client v\r\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut stream), b"SSH-2.0-server\r\nSSH-2.0-client v\r\n");
    assert_eq!(world.witness.rules().len(), 0);
}

#[test]
fn an_observer_that_stops_ends_everything() {
    let origin = Origin::start();
    let entry = format!("example.org:{}", origin.port);
    let setup = Setup { temper: Temper::Stops, ..Setup::granting(&[&entry]).named("example.org") };
    let mut world = setup.start();
    let (mut standing, code) = world.connect(&entry);
    assert_eq!(code, 200);
    let answer = world.say(b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(answer, b"", "nothing is said when everything is stopped");
    assert_eq!(world.running.take().unwrap().wait(), proxy::Ended::Stopped);
    assert_eq!(read_all(&mut standing), b"");
    assert!(std::net::TcpStream::connect(world.proxy).is_err());
}

#[test]
fn a_panic_ends_everything() {
    let origin = Origin::start();
    let entry = format!("example.org:{}", origin.port);
    let setup = Setup { temper: Temper::Panics, ..Setup::granting(&[&entry]).named("example.org") };
    let mut world = setup.start();
    let (mut standing, code) = world.connect(&entry);
    assert_eq!(code, 200);
    assert_eq!(world.say(b"no request at all\r\n\r\n"), b"");
    assert_eq!(world.running.take().unwrap().wait(), proxy::Ended::Failed);
    assert_eq!(read_all(&mut standing), b"");
    assert!(std::net::TcpStream::connect(world.proxy).is_err());
}
