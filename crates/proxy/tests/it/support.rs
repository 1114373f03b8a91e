//! A proxy with its servers, its rules and its witness.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fixtures::{PATIENCE, eventually, serve, serve_at};
use model::{Caller, DomainRule, Level, Sourced};
use policy::NetworkRules;
use proxy::{
    Answer, ClientHold, Connection, Listeners, Observer, Place, Proxy, Refusal, Resolve, Rules,
    Running, Upstream,
};

/// Remembers what the proxy told.
#[derive(Default)]
pub(crate) struct Witness {
    pub(crate) refusals: Mutex<Vec<Refusal>>,
    pub(crate) lookups: Mutex<Vec<String>>,
    pub(crate) malformed: Mutex<Vec<String>>,
    pub(crate) connections: Mutex<Vec<Connection>>,
    pub(crate) openings: Mutex<Vec<(u64, Caller)>>,
    pub(crate) failed: Mutex<Vec<u64>>,
    /// Clients that wait.
    pub(crate) held: Mutex<Vec<ClientHold>>,
    pub(crate) temper: Temper,
}

/// What a witness does besides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Temper {
    #[default]
    Quiet,
    /// A refusal ends everything.
    Stops,
    /// What is malformed makes the proxy panic.
    Panics,
    /// Clients wait until the check lets them go.
    Holds,
}

impl Observer for Witness {
    fn refused(&self, refusal: &Refusal) -> Answer {
        self.refusals.lock().unwrap().push(refusal.clone());
        if self.temper == Temper::Stops { Answer::Stop } else { Answer::Refuse }
    }

    fn looked_up(&self, name: &str, _client: &Caller) {
        self.lookups.lock().unwrap().push(name.to_owned());
    }

    fn malformed(&self, _client: &Caller, why: &str) {
        assert!(self.temper != Temper::Panics, "told on the proxy's own thread");
        self.malformed.lock().unwrap().push(why.to_owned());
    }

    fn opening(&self, number: u64, client: &Caller, hold: ClientHold) {
        self.openings.lock().unwrap().push((number, *client));
        if self.temper == Temper::Holds {
            self.held.lock().unwrap().push(hold);
        }
    }

    fn failed(&self, number: u64) {
        self.failed.lock().unwrap().push(number);
    }

    fn closed(&self, connection: &Connection) {
        self.connections.lock().unwrap().push(connection.clone());
    }
}

impl Witness {
    pub(crate) fn rules(&self) -> Vec<String> {
        self.refusals.lock().unwrap().iter().map(|one| one.reason.rule.to_string()).collect()
    }

    /// Waits until a connection has been reported.
    pub(crate) fn connection(&self) -> Connection {
        eventually(|| self.connections.lock().unwrap().first().cloned())
    }
}

/// Names and their addresses. Every other name does not exist.
pub(crate) struct Names(pub HashMap<String, Vec<IpAddr>>);

impl Resolve for Names {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.0.get(name).cloned().ok_or_else(|| io::Error::other("no such name"))
    }
}

/// What a proxy is started with.
pub(crate) struct Setup {
    pub(crate) level: Level,
    pub(crate) allowed: Vec<String>,
    pub(crate) denied: Vec<String>,
    pub(crate) private: Vec<String>,
    pub(crate) local_ports: Vec<u16>,
    pub(crate) allow_without_sni: bool,
    pub(crate) names: Vec<(String, Vec<IpAddr>)>,
    pub(crate) upstream: Upstream,
    pub(crate) transparent: Vec<TcpListener>,
    pub(crate) temper: Temper,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            level: Level::Readwrite,
            allowed: Vec::new(),
            denied: Vec::new(),
            private: Vec::new(),
            local_ports: Vec::new(),
            allow_without_sni: false,
            names: Vec::new(),
            upstream: Upstream::default(),
            transparent: Vec::new(),
            temper: Temper::Quiet,
        }
    }
}

/// A proxy at work.
pub(crate) struct TestProxy {
    pub(crate) proxy: SocketAddr,
    pub(crate) dns_udp: SocketAddr,
    pub(crate) dns_tcp: SocketAddr,
    pub(crate) witness: Arc<Witness>,
    pub(crate) running: Option<Running>,
}

impl Setup {
    /// Grants entries, and lets the names in them lead to this machine.
    pub(crate) fn granting(entries: &[&str]) -> Self {
        let mut setup = Self::default();
        for entry in entries {
            setup.allowed.push((*entry).to_owned());
            setup.private.push((*entry).to_owned());
        }
        setup
    }

    /// Gives a name the address of this machine.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.names.push((name.to_owned(), vec![Ipv4Addr::LOCALHOST.into()]));
        self
    }

    pub(crate) fn rules(&self) -> Rules {
        let rules = |entries: &[String]| {
            let parse = |text: &String| Sourced::built_in(DomainRule::parse(text).unwrap());
            entries.iter().map(parse).collect()
        };
        let network = NetworkRules {
            level: Sourced::built_in(self.level),
            allowed: rules(&self.allowed),
            denied: rules(&self.denied),
            private: rules(&self.private),
            local_ports: self.local_ports.iter().copied().map(Sourced::built_in).collect(),
            allow_without_sni: Sourced::built_in(self.allow_without_sni),
            grant_file: "/p/ringwall.toml".into(),
        };
        let names = Names(self.names.iter().cloned().collect());
        Rules { network: Arc::new(network), resolver: Arc::new(names) }
    }

    pub(crate) fn start(self) -> TestProxy {
        let rules = self.rules();
        let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
        let dns_udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let dns_tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let witness = Arc::new(Witness { temper: self.temper, ..Witness::default() });
        let addresses = (
            proxy.local_addr().unwrap(),
            dns_udp.local_addr().unwrap(),
            dns_tcp.local_addr().unwrap(),
        );
        let listeners = Listeners {
            proxy,
            dns_udp: Some(dns_udp),
            dns_tcp: Some(dns_tcp),
            transparent: self.transparent,
            published: Vec::new(),
            sockets: Vec::new(),
            place: Place::Host,
        };
        let observer = Arc::clone(&witness) as Arc<dyn Observer>;
        let running = Proxy::start(listeners, rules, self.upstream, observer).unwrap();
        let (proxy, dns_udp, dns_tcp) = addresses;
        TestProxy { proxy, dns_udp, dns_tcp, witness, running: Some(running) }
    }
}

