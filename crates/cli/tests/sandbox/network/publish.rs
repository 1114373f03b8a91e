//! Published ports: a server inside is reached where the user said, and nowhere else.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Stdio};
use std::time::Duration;

use fixtures::{TestEnv, User, eventually, users};

use super::servers::run;

/// A server inside. It answers each connection with all that it got, once the client has ended its
/// side, and ends when it gets `end`.
const SERVER: &str = "\
import socket, sys, threading
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
server = socket.socket(family, socket.SOCK_STREAM)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((sys.argv[1], int(sys.argv[2])))
server.listen(512)
def serve(client):
    got = b''
    while part := client.recv(65536):
        got += part
    client.sendall(b'got ' + got)
    client.close()
    if got == b'end':
        server.shutdown(socket.SHUT_RDWR)
print('ready', flush=True)
try:
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],)).start()
except OSError:
    pass
";

/// A run in the background, killed with the test.
struct Background {
    child: Child,
    env: TestEnv,
}

impl Background {
    fn start(who: User, options: &[&str], script: &str) -> Self {
        let env = TestEnv::new(who);
        env.write("project/server.py", SERVER);
        env.own();
        let mut command = env.command(env.binary());
        let events = env.path("events.jsonl");
        command.arg("run").arg("--events").arg(&events).args(options);
        command.args(["--", "sh", "-c", script]).current_dir(env.project());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap(), env }
    }

    /// Waits for its end and returns the status, and what it said.
    fn end(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    fn events(&self, kind: &str) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.env.path("events.jsonl")).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        events.filter(|event: &serde_json::Value| event["event"] == kind).collect()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of the host that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends something, ends the sending side, and returns the answer.
fn exchange(address: impl Into<SocketAddr>, text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address.into())?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(text)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    if answer.is_empty() { Err(std::io::ErrorKind::UnexpectedEof.into()) } else { Ok(answer) }
}

/// Ends the server, and so the run. The answer may be lost: nothing is carried after the end of a run.
fn end(address: impl Into<SocketAddr>) {
    let _ = exchange(address, b"end");
}

fn until_served(address: impl Into<SocketAddr> + Copy) {
    eventually(|| exchange(address, b"hello").ok().filter(|answer| answer == b"got hello"));
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

#[test]
fn a_server_inside_is_reached_whatever_loopback_it_listens_on() {
    for who in users() {
        for inside in ["127.0.0.1", "0.0.0.0", "::1", "::"] {
            let port = free_port();
            let publish = format!("{port}:8080");
            let script = format!("python3 server.py {inside} 8080");
            let mut background = Background::start(who, &["--publish", &publish], &script);
            until_served(local(port));
            if TcpListener::bind("[::1]:0").is_ok() {
                let v6 = SocketAddr::new("::1".parse().unwrap(), port);
                assert_eq!(exchange(v6, b"x").unwrap(), b"got x", "{inside}");
            }
            let large = vec![b'x'; 3_000_000];
            assert_eq!(exchange(local(port), &large).unwrap().len(), large.len() + 4, "{inside}");
            end(local(port));
            assert_eq!(background.end(), (Some(0), String::new()), "{inside}");
            let published = background.events("published");
            assert_eq!(published[0]["address"], format!("127.0.0.1:{port}"), "{published:?}");
            assert_eq!(published[0]["inside"], 8080, "{published:?}");
            let connections = background.events("connection");
            let large = connections.iter().find(|it| it["sent"] == 3_000_000).unwrap();
            assert_eq!(large["route"], "published", "{large:?}");
            assert_eq!((&large["host"], &large["port"]), (&"127.0.0.1".into(), &8080.into()));
        }
    }
}

/// There are 128 sockets for this: four times as many clients must get through, one after the other,
/// and many at once.
#[test]
fn connections_do_not_run_out() {
    for who in users() {
        let port = free_port();
        let publish = format!("{port}:8080");
        let script = "python3 server.py 127.0.0.1 8080";
        let mut background = Background::start(who, &["--publish", &publish], script);
        until_served(local(port));
        let clients = (0..64).map(|client| {
            std::thread::spawn(move || {
                for number in 0..8 {
                    let text = format!("{client} {number}");
                    let answer = exchange(local(port), text.as_bytes()).unwrap();
                    assert_eq!(answer, format!("got {text}").as_bytes());
                }
            })
        });
        clients.collect::<Vec<_>>().into_iter().for_each(|client| client.join().unwrap());
        // More at once than there are sockets: those that wait are served when others have ended.
        let held: Vec<_> = (0..200).map(|_| TcpStream::connect(local(port)).unwrap()).collect();
        let waiting = std::thread::spawn(move || exchange(local(port), b"late").unwrap());
        drop(held);
        assert_eq!(waiting.join().unwrap(), b"got late");
        end(local(port));
        assert_eq!(background.end().0, Some(0));
    }
}

#[test]
fn a_server_that_starts_later_is_reached_then() {
    for who in users() {
        let port = free_port();
        let publish = format!("{port}");
        let script = format!(
            "until [ -e start ]; do sleep 0.01; done; python3 server.py 127.0.0.1 {port}; \
             rm start; touch again; until [ -e start ]; do sleep 0.01; done; \
             python3 server.py ::1 {port}"
        );
        let mut background = Background::start(who, &["--publish", &publish], &script);
        // Until then, a client is disconnected.
        eventually(|| TcpStream::connect(local(port)).ok());
        assert!(exchange(local(port), b"early").is_err());
        background.env.write("project/start", "");
        background.env.own();
        until_served(local(port));
        end(local(port));
        eventually(|| background.env.path("project/again").exists().then_some(()));
        assert!(exchange(local(port), b"between").is_err());
        background.env.write("project/start", "");
        background.env.own();
        until_served(local(port));
        end(local(port));
        assert_eq!(background.end().0, Some(0));
    }
}

#[test]
fn a_port_that_is_taken_is_an_error_before_the_command_starts() {
    for who in users() {
        let env = TestEnv::new(who);
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(taken) = TcpListener::bind(address) else { continue };
            let taken = taken.local_addr().unwrap();
            let holder = TcpListener::bind(taken).unwrap_err();
            assert_eq!(holder.kind(), std::io::ErrorKind::AddrInUse);
            let publish = format!("{}:80", taken.port());
            let ran = run(&env, &["--publish", &publish], "echo ran > ran.txt");
            assert_eq!(ran.code, Some(69), "{ran:?}");
            let expected = format!("cannot publish port 80 at {taken}: another program listens");
            assert!(ran.stderr.contains(&expected), "{ran:?}");
            assert!(ran.stderr.contains("hint: "), "{ran:?}");
            assert!(!env.path("project/ran.txt").exists(), "{ran:?}");
        }
    }
}

