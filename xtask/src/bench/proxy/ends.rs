//! The two ends of a download: a server on loopback, and a client that is the same everywhere.
//!
//! A separate program, because the client runs in other sandboxes as well. It is built with `rustc`
//! alone, so it uses only the standard library.
//!
//! ```text
//! ends serve                   prints its port, and serves until its input ends
//! ends fetch HOST PORT         reads jobs from its input, a line each, and prints the seconds
//!
//! queue WAY CONNECTIONS BYTES  one connection after the other
//! crowd WAY CONNECTIONS BYTES  all of them open at once
//! ```
//!
//! The ways: `plain` (no proxy, as the name resolves here), `connect`, `tunnel` (the same, but what
//! goes through it is not HTTP), `http` and `socks`.

use std::env;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// How much the client reads and the server writes at once: the fastest of those measured.
const READ: usize = 256 * 1024;
const WRITE: usize = 1024 * 1024;
/// The timeout of every connection.
const PATIENCE: Duration = Duration::from_mins(1);

static ZEROS: [u8; WRITE] = [0; WRITE];

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["serve"] => serve(),
        ["fetch", host, port] => fetch(&format!("{host}:{port}")),
        _ => Err(broken("usage: ends serve | ends fetch HOST PORT")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn broken(why: impl Into<String>) -> io::Error {
    io::Error::other(why.into())
}

fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let thread = thread::Builder::new().stack_size(64 * 1024);
            // A client that goes away is the client's problem.
            let _ = thread.spawn(move || answer(stream));
        }
    });
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

/// Sends as many bytes as were asked for: `GET /BYTES HTTP/1.1`, or `BYTES /BYTES` for the bytes
/// alone.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut room = [0; 4096];
        match stream.read(&mut room)? {
            0 => return Ok(()),
            count => head.extend(room.iter().take(count)),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split_whitespace();
    let http = words.next() == Some("GET");
    let path = words.next().unwrap_or_default();
    let mut left: usize = path.trim_start_matches('/').parse().unwrap_or(0);
    if http {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ";
        stream.write_all(format!("{head}{left}\r\n\r\n").as_bytes())?;
    }
    while left > 0 {
        let bytes = ZEROS.get(..left.min(WRITE)).unwrap_or_default();
        stream.write_all(bytes)?;
        left -= bytes.len();
    }
    Ok(())
}

fn fetch(server: &str) -> io::Result<()> {
    let mut room = vec![0; READ];
    for line in io::stdin().lock().lines() {
        let line = line?;
        let answer = match job(&line, server, &mut room) {
            Ok(time) => time.as_secs_f64().to_string(),
            Err(error) => format!("error: `{line}`: {error}"),
        };
        writeln!(io::stdout(), "{answer}")?;
    }
    Ok(())
}

fn job(line: &str, server: &str, room: &mut [u8]) -> io::Result<Duration> {
    let mut words = line.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let way = Way::find(words.next().unwrap_or_default(), server)?;
    let mut number = || {
        let number = words.next().and_then(|word| word.parse::<u64>().ok());
        number.ok_or_else(|| broken("not a number"))
    };
    let (connections, bytes) = (number()?, number()?);
    let started = Instant::now();
    match kind {
        "queue" => {
            for _ in 0..connections {
                let mut stream = way.begin()?;
                way.open(&mut stream)?;
                way.ask(&mut stream, bytes)?;
                way.receive(&mut stream, bytes, room)?;
            }
        }
        "crowd" => {
            let mut streams =
                (0..connections).map(|_| way.begin()).collect::<io::Result<Vec<_>>>()?;
            for stream in &mut streams {
                way.open(stream)?;
            }
            for stream in &mut streams {
                way.ask(stream, bytes)?;
            }
            for stream in &mut streams {
                way.receive(stream, bytes, room)?;
            }
        }
        _ => return Err(broken("neither queue nor crowd")),
    }
    Ok(started.elapsed())
}

/// How a client reaches the server.
struct Way {
    kind: Kind,
    server: String,
    /// Whom to connect to: the server or the proxy.
    peer: String,
    /// The name and the password that the proxy wants, with a colon between them.
    credentials: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Connect,
    Tunnel,
    Http,
    Socks,
}

impl Way {
    fn find(name: &str, server: &str) -> io::Result<Self> {
        let kind = match name {
            "plain" => Kind::Plain,
            "connect" => Kind::Connect,
            "tunnel" => Kind::Tunnel,
            "http" => Kind::Http,
            "socks" => Kind::Socks,
            _ => return Err(broken("no such way")),
        };
        let (variables, scheme): (&[&str], _) = match kind {
            Kind::Plain => (&[], ""),
            Kind::Connect | Kind::Tunnel | Kind::Http => (&["HTTP_PROXY"], "http://"),
            Kind::Socks => (&["ALL_PROXY", "FTP_PROXY"], "socks5h://"),
        };
        let server = server.to_owned();
        if kind == Kind::Plain {
            return Ok(Self { kind, peer: server.clone(), server, credentials: None });
        }
        let mut values = variables.iter().filter_map(|name| env::var(name).ok());
        let proxy = values.find_map(|value| Some(value.strip_prefix(scheme)?.to_owned()));
        let proxy = proxy.ok_or_else(|| broken(format!("no {scheme} proxy in the environment")))?;
        let (credentials, peer) = match proxy.rsplit_once('@') {
            Some((credentials, peer)) => (Some(credentials.to_owned()), peer),
            None => (None, proxy.as_str()),
        };
        Ok(Self { kind, server, peer: peer.trim_end_matches('/').to_owned(), credentials })
    }