impl TestProxy {
    pub(crate) fn dial(&self) -> TcpStream {
        dial(self.proxy)
    }

    /// Sends bytes and reads everything that comes back.
    pub(crate) fn say(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.dial();
        let _ = stream.write_all(bytes);
        read_all(&mut stream)
    }

    /// Opens a tunnel and gives the status that CONNECT got.
    pub(crate) fn connect(&self, target: &str) -> (TcpStream, u16) {
        let mut stream = self.dial();
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let status = read_head(&mut stream).as_deref().map_or(0, status);
        (stream, status)
    }

    /// Asks for a connection over SOCKS and gives the reply code.
    pub(crate) fn socks(&self, name: &[u8], port: u16) -> (TcpStream, u8) {
        let length = u8::try_from(name.len()).unwrap();
        self.socks_raw(&[&[5, 1, 0, 3, length], name, &port.to_be_bytes()].concat())
    }

    pub(crate) fn socks_raw(&self, request: &[u8]) -> (TcpStream, u8) {
        let mut stream = self.dial();
        stream.write_all(&[5, 1, 0]).unwrap();
        let mut method = [0; 2];
        stream.read_exact(&mut method).unwrap();
        assert_eq!(method, [5, 0]);
        stream.write_all(request).unwrap();
        let mut reply = [0; 10];
        let code = if stream.read_exact(&mut reply).is_ok() { reply[1] } else { 255 };
        (stream, code)
    }
}

pub(crate) fn dial(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Everything until the end, also where it ends by a reset.
pub(crate) fn read_all(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..count]);
    }
    bytes
}

/// A head up to its empty line, byte by byte, so that nothing behind it is lost.
pub(crate) fn read_head(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(head)
}

/// The status of a response, 0 if there is none.
pub(crate) fn status(response: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(response.get(9..12).unwrap_or_default()).into_owned();
    text.parse().unwrap_or(0)
}

/// An HTTP server that remembers the heads it got and repeats each in its answer.
pub(crate) struct Origin {
    pub(crate) port: u16,
    pub(crate) heads: Arc<Mutex<Vec<String>>>,
    pub(crate) accepted: Arc<AtomicUsize>,
}

impl Origin {
    pub(crate) fn start() -> Self {
        Self::at("127.0.0.1:0")
    }

    pub(crate) fn at(address: &str) -> Self {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let accepted = Arc::new(AtomicUsize::new(0));
        let (log, count) = (Arc::clone(&heads), Arc::clone(&accepted));
        let port = serve_at(address, move |stream| {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = origin(stream, &log);
        });
        Self { port, heads, accepted }
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn origin(stream: TcpStream, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        log.lock().unwrap().push(head.clone());
        let field = |name: &str| {
            let line = head.lines().find(|line| line.to_lowercase().starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let mut body = Vec::new();
        if let Some(length) = field("content-length:") {
            body.resize(length.parse().unwrap(), 0);
            reader.read_exact(&mut body)?;
        } else if field("transfer-encoding:").is_some() {
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
                let mut chunk = vec![0; length + 2];
                reader.read_exact(&mut chunk)?;
                if chunk.len() == 2 {
                    break;
                }
                body.extend_from_slice(&chunk[..chunk.len() - 2]);
            }
        }
        let text = format!("{head}{}", String::from_utf8_lossy(&body));
        let answer = if head.contains("/chunked") {
            let (one, two) = text.split_at(text.len() / 2);
            format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x};x=y\r\n{one}\r\n{:x}\r\n\
                 {two}\r\n0\r\nX-Trailer: 1\r\n\r\n",
                one.len(),
                two.len()
            )
        } else if head.contains("/close") {
            format!("HTTP/1.1 200 OK\r\n\r\n{text}")
        } else if head.starts_with("HEAD") {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len())
        } else {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
        };
        writer.write_all(answer.as_bytes())?;
        if head.contains("/close") {
            return Ok(());
        }
    }
}

/// A server that sends back what it gets.
pub(crate) fn echo() -> u16 {
    serve(|mut stream| {
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    })
}

/// The least that is a hello with a server name.
pub(crate) fn client_hello(name: &str) -> Vec<u8> {
    client_hello_with(name, &[])
}

/// The same, with more extensions.
pub(crate) fn client_hello_with(name: &str, more: &[u8]) -> Vec<u8> {
    let length = |count: usize| u16::try_from(count).unwrap().to_be_bytes();
    let entry = [&[0][..], &length(name.len()), name.as_bytes()].concat();
    let list = [&length(entry.len())[..], &entry].concat();
    let extension = [&[0, 0][..], &length(list.len()), &list, more].concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
    body.extend(length(extension.len()));
    body.extend(extension);
    let message = [&[1, 0][..], &length(body.len()), &body].concat();
    [&[0x16, 3, 1][..], &length(message.len()), &message].concat()
}
