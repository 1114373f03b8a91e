//! Forwards bytes between a connected client and server.
//!
//! The client's first bytes decide how. TLS must name the server that the client connected to. Plain
//! HTTP is judged request by request. Everything else is forwarded unchanged, because its host and
//! port were already judged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use policy::ServerName;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::core::{Core, Destination};
use crate::dial::Server;
use crate::http::serve::{HEAD_TIME, Side, serve};
use crate::observer::Route;
use crate::relay::{PumpError, one};
use crate::sniff::{Protocol, sniff};
use crate::tls::{Hello, client_hello};
use crate::wire::{Wire, fill, write_all};

/// How long to wait for the client's first bytes before the server's bytes are forwarded.
const GRACE: Duration = Duration::from_millis(300);
/// On these ports clients send first, so the server's bytes always wait for theirs.
const CLIENT_FIRST: [u16; 2] = [80, 443];

/// Forwards everything between the two until both are done.
pub(crate) async fn carry(core: &Arc<Core>, mut client: Wire, mut server: Server) {
    if client.buffer.is_empty() {
        // Free the memory of the request for this tunnel; the client may be idle for a long time.
        client.buffer = BytesMut::new();
    }
    match both_ways(core, &mut client, &mut server).await {
        // In HTTP the server does not send first.
        Outcome::Http if server.received.load(Ordering::Relaxed) == 0 => {
            Box::pin(serve(core, client, Side::Server(Box::new(server)))).await;
        }
        Outcome::Http => core
            .observer
            .malformed(&server.destination.client, "HTTP request after the server sent data"),
        Outcome::Refused if server.destination.route == Route::Transparent => client.reset(),
        Outcome::Ended | Outcome::Done | Outcome::Refused => {}
    }
}

enum Outcome {
    /// The client closed its writing side.
    Ended,
    /// Both directions have ended.
    Done,
    /// The client speaks HTTP, and nothing has been forwarded yet.
    Http,
    /// The client named another server than it connected to.
    Refused,
}

/// The direction from the client to the server.
struct Up<'a> {
    core: &'a Core,
    destination: &'a Destination,
    from: &'a TcpStream,
    buffer: &'a mut BytesMut,
    to: &'a TcpStream,
    sent: &'a AtomicU64,
}

async fn both_ways(core: &Core, client: &mut Wire, server: &mut Server) -> Outcome {
    let decided = Notify::new();
    let (from, to) = (&client.stream, &server.wire.stream);
    let destination = &server.destination;
    let mut up = Up { core, destination, from, buffer: &mut client.buffer, to, sent: &server.sent };
    let up = async {
        match up.pass(&decided).await {
            Ok(()) => match one(from, to, &server.sent).await {
                Ok(()) => Outcome::Ended,
                Err(_) => Outcome::Done,
            },
            Err(outcome) => outcome,
        }
    };
    // A client that sends nothing may be waiting for its server, so after a moment the server's bytes
    // are forwarded. The client's bytes are still judged before they are forwarded.
    let down = async {
        if CLIENT_FIRST.contains(&destination.port) {
            decided.notified().await;
        } else {
            let _ = timeout(GRACE, decided.notified()).await;
        }
        // Bytes that came with the response of an upstream proxy.
        let first = &server.wire.buffer;
        server.received.fetch_add(size(first), Ordering::Relaxed);
        write_all(from, first).await.map_err(|_| PumpError::Writing)?;
        one(to, from, &server.received).await
    };
    tokio::pin!(up, down);
    tokio::select! {
        biased;
        outcome = &mut up => match outcome {
            Outcome::Ended => {
                // The client may still read, or be gone, which is noticed only as an error.
                tokio::select! {
                    _ = down => {}
                    _ = from.ready(Interest::ERROR) => {}
                }
                Outcome::Done
            }
            other => other,
        },
        end = &mut down => match end {
            Ok(()) => up.await,
            Err(_) => Outcome::Done,
        },
    }
}

