//! Servers on this machine that give out a directory and remember who came.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Long enough for a loaded machine; a client that is silent for so long has gone wrong.
const PATIENCE: Duration = Duration::from_mins(2);

pub(super) struct Server {
    pub(super) port: u16,
    seen: Arc<Mutex<Seen>>,
    over: Arc<AtomicBool>,
}

/// What a server has seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Connections that were made, whether anything was said on them or not.
    pub(super) connections: usize,
    /// Connections on which something was said.
    pub(super) spoken: usize,
    pub(super) requests: Vec<Request>,
}

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) host: String,
}

impl Server {
    /// Gives out a directory in the clear.
    pub(super) fn plain(dir: PathBuf) -> Self {
        Self::start(move |stream, seen| serve(stream, &dir, seen))
    }

    /// The same over TLS.
    pub(super) fn tls(dir: PathBuf, config: Arc<ServerConfig>) -> Self {
        Self::start(move |stream, seen| {
            let Ok(connection) = ServerConnection::new(Arc::clone(&config)) else { return None };
            serve(StreamOwned::new(connection, stream), &dir, seen)
        })
    }

    fn start(
        handle: impl Fn(TcpStream, &Mutex<Seen>) -> Option<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let over = Arc::new(AtomicBool::new(false));
        let server = Self { port, seen: Arc::clone(&seen), over: Arc::clone(&over) };
        let handle = Arc::new(handle);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (seen, handle) = (Arc::clone(&seen), Arc::clone(&handle));
                seen.lock().unwrap().connections += 1;
                thread::spawn(move || {
                    stream.set_read_timeout(Some(PATIENCE)).ok()?;
                    if stream.peek(&mut [0]).ok()? > 0 {
                        seen.lock().unwrap().spoken += 1;
                    }
                    handle(stream, &seen)
                });
            }
        });
        server
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// What was seen since this was asked the last time.
    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the one who waits for clients.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Answers requests, until there is one that cannot be read.
fn serve(stream: impl Read + Write, dir: &Path, seen: &Mutex<Seen>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let field = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(':'));
            lines
                .filter(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim())
                .next()
        };
        let path = head.split_whitespace().nth(1)?.to_owned();
        let last = head.contains(" HTTP/1.0\r\n");
        let host = field("host").unwrap_or_default().to_owned();
        let length = field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        std::io::copy(&mut stream.by_ref().take(length), &mut std::io::sink()).ok()?;
        seen.lock().unwrap().requests.push(Request { path: path.clone(), host });
        let body = page(dir, &path);
        let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
        let body = body.unwrap_or_default();
        let kind = match body.first() {
            Some(b'<') => "text/html",
            Some(b'{') => "application/json",
            _ => "application/octet-stream",
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        );
        let stream = stream.get_mut();
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&body).ok()?;
        stream.flush().ok()?;
        if last {
            return Some(());
        }
    }
}

/// The file behind a path; a directory has a page of its own in `index`.
fn page(dir: &Path, path: &str) -> Option<Vec<u8>> {
    let path = path.split('?').next()?.trim_start_matches('/');
    assert!(!path.contains(".."), "{path}");
    let file = dir.join(path);
    std::fs::read(if file.is_dir() { file.join("index") } else { file }).ok()
}