#[test]
fn what_cannot_be_published_is_an_error() {
    for who in users() {
        let env = TestEnv::new(who);
        for (publish, code, part) in [
            ("eighty", 64, "is not a port"),
            ("localhost:80", 64, "is not an IP address"),
            ("0", 64, "is not a port"),
            ("192.0.2.1:8080", 69, "does not have the address"),
            // The proxy of the run: publishing it would lend the run's grants to others.
            ("8080:978", 78, "no server inside can listen on port 978"),
            ("8080:53", 78, "no server inside can listen on port 53"),
        ] {
            let ran = run(&env, &["--publish", publish], "echo ran > ran.txt");
            assert_eq!(ran.code, Some(code), "{publish}: {ran:?}");
            assert!(ran.stderr.contains(part), "{publish}: {ran:?}");
            assert!(!env.path("project/ran.txt").exists(), "{ran:?}");
        }
    }
}

/// Without an address, a port is published to this machine only.
#[test]
fn a_published_port_is_not_reached_from_elsewhere() {
    for who in users() {
        let port = free_port();
        let publish = format!("{port}:8080");
        let script = "python3 server.py 0.0.0.0 8080";
        let mut background = Background::start(who, &["--publish", &publish], script);
        until_served(local(port));

        // At the machine's other addresses, nobody listens.
        match own_address() {
            Some(address) => {
                let target = SocketAddr::new(address, port);
                assert!(exchange(target, b"x").is_err(), "{target}");
            }
            None => eprintln!("skipped: this machine has no address besides loopback"),
        }
        assert!(exchange((Ipv4Addr::new(127, 0, 0, 2), port), b"x").is_err());

        // Another run has a loopback of its own, and its proxy does not lead to this machine's.
        let other = TestEnv::new(who);
        other.configure("[violation]\naction = \"deny\"\n");
        let client = format!(
            "(exec 3<> /dev/tcp/127.0.0.1/{port}) && echo direct; \
             curl -fsS --noproxy '' http://127.0.0.1:{port}/ && echo proxy; \
             curl -fsS --noproxy '' http://localhost:{port}/ && echo name; true"
        );
        let ran = run(&other, &[], &client);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
        // A grant of the user's leads there, as to any other server of this machine.
        let grant = format!("[network]\nallow_local_ports = [{port}]\n");
        other.configure(&grant);
        let ran = run(&other, &[], &format!("exec 3<> /dev/tcp/127.0.0.1/{port} && echo direct"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "direct\n"), "{ran:?}");

        end(local(port));
        assert_eq!(background.end().0, Some(0));
        // The port is free again.
        TcpListener::bind(local(port)).unwrap();
    }
}

