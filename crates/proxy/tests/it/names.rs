//! Where names lead: private addresses, rebinding, the levels, and the name service.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fixtures::PATIENCE;
use model::Level;
use proxy::{Resolve, Rules};

use crate::support::{Origin, Setup, TestProxy, dial, read_all, status};

fn query(name: &[u8], kind: u16) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split(|byte| *byte == b'.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend_from_slice(label);
    }
    bytes.push(0);
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&[0, 1]);
    bytes
}

fn ask(world: &TestProxy, bytes: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(bytes, world.dns_udp).unwrap();
    let mut buffer = [0; 1024];
    let count = socket.recv(&mut buffer).unwrap();
    buffer[..count].to_vec()
}

/// The code and the address in an answer.
fn read(answer: &[u8]) -> (u8, Option<Ipv4Addr>) {
    let address =
        (answer[7] == 1).then(|| <[u8; 4]>::try_from(&answer[answer.len() - 4..]).unwrap());
    (answer[3] & 0x0f, address.map(Ipv4Addr::from))
}

#[test]
fn allowed_names_get_made_up_addresses_and_others_do_not_exist() {
    let world = Setup::granting(&["example.org", "*.example.net", "git.example.org:22"]).start();
    let look = |name: &[u8]| read(&ask(&world, &query(name, 1)));
    let (code, first) = look(b"example.org");
    assert_eq!(code, 0);
    let first = first.unwrap();
    assert_eq!(first.octets()[..2], [198, 18]);
    for same in [&b"EXAMPLE.org"[..], b"example.ORG."] {
        assert_eq!(look(same), (0, Some(first)));
    }
    for other in [&b"a.example.net"[..], b"a.b.example.net", b"git.example.org"] {
        let (code, address) = look(other);
        assert_eq!(code, 0, "{}", other.escape_ascii());
        assert_ne!(address.unwrap(), first);
    }
    for none in [
        &b"evil.example"[..],
        b"example.net",
        b"evilexample.org",
        b"example.org.evil.example",
        b"www.example.org",
        b"127.0.0.1",
        b"2130706433",
        b"localhost",
        b"evil.example\0.example.net",
        b"exam ple.org",
        b"ex\xffample.org",
        b"*.example.net",
        b"-.example.net",
        b"",
    ] {
        assert_eq!(look(none), (3, None), "{}", none.escape_ascii());
    }
    assert!(world.witness.lookups.lock().unwrap().contains(&"evil.example".to_owned()));
    // The other questions that resolvers ask of a name that exists, and those nobody may ask.
    for (kind, code) in [(28, 0), (65, 0), (64, 0), (16, 4), (255, 4), (2, 4)] {
        assert_eq!(read(&ask(&world, &query(b"example.org", kind))), (code, None), "{kind}");
        assert_eq!(read(&ask(&world, &query(b"evil.example", kind))), (3, None), "{kind}");
    }
}

#[test]
fn questions_over_tcp_are_answered_one_after_the_other() {
    let world = Setup::granting(&["example.org"]).start();
    let mut stream = dial(world.dns_tcp);
    for name in [&b"example.org"[..], b"evil.example", b"example.org"] {
        let question = query(name, 1);
        let length = u16::try_from(question.len()).unwrap().to_be_bytes();
        stream.write_all(&[&length[..], &question].concat()).unwrap();
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(read(&answer).0, if name == b"evil.example" { 3 } else { 0 });
    }
}

#[test]
fn a_made_up_address_means_its_name_and_an_unknown_one_nothing() {
    let origin = Origin::start();
    let entry = format!("example.org:{}", origin.port);
    let world = Setup::granting(&[&entry]).named("example.org").start();
    let (_, address) = read(&ask(&world, &query(b"example.org", 1)));
    let target = format!("{}:{}", address.unwrap(), origin.port);
    let request =
        format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&world.say(request.as_bytes())), 200);
    assert!(origin.heads()[0].contains(&format!("Host: {entry}")), "{:?}", origin.heads());
    assert_eq!(world.connect("198.18.9.9:443").1, 403);
    assert_eq!(world.witness.rules(), ["made-up-address"]);
}

#[test]
fn a_name_that_leads_inside_is_refused_unless_it_may() {
    let origin = Origin::start();
    let port = origin.port;
    let entry = |name: &str| format!("{name}:{port}");
    let mut setup = Setup {
        allowed: vec![entry("example.org"), entry("inner.example.org")],
        ..Setup::default()
    };
    setup.private = vec![entry("inner.example.org")];
    setup = setup.named("example.org").named("inner.example.org");
    let world = setup.start();
    assert_eq!(world.connect(&entry("example.org")).1, 403);
    assert_eq!(world.socks(b"example.org", port).1, 2);
    assert_eq!(world.connect(&entry("inner.example.org")).1, 200);
    assert_eq!(world.witness.rules(), ["network.private_domains"; 2]);
    let text = world.witness.refusals.lock().unwrap()[0].reason.clone();
    assert!(text.text.contains("loopback"), "{text:?}");
    assert!(
        text.instead.unwrap().to_string().contains("network.private_domains = [\"example.org:")
    );
}

