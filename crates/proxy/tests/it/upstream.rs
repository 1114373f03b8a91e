//! The user's own proxy on the way out.

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use fixtures::serve;
use proxy::Upstream;

use crate::support::{Origin, Setup, read_all, read_head, status};

/// A proxy that remembers what it was asked for and leads everything to one port of this machine.
fn upstream(to: u16, heads: Arc<Mutex<Vec<String>>>) -> u16 {
    serve(move |mut stream| {
        let Some(head) = read_head(&mut stream) else { return };
        let head = String::from_utf8(head).unwrap();
        let refuse = head.contains("forbidden");
        heads.lock().unwrap().push(head);
        if refuse {
            let _ = stream.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
            return;
        }
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
        let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
        let (mut up, mut down) = (stream.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut up, &mut &server));
        let _ = std::io::copy(&mut down, &mut stream);
    })
}

#[test]
fn names_go_through_the_users_proxy_and_private_literals_do_not() {
    let origin = Origin::start();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let port = upstream(origin.port, Arc::clone(&heads));
    let variable = format!("http://me:secret@localhost:{port}");
    let upstream =
        Upstream::from_variables(Some(&variable), Some(&variable), Some("near.example")).unwrap();
    let near = Origin::start();
    let near_entry = format!("near.example:{}", near.port);
    // No address is known for example.org: only the user's proxy can resolve it.
    let mut setup = Setup::granting(&[&near_entry]).named("near.example");
    setup.allowed.extend(["example.org", "forbidden.example.org"].map(str::to_owned));
    setup.level = model::Level::Network;
    let world = Setup { upstream, ..setup }.start();

    let (mut stream, code) = world.connect("example.org:443");
    assert_eq!(code, 200);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: example.org:443\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert_eq!(status(&read_all(&mut stream)), 200);
    let plain =
        b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&world.say(plain)), 200);
    {
        let heads = heads.lock().unwrap();
        assert!(heads[0].starts_with("CONNECT example.org:443 HTTP/1.1\r\n"), "{heads:?}");
        assert!(heads[0].contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{heads:?}");
        assert!(heads[1].starts_with("CONNECT example.org:80 HTTP/1.1\r\n"), "{heads:?}");
    }
    assert_eq!(origin.heads().len(), 2);
    // Exempt names are dialled directly; what the user's proxy refuses is unreachable.
    assert_eq!(world.connect(&near_entry).1, 200);
    assert_eq!(world.connect("forbidden.example.org:443").1, 502);
    // Private addresses, asked for as such, are refused before the proxy hears of them.
    for literal in ["10.0.0.1:443", "169.254.169.254:80", "[::ffff:10.0.0.1]:443", "127.0.0.1:443"]
    {
        assert_eq!(world.connect(literal).1, 403, "{literal}");
    }
    assert_eq!(heads.lock().unwrap().len(), 3);
}
