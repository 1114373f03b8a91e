//! Connections that are about to be made: told by number, with both ends, before a byte passes.

use std::io::Write;
use std::sync::atomic::Ordering;

use fixtures::eventually;
use model::Transport;

use crate::support::{Origin, Setup, Temper, read_head, status};

#[test]
fn nothing_passes_before_a_connection_was_heard_of() {
    let origin = Origin::start();
    let target = format!("example.org:{}", origin.port);
    let world =
        Setup { temper: Temper::Holds, ..Setup::granting(&[&target]) }.named("example.org").start();
    let mut stream = world.dial();
    let request = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    // It is dialled meanwhile: whoever looks for the client takes none of its time.
    eventually(|| (origin.accepted.load(Ordering::SeqCst) == 1).then_some(()));
    origin.heads.lock().unwrap().push("heard".into());
    world.witness.held.lock().unwrap().clear();
    assert_eq!(read_head(&mut stream).as_deref().map(status), Some(200));
    let heads = origin.heads();
    assert_eq!((heads.len(), heads[0].as_str()), (2, "heard"), "{heads:?}");
    let openings = world.witness.openings.lock().unwrap().clone();
    let [(_, client)] = openings[..] else { panic!("{openings:?}") };
    assert_eq!(client.transport, Transport::Tcp);
    assert_eq!((client.end, client.listener), (stream.local_addr().unwrap(), world.proxy));
}

#[test]
fn every_opening_has_an_end() {
    let origin = Origin::start();
    let (here, nowhere) = (format!("example.org:{}", origin.port), "example.org:1");
    let world = Setup::granting(&[&here, nowhere]).named("example.org").start();
    assert_eq!(world.connect(nowhere).1, 502);
    assert_eq!(world.connect(&here).1, 200);
    // What is refused was never about to be made.
    assert_eq!(world.connect("example.org:2").1, 403);
    let connection = world.witness.connection();
    let numbers: Vec<_> =
        world.witness.openings.lock().unwrap().iter().map(|(number, _)| *number).collect();
    let [failed, made] = numbers[..] else { panic!("{numbers:?}") };
    assert_ne!(failed, made);
    assert_eq!(connection.number, made);
    assert_eq!(*world.witness.failed.lock().unwrap(), [failed]);
}