#[test]
fn the_address_that_is_dialled_is_the_one_that_is_judged() {
    /// A name that moves with every lookup, from one forbidden place to the next.
    struct Moving(AtomicUsize);
    impl Resolve for Moving {
        fn resolve(&self, _: &str) -> std::io::Result<Vec<std::net::IpAddr>> {
            let turn = self.0.fetch_add(1, Ordering::SeqCst);
            let places =
                ["127.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "::1", "64:ff9b::7f00:1"];
            Ok(vec![places[turn % places.len()].parse().unwrap()])
        }
    }
    let origin = Origin::start();
    let setup = Setup { allowed: vec![format!("example.org:{}", origin.port)], ..Setup::default() };
    let network = setup.rules().network;
    let world = setup.start();
    let rules = Rules { network, resolver: Arc::new(Moving(AtomicUsize::new(0))) };
    world.running.as_ref().unwrap().replace(rules);
    for _ in 0..10 {
        assert_eq!(world.connect(&format!("example.org:{}", origin.port)).1, 403);
    }
    assert_eq!(origin.accepted.load(Ordering::SeqCst), 0);
}

#[test]
fn a_name_with_several_addresses_is_reached_at_those_that_may() {
    let origin = Origin::start();
    let port = origin.port;
    let mut setup = Setup::granting(&[&format!("example.org:{port}")]);
    setup.denied = vec!["127.0.0.3".to_owned()];
    let addresses = ["127.0.0.3", "127.0.0.2", "127.0.0.1"].map(|text| text.parse().unwrap());
    setup.names.push(("example.org".to_owned(), addresses.to_vec()));
    let world = setup.start();
    assert_eq!(world.connect(&format!("example.org:{port}")).1, 200);
    assert_eq!(world.witness.connection().address.to_string(), format!("127.0.0.1:{port}"));
}

#[test]
fn local_ports_lead_to_the_host_and_never_to_the_proxy_itself() {
    let origin = Origin::start();
    let world = Setup { local_ports: vec![origin.port], ..Setup::default() }.start();
    for name in ["localhost", "127.0.0.1", "LOCALHOST.", "127.1"] {
        assert_eq!(world.connect(&format!("{name}:{}", origin.port)).1, 200, "{name}");
    }
    assert_eq!(world.connect(&format!("localhost:{}", world.dns_tcp.port())).1, 403);
    assert_eq!(world.connect(&format!("127.0.0.2:{}", origin.port)).1, 403);
    // Granted or not, the proxy does not call itself.
    let world = Setup::granting(&["127.0.0.1:1"]).start();
    let port = world.proxy.port();
    let own = Setup { local_ports: vec![port], ..Setup::granting(&[&format!("127.0.0.1:{port}")]) };
    world.running.as_ref().unwrap().replace(own.rules());
    assert_eq!(world.connect(&format!("127.0.0.1:{port}")).1, 403);
    assert_eq!(world.witness.rules(), ["own-listener"]);
    // Nobody listens at the other address of the name.
    assert_eq!(world.connect(&format!("localhost:{port}")).1, 502);
}

#[test]
fn the_levels_and_the_lists_hold_and_can_be_replaced() {
    let origin = Origin::start();
    let port = origin.port;
    let anywhere = |level| {
        let names = ["example.org", "evil.example"];
        let mut setup = Setup { level, ..Setup::default() };
        setup.denied = vec!["evil.example".to_owned()];
        for name in names {
            setup = setup.named(name);
            setup.private.push(name.to_owned());
        }
        setup
    };
    let world = anywhere(Level::Readwrite).start();
    let verdicts = || {
        ["example.org", "evil.example", "127.0.0.1"]
            .map(|name| world.connect(&format!("{name}:{port}")).1)
    };
    assert_eq!(verdicts(), [403, 403, 403]);
    world.running.as_ref().unwrap().replace(anywhere(Level::Network).rules());
    assert_eq!(verdicts(), [200, 403, 403]);
    world.running.as_ref().unwrap().replace(Setup::default().rules());
    assert_eq!(verdicts(), [403, 403, 403]);
    let mut stream = world.dial();
    stream.write_all(b"GET http://no.example/ HTTP/1.1\r\nHost: no.example\r\n\r\n").unwrap();
    assert_eq!(status(&read_all(&mut stream)), 403);
}
