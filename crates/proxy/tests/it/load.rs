//! Many clients, much data: nothing is lost, and memory stays where it was.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use fixtures::{PATIENCE, serve};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{Setup, dial, echo, read_head, status};

const SERVER: &str = "PROXY_TEST_SERVER_PORT";

/// A proxy in a process of its own, so that its memory can be told from ours.
struct Alone {
    child: Child,
    address: SocketAddr,
}

impl Alone {
    fn start(server: u16) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["load::alone", "--exact", "--ignored", "--nocapture"])
            .env(SERVER, server.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.unwrap().strip_prefix("at ")?.parse().ok());
        Self { child, address: address.unwrap() }
    }

    /// Resident memory in KiB: now, and at its highest.
    fn memory(&self) -> (u64, u64) {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).unwrap();
        let field = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        (field("VmRSS:"), field("VmHWM:"))
    }

    fn tunnel(&self, port: u16) -> TcpStream {
        let mut stream = dial(self.address);
        let request =
            format!("CONNECT example.org:{port} HTTP/1.1\r\nHost: example.org:{port}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        assert_eq!(status(&read_head(&mut stream).unwrap()), 200);
        stream
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other process: runs until its stdin ends.
#[test]
#[ignore = "a part of the checks below, in a process of its own"]
fn alone() {
    let Ok(port) = std::env::var(SERVER) else { return };
    raise_descriptors();
    let world = Setup::granting(&[&format!("example.org:{port}")]).named("example.org").start();
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nat {}", world.proxy).unwrap();
    out.flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

fn raise_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

#[test]
fn a_thousand_tunnels_at_once_all_get_their_bytes() {
    raise_descriptors();
    let port = echo();
    let proxy = Alone::start(port);
    drop(proxy.tunnel(port));
    let (before, _) = proxy.memory();
    let tunnels: Vec<_> = (0..1000).map(|_| proxy.tunnel(port)).collect();
    // Not a request line: the first byte is not text.
    let bytes: Arc<Vec<u8>> = Arc::new((0..20_000u32).map(|n| n.to_le_bytes()[0]).collect());
    let mut halves = tunnels;
    for round in 0..2 {
        for stream in &mut halves {
            let part = &bytes[round * 10_000..(round + 1) * 10_000];
            stream.write_all(part).unwrap();
        }
        for stream in &mut halves {
            let mut back = vec![0; 10_000];
            stream.read_exact(&mut back).unwrap();
            assert_eq!(back, bytes[round * 10_000..(round + 1) * 10_000]);
        }
    }
    let (after, highest) = proxy.memory();
    // Tasks and sockets, no buffers: about 3 KiB each.
    assert!(after < before + 32 * 1024, "{before} KiB became {after} KiB, {highest} at most");
}

#[test]
fn ten_thousand_idle_clients_do_not_lock_out_one_that_works() {
    raise_descriptors();
    if getrlimit(Resource::Nofile).current.is_some_and(|limit| limit < 12_000) {
        // This machine does not let us be that hostile.
        return;
    }
    let port = echo();
    let proxy = Alone::start(port);
    drop(proxy.tunnel(port));
    let (before, _) = proxy.memory();
    let mut idle = Vec::new();
    for index in 0..10_000 {
        let mut stream = dial(proxy.address);
        if index % 2 == 0 {
            let _ = stream.write_all(b"GET http://example.org/ HTTP/1.1\r\nX: ");
        }
        idle.push(stream);
        if index % 1000 == 999 {
            let mut stream = proxy.tunnel(port);
            stream.write_all(b"\0works").unwrap();
            let mut back = [0; 6];
            stream.read_exact(&mut back).unwrap();
            assert_eq!(&back, b"\0works");
        }
    }
    let (after, _) = proxy.memory();
    assert!(after < before + 128 * 1024, "{before} KiB became {after} KiB");
}

/// Bytes that show where they belong.
fn pattern(at: u64) -> u8 {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

const LONG: u64 = 24 * 1024 * 1024;

fn send_pattern(stream: &mut TcpStream, length: u64) {
    let mut at = 0;
    while at < length {
        let end = (at + 100_000).min(length);
        let part: Vec<u8> = (at..end).map(pattern).collect();
        if stream.write_all(&part).is_err() {
            return;
        }
        at = end;
    }
}

fn check_pattern(stream: &mut TcpStream, length: u64, slow: bool) {
    let mut buffer = vec![0; 70_000];
    let mut at = 0;
    while at < length {
        let room = usize::try_from(length - at).unwrap().min(buffer.len());
        let count = stream.read(&mut buffer[..room]).unwrap();
        assert!(count > 0, "it ended after {at} bytes");
        for byte in &buffer[..count] {
            assert_eq!(*byte, pattern(at), "at {at}");
            at += 1;
        }
        if slow && at % 16 == 0 {
            thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[test]
fn long_streams_arrive_whole_in_both_directions_at_once() {
    let port = serve(|mut stream| {
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        let mut writer = stream.try_clone().unwrap();
        let sender = thread::spawn(move || send_pattern(&mut writer, LONG));
        check_pattern(&mut stream, LONG, false);
        sender.join().unwrap();
        stream.write_all(b"!").unwrap();
    });
    let world = Setup::granting(&[&format!("example.org:{port}")]).named("example.org").start();
    let (mut stream, code) = world.connect(&format!("example.org:{port}"));
    assert_eq!(code, 200);
    stream.write_all(b"\0").unwrap();
    let mut writer = stream.try_clone().unwrap();
    let sender = thread::spawn(move || send_pattern(&mut writer, LONG));
    check_pattern(&mut stream, LONG, true);
    sender.join().unwrap();
    let mut last = [0];
    stream.read_exact(&mut last).unwrap();
    assert_eq!(&last, b"!");
    drop(stream);
    let connection = world.witness.connection();
    assert_eq!((connection.sent, connection.received), (LONG + 1, LONG + 1));
}

#[test]
fn long_bodies_arrive_whole_and_the_next_request_is_found() {
    let port = serve(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        while let Some(head) = read_head(&mut stream) {
            if head.starts_with(b"PUT") {
                check_pattern(&mut stream, LONG, false);
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            } else {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n");
                stream.write_all(head.as_bytes()).unwrap();
                send_pattern(&mut stream, LONG);
            }
        }
    });
    let world = Setup::granting(&[&format!("example.org:{port}")]).named("example.org").start();
    let mut stream = world.dial();
    let head = |method: &str, tail: &str| {
        format!(
            "{method} http://example.org:{port}/ HTTP/1.1\r\nHost: example.org:{port}\r\n{tail}\r\n"
        )
    };
    for _ in 0..2 {
        stream.write_all(head("GET", "").as_bytes()).unwrap();
        assert_eq!(status(&read_head(&mut stream).unwrap()), 200);
        check_pattern(&mut stream, LONG, false);
        let put = head("PUT", &format!("Content-Length: {LONG}\r\n"));
        stream.write_all(put.as_bytes()).unwrap();
        send_pattern(&mut stream, LONG);
        assert_eq!(status(&read_head(&mut stream).unwrap()), 204);
    }
}