/// Another address is published to only if the user names it.
#[test]
fn a_named_address_is_published() {
    for who in users() {
        let port = free_port();
        let publish = format!("127.0.0.3:{port}:8080");
        let script = "python3 server.py 127.0.0.1 8080";
        let mut background = Background::start(who, &["--publish", &publish], script);
        let named = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 3), port));
        until_served(named);
        assert!(exchange(local(port), b"x").is_err());
        end(named);
        assert_eq!(background.end().0, Some(0));
    }
}

/// A cloned repository must not open a port of the user's machine.
#[test]
fn a_project_publishes_only_what_the_user_has_trusted() {
    for who in users() {
        let env = TestEnv::new(who);
        let port = free_port();
        env.write("project/ringwall.toml", &format!("[network]\npublish = [\"{port}:8080\"]\n"));
        env.own();
        let ran = run(&env, &[], "echo ran > ran.txt");
        assert_eq!(ran.code, Some(78), "{ran:?}");
        assert!(ran.stderr.contains("network.publish"), "{ran:?}");
        assert!(!env.path("project/ran.txt").exists(), "{ran:?}");

        let trusted = env.ringwall(&["trust", "--yes"]);
        assert!(trusted.status.success(), "{trusted:?}");
        let ran = run(&env, &[], "true");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let published = ran.events("published");
        assert_eq!(published[0]["address"], format!("127.0.0.1:{port}"), "{ran:?}");
    }
}

#[test]
fn a_server_that_is_not_published_is_mentioned_once() {
    for who in users() {
        let env = TestEnv::new(who);
        let listen = "import socket\n\
            def on(port):\n\
            \x20   s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n\
            \x20   s.bind(('127.0.0.1', port)); s.listen(); s.close()\n";
        let note = |ran: &fixtures::RunOutput| ran.stderr.matches("`--publish ").count();
        let ran = run(&env, &[], &format!("python3 -c \"{listen}on(3000); on(3000); on(0)\""));
        assert_eq!((ran.code, note(&ran)), (Some(0), 1), "{ran:?}");
        assert!(ran.stderr.contains("; `--publish 3000` makes it reachable"), "{ran:?}");
        assert_eq!(ran.events("listening").len(), 1, "{ran:?}");
        assert_eq!(ran.events("listening")[0]["address"], "127.0.0.1:3000", "{ran:?}");
        let port = free_port();
        let publish = format!("{port}:3000");
        let ran = run(&env, &["--publish", &publish], &format!("python3 -c \"{listen}on(3000)\""));
        assert_eq!((ran.code, note(&ran)), (Some(0), 0), "{ran:?}");
        // With the host's network there is nothing to publish.
        let options = ["--level", "full", "--publish", &publish];
        let ran = run(&env, &options, &format!("python3 -c \"{listen}on({port})\""));
        assert_eq!((ran.code, note(&ran)), (Some(0), 0), "{ran:?}");
        assert!(ran.stderr.contains("nothing is published"), "{ran:?}");
    }
}

/// A client that looks for a server of the host is told that it is there, and one that waits for a server
/// of its own is not.
#[test]
fn a_port_of_the_host_that_is_not_granted_is_reported() {
    for who in users() {
        for address in ["127.0.0.1", "::1"] {
            let Ok(server) = TcpListener::bind((address, 0)) else { continue };
            let target = server.local_addr().unwrap();
            let env = TestEnv::new(who);
            let connect = format!(
                "python3 -c \"import socket\ntry: socket.create_connection(('{address}', PORT))\n\
                 except OSError as error: print(error.errno)\""
            );
            let script = connect.replace("PORT", &target.port().to_string());
            let refused = format!("{}\n", rustix::io::Errno::CONNREFUSED.raw_os_error());
            let ran = run(&env, &[], &format!("{script}; {script}"));
            assert_eq!((ran.code, ran.stdout), (Some(0), refused.repeat(2)), "{}", ran.stderr);
            let expected = format!("tried to connect to {target}");
            assert_eq!(ran.stderr.matches(&expected).count(), 1, "{}", ran.stderr);
            assert!(ran.stderr.contains("allow_local_ports"), "{}", ran.stderr);
            drop(server);
            // The same without a server on the host.
            let ran = run(&env, &[], &script);
            assert_eq!((ran.stdout, ran.stderr.as_str()), (refused, ""));
        }
    }
}

/// The address from which this machine would reach others. Nothing is sent.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}
