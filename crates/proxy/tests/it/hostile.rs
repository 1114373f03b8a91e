//! Clients that mean harm: slow ones, half-open ones, floods, and requests inside requests.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::time::Duration;

use fixtures::eventually;
use rustix::net::sockopt;

use crate::support::{Origin, Setup, TestProxy, dial, read_all, status};

fn world() -> (TestProxy, Origin) {
    let origin = Origin::start();
    let entry = format!("example.org:{}", origin.port);
    (Setup::granting(&[&entry]).named("example.org").start(), origin)
}

fn is_served(world: &TestProxy, origin: &Origin) -> bool {
    let port = origin.port;
    let request = format!(
        "GET http://example.org:{port}/ HTTP/1.1\r\nHost: example.org:{port}\r\nConnection: \
         close\r\n\r\n"
    );
    status(&world.say(request.as_bytes())) == 200
}

#[test]
fn slow_and_half_open_clients_do_not_hold_up_others() {
    let (world, origin) = world();
    let starts: [&[u8]; 8] = [
        b"",
        b"G",
        b"GET http://example.org/ HTTP/1.1\r\nHost: exa",
        b"\x05",
        b"\x05\x01\x00\x05\x01\x00\x03\xff",
        b"CONNECT example.org:443 HTTP/1.1\r\n",
        b"POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\n",
        b"GET / HTTP/1.1\r\n\r",
    ];
    let mut held: Vec<TcpStream> = Vec::new();
    for index in 0..96 {
        let mut stream = world.dial();
        stream.write_all(starts[index % starts.len()]).unwrap();
        if index % 3 == 0 {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        held.push(stream);
    }
    // Tunnels that say nothing, or the beginning of something.
    for start in [&b""[..], b"\x16", b"\x16\x03\x01\x02", b"GET / HT", b"\x80"] {
        let (mut stream, code) = world.connect(&format!("example.org:{}", origin.port));
        assert_eq!(code, 200);
        stream.write_all(start).unwrap();
        held.push(stream);
    }
    assert!(is_served(&world, &origin));
    // One byte at a time is slow, and fine.
    let mut stream = world.dial();
    let port = origin.port;
    let request = format!(
        "GET http://example.org:{port}/ HTTP/1.1\r\nHost: example.org:{port}\r\nConnection: close\r\n\r\n"
    );
    for byte in request.bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(status(&read_all(&mut stream)), 200);
    drop(held);
    assert!(is_served(&world, &origin));
}

#[test]
fn floods_of_header_fields_are_cut_off() {
    let (world, origin) = world();
    let start =
        format!("GET http://example.org:{}/ HTTP/1.1\r\nHost: example.org\r\n", origin.port);
    let many: String = (0..200).map(|n| format!("X-{n}: y\r\n")).collect();
    let long = format!("X: {}\r\n", "y".repeat(70_000));
    for flood in [many + "\r\n", long + "\r\n"] {
        assert_eq!(status(&world.say(format!("{start}{flood}").as_bytes())), 431);
    }
    // Without an end.
    let mut stream = world.dial();
    stream.write_all(start.as_bytes()).unwrap();
    let line = b"X-Filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n";
    let sent = (0..100_000).take_while(|_| stream.write_all(line).is_ok()).count();
    assert!(sent < 100_000, "somebody read {} bytes of header", sent * line.len());
    // A tunnel in which a request line never ends.
    let (mut stream, _) = world.connect(&format!("example.org:{}", origin.port));
    stream.write_all(b"GET /").unwrap();
    let _ = stream.write_all(&vec![b'a'; 200_000]);
    let _ = stream.write_all(b" HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    stream.shutdown(Shutdown::Write).unwrap();
    let _ = read_all(&mut stream);
    assert!(is_served(&world, &origin));
}

#[test]
fn a_request_hidden_in_another_is_never_sent() {
    let (world, origin) = world();
    let port = origin.port;
    let hidden = "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let head = |tail: &str| {
        format!("POST http://example.org:{port}/ HTTP/1.1\r\nHost: example.org:{port}\r\n{tail}")
    };
    let length = hidden.len();
    for (request, code) in [
        // In a body it is a body, and the server gets it as such.
        (head(&format!("Connection: close\r\nContent-Length: {length}\r\n\r\n{hidden}")), 200),
        (
            head(&format!(
                "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{hidden}\r\n0\r\n\r\n"
            )),
            200,
        ),
        // Behind an end that is none, it is never read as a request.
        (head(&format!("Transfer-Encoding: chunked\r\n\r\n0\r\n\n{hidden}")), 0),
        (head(&format!("Transfer-Encoding: chunked\r\n\r\n0x5\r\n{hidden}")), 0),
        (head(&format!("Transfer-Encoding: chunked\r\n\r\n1\r\nabc{hidden}")), 0),
        (head(&format!("Transfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n{hidden}")), 0),
        (head(&format!("Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{hidden}")), 0),
        (
            head(&format!(
                "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{hidden}"
            )),
            400,
        ),
        (head(&format!("Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{hidden}")), 400),
    ] {
        let answer = world.say(request.as_bytes());
        assert_eq!(status(&answer), code, "{request:?}: {}", answer.escape_ascii());
    }
    assert_eq!(world.witness.rules().len(), 0, "a body was read as a request");
    assert!(origin.heads().iter().all(|head| !head.starts_with("GET")), "{:?}", origin.heads());
    // What follows a whole body is a request of its own, and judged.
    let request = head(&format!("Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n{hidden}"));
    let text = String::from_utf8(world.say(request.as_bytes())).unwrap();
    assert!(text.contains("HTTP/1.1 200") && text.contains("HTTP/1.1 403"), "{text}");
    assert_eq!(world.witness.rules(), ["network.allowed_domains"]);
}

#[test]
fn any_bytes_on_any_port_leave_the_proxy_alive() {
    let (world, origin) = world();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |limit: usize| -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..limit {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.push(state.to_le_bytes()[3]);
        }
        bytes
    };
    let starts: [&[u8]; 6] =
        [b"", b"GET ", b"\x05\x01\x00", b"\x05\x01\x00\x05\x01\x00\x03", b"CONNECT ", b"\x00\x20"];
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for round in 0..300 {
        let bytes = [starts[round % starts.len()], &random(round)].concat();
        for address in [world.proxy, world.dns_tcp] {
            let mut stream = dial(address);
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = read_all(&mut stream);
        }
        socket.send_to(&bytes, world.dns_udp).unwrap();
    }
    let (mut tunnel, _) = world.connect(&format!("example.org:{}", origin.port));
    let _ = tunnel.write_all(&random(5000));
    drop(tunnel);
    assert!(is_served(&world, &origin));
    assert!(world.running.is_some());
}

#[test]
fn a_client_that_goes_away_takes_its_server_along() {
    let port = crate::support::echo();
    let entry = format!("example.org:{port}");
    let world = Setup::granting(&[&entry]).named("example.org").start();
    let (mut stream, code) = world.connect(&entry);
    assert_eq!(code, 200);
    stream.write_all(b"hello, world\n").unwrap();
    // What it said has arrived, and then it is gone without a word.
    stream.read_exact(&mut [0; 13]).unwrap();
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    let connection = eventually(|| world.witness.connections.lock().unwrap().first().cloned());
    assert_eq!(connection.sent, 13);
}
