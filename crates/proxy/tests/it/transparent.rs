//! Clients that know no proxy: they look a name up, and connect to what they are told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;

use fixtures::PATIENCE;
use proxy::Route;

use crate::support::{Origin, Setup, client_hello, dial, read_all, status};

#[test]
fn a_local_port_leads_to_the_hosts_own() {
    let origin = Origin::start();
    let port = origin.port;
    // Inside, the same port on another address of loopback.
    let listener = TcpListener::bind(("127.0.0.5", port)).unwrap();
    let closed = TcpListener::bind("127.0.0.5:0").unwrap();
    let other = closed.local_addr().unwrap();
    let transparent = vec![listener, closed];
    let world = Setup { local_ports: vec![port], transparent, ..Setup::default() }.start();
    let mut stream = dial(([127, 0, 0, 5], port).into());
    let request = format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    assert_eq!(status(&read_all(&mut stream)), 200);
    assert_eq!(world.witness.connection().route, Route::Transparent);
    // A port that is listened on but not granted is refused by a reset.
    let mut stream = dial(other);
    assert!(stream.read(&mut [0]).is_err());
    assert_eq!(world.witness.rules(), ["network.allow_local_ports"]);
}

/// Made-up addresses exist only in a namespace, so the check runs itself in one.
#[test]
fn a_made_up_address_leads_to_its_name() {
    let script = "ip link set lo up && ip address add 198.18.0.0/15 dev lo && exec \"$0\" \
                  transparent::inside --exact --ignored --nocapture";
    let exe = std::env::current_exe().unwrap();
    let unshare =
        |words: &[&std::ffi::OsStr]| Command::new("unshare").arg("-rn").args(words).output();
    let able =
        unshare(&["ip".as_ref(), "link".as_ref(), "set".as_ref(), "lo".as_ref(), "up".as_ref()]);
    if !able.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no namespace can be set up by `unshare` and `ip`");
        return;
    }
    let output =
        unshare(&["sh".as_ref(), "-c".as_ref(), script.as_ref(), exe.as_os_str()]).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

#[test]
#[ignore = "needs addresses that exist only in a namespace of its own"]
fn inside() {
    let origin = Origin::start();
    let port = origin.port;
    let first = ([198, 18, 1, 0], port);
    let unknown = ([198, 18, 77, 7], port);
    let transparent = vec![
        TcpListener::bind(std::net::SocketAddr::from(first)).unwrap(),
        TcpListener::bind(std::net::SocketAddr::from(unknown)).unwrap(),
    ];
    let setup = Setup::granting(&[&format!("example.org:{port}")]).named("example.org");
    let world = Setup { transparent, ..setup }.start();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let question = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01";
    socket.send_to(question, world.dns_udp).unwrap();
    let mut answer = [0; 512];
    let count = socket.recv(&mut answer).unwrap();
    assert!(answer[..count].ends_with(&[198, 18, 1, 0]), "{:?}", &answer[..count]);

    let ask = |host: &str| {
        let mut stream = dial(first.into());
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        status(&read_all(&mut stream))
    };
    assert_eq!(ask(&format!("example.org:{port}")), 200);
    assert_eq!(ask(&format!("198.18.1.0:{port}")), 200);
    assert_eq!(ask("evil.example"), 403);
    let connection = world.witness.connection();
    assert_eq!((connection.host.as_str(), connection.route), ("example.org", Route::Transparent));
    // TLS for another server, and an address that was never given out: a reset.
    let hello = client_hello("evil.example");
    let mut stream = dial(first.into());
    stream.write_all(&hello).unwrap();
    assert_eq!(read_all(&mut stream), b"");
    let mut stream = TcpStream::connect(std::net::SocketAddr::from(unknown)).unwrap();
    assert!(stream.read(&mut [0]).is_err());
    assert_eq!(world.witness.rules(), ["request-host", "server-name", "made-up-address"]);
}