    /// Connects, and says the first words that need no answer.
    fn begin(&self) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.peer)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let server = &self.server;
        match self.kind {
            Kind::Plain | Kind::Http => {}
            Kind::Connect | Kind::Tunnel => {
                let pass = self.authorization();
                let head = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n{pass}\r\n");
                stream.write_all(head.as_bytes())?;
            }
            Kind::Socks => {
                stream.write_all(&[5, 1, if self.credentials.is_some() { 2 } else { 0 }])?;
            }
        }
        Ok(stream)
    }

    /// Waits until the proxy has connected.
    fn open(&self, stream: &mut TcpStream) -> io::Result<()> {
        match self.kind {
            Kind::Plain | Kind::Http => Ok(()),
            Kind::Connect | Kind::Tunnel => {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    // Byte by byte, so that nothing behind it is lost; it is short.
                    let mut byte = [0];
                    stream.read_exact(&mut byte)?;
                    head.extend(byte);
                }
                is_fine(&head)
            }
            Kind::Socks => self.open_socks(stream),
        }
    }

    fn open_socks(&self, stream: &mut TcpStream) -> io::Result<()> {
        let short = |text: &str| u8::try_from(text.len()).map_err(io::Error::other);
        let mut answer = [0; 2];
        stream.read_exact(&mut answer)?;
        if let Some((name, password)) =
            self.credentials.as_ref().and_then(|all| all.split_once(':'))
        {
            let mut words = vec![1, short(name)?];
            words.extend(name.as_bytes());
            words.push(short(password)?);
            words.extend(password.as_bytes());
            stream.write_all(&words)?;
            stream.read_exact(&mut answer)?;
        }
        if answer[1] != 0 {
            return Err(broken("the proxy does not want this client"));
        }
        let (host, port) = self.server.rsplit_once(':').ok_or_else(|| broken("no port"))?;
        let port: u16 = port.parse().map_err(io::Error::other)?;
        let mut words = vec![5, 1, 0, 3, short(host)?];
        words.extend(host.as_bytes());
        words.extend(port.to_be_bytes());
        stream.write_all(&words)?;
        // Proxies answer with an address of four bytes or of sixteen.
        let mut answer = [0; 10];
        stream.read_exact(&mut answer)?;
        if answer[3] == 4 {
            stream.read_exact(&mut [0; 12])?;
        }
        if answer[1] == 0 { Ok(()) } else { Err(broken(format!("the proxy says {}", answer[1]))) }
    }

    fn ask(&self, stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
        let server = &self.server;
        let head = match self.kind {
            Kind::Tunnel => format!("BYTES /{bytes}\r\n\r\n"),
            Kind::Http => {
                let pass = self.authorization();
                format!("GET http://{server}/{bytes} HTTP/1.1\r\nHost: {server}\r\n{pass}\r\n")
            }
            _ => format!("GET /{bytes} HTTP/1.1\r\nHost: {server}\r\n\r\n"),
        };
        stream.write_all(head.as_bytes())
    }

    /// Reads to the end, which must come where it was promised.
    fn receive(&self, stream: &mut TcpStream, bytes: u64, room: &mut [u8]) -> io::Result<()> {
        let mut got: u64 = 0;
        let mut head = self.kind != Kind::Tunnel;
        let mut held = 0;
        while head || got < bytes {
            let count = match stream.read(room.get_mut(held..).unwrap_or_default()) {
                Ok(0) => return Err(broken(format!("ended after {got} bytes"))),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if !head {
                got += size(count);
                continue;
            }
            held += count;
            let text = room.get(..held).unwrap_or_default();
            if let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") {
                is_fine(text)?;
                got = size(held - end - 4);
                (head, held) = (false, 0);
            }
        }
        if got == bytes { Ok(()) } else { Err(broken(format!("{got} bytes came"))) }
    }

    fn authorization(&self) -> String {
        let credentials = self.credentials.as_deref().map(|text| base64(text.as_bytes()));
        let line = credentials.map(|text| format!("Proxy-Authorization: Basic {text}\r\n"));
        line.unwrap_or_default()
    }
}

fn size(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

fn is_fine(head: &[u8]) -> io::Result<()> {
    if head.get(8..12) == Some(b" 200") {
        return Ok(());
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Err(broken(format!("the answer is `{}`", line.escape_ascii())))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            (0..3).fold(0, |bits, place| bits << 8 | usize::from(*three.get(place).unwrap_or(&0)));
        for place in 0..4 {
            let digit = DIGITS.get(bits >> (18 - 6 * place) & 63).copied().unwrap_or_default();
            text.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_written_as_proxies_read_them() {
        for (plain, written) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj")] {
            assert_eq!(base64(plain.as_bytes()), written);
        }
    }
}