impl Up<'_> {
    /// Forwards a client's first bytes once they are judged.
    async fn pass(&mut self, decided: &Notify) -> Result<(), Outcome> {
        let protocol = self.first_words().await.ok_or(Outcome::Done)?;
        let ready = match protocol {
            Protocol::Http => return Err(Outcome::Http),
            Protocol::Opaque => self.buffer.len(),
            Protocol::NamelessTls => {
                self.require(&ServerName::Absent).await?;
                self.buffer.len()
            }
            Protocol::Tls => self.hello().await?,
        };
        decided.notify_one();
        self.forward(ready).await?;
        if protocol == Protocol::Tls {
            self.second_hello().await?;
        }
        let last = self.forward(self.buffer.len()).await;
        // Later bytes do not use this buffer, and a tunnel may stay open for days.
        *self.buffer = BytesMut::new();
        last
    }

    /// The protocol, or `None` if the client sends nothing.
    async fn first_words(&mut self) -> Option<Protocol> {
        let (core, from, port) = (self.core, self.from, self.destination.port);
        let buffer = &mut *self.buffer;
        let words = async {
            loop {
                if let Some(protocol) = sniff(buffer, port) {
                    return Some(protocol);
                }
                // A client has no reason to pause in the middle of a line, or before its first byte
                // on ports where clients send first.
                let silent = buffer.is_empty() && !CLIENT_FIRST.contains(&port);
                let count = match fill(from, buffer) {
                    wait if silent => wait.await.ok()?,
                    wait => timeout(HEAD_TIME, wait).await.ok()?.ok()?,
                };
                if count == 0 {
                    return Some(Protocol::Opaque);
                }
            }
        };
        core.gate.waiting(words).await.ok()?
    }

    /// Reads a whole `ClientHello`, judges it, and returns its length.
    async fn hello(&mut self) -> Result<usize, Outcome> {
        let reading = async {
            loop {
                if let Hello::Said(name, length) = client_hello(self.buffer) {
                    return Ok((name, length));
                }
                self.more().await?;
            }
        };
        let (name, length) = timeout(HEAD_TIME, reading).await.map_err(|_| Outcome::Done)??;
        self.require(&name).await?;
        Ok(length)
    }

    /// A server may ask for a second `ClientHello`, which must not name another server than the first.
    /// Anything else that the client sends next is encrypted, or comes after the server was chosen.
    async fn second_hello(&mut self) -> Result<(), Outcome> {
        loop {
            match &self.buffer[..] {
                [0x14, 0x03, _, high, low, rest @ ..] => {
                    let length = usize::from(u16::from_be_bytes([*high, *low]));
                    if rest.len() < length {
                        self.more().await?;
                    } else {
                        self.forward(5 + length).await?;
                    }
                }
                [0x16, 0x03, _, _, _, 0x01, ..] => return self.hello().await.map(|_| ()),
                [] | [0x14 | 0x16] | [0x14 | 0x16, 0x03, ..] if self.buffer.len() < 6 => {
                    self.more().await?;
                }
                _ => return Ok(()),
            }
        }
    }

    async fn require(&self, said: &ServerName) -> Result<(), Outcome> {
        let network = self.core.rules().network;
        let reason =
            policy::server_name(&network, &self.destination.host, self.destination.port, said);
        self.core.require(self.destination, reason).await.map_err(|_| Outcome::Refused)
    }

    async fn more(&mut self) -> Result<(), Outcome> {
        match fill(self.from, self.buffer).await {
            Ok(count) if count > 0 => Ok(()),
            _ => Err(Outcome::Done),
        }
    }

    async fn forward(&mut self, length: usize) -> Result<(), Outcome> {
        let bytes = self.buffer.split_to(length.min(self.buffer.len()));
        self.sent.fetch_add(size(&bytes), Ordering::Relaxed);
        write_all(self.to, &bytes).await.map_err(|_| Outcome::Done)
    }
}

fn size(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(0)
}
