//! A client and a server that are connected: what may pass between them?
//!
//! The client's first bytes decide. TLS has to name the server that was asked for; plain HTTP goes
//! on request by request; everything else passes as it is, for it was asked for by name and port.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use policy::ServerName;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::core::{Asked, Core};
use crate::dial::Server;
use crate::http::serve::{HEAD_TIME, Side, serve};
use crate::observer::Route;
use crate::relay::{PumpError, one};
use crate::sniff::{Protocol, sniff};
use crate::tls::{Hello, client_hello};
use crate::wire::{Wire, fill, write_all};

/// How long a client may stay silent before its server may speak, where servers speak first.
const GRACE: Duration = Duration::from_millis(300);
/// Where clients speak first, and the server's words can wait for theirs.
const CLIENT_FIRST: [u16; 2] = [80, 443];

/// Carries everything between the two until they are done.
pub(crate) async fn carry(core: &Arc<Core>, mut client: Wire, mut server: Server) {
    if client.buffer.is_empty() {
        // It held the request for this tunnel; the client may be silent for long.
        client.buffer = BytesMut::new();
    }
    match both_ways(core, &mut client, &mut server).await {
        // Who has heard the server speak first does not speak HTTP.
        Outcome::Http if server.received.load(Ordering::Relaxed) == 0 => {
            Box::pin(serve(core, client, Side::Server(Box::new(server)))).await;
        }
        Outcome::Http => core.observer.malformed(&server.asked.client, "HTTP out of place"),
        Outcome::Refused if server.asked.route == Route::Transparent => client.reset(),
        Outcome::Ended | Outcome::Done | Outcome::Refused => {}
    }
}

enum Outcome {
    /// The client has said all it wants to say.
    Ended,
    /// It is over for both.
    Done,
    /// The client speaks HTTP, and has said nothing to the server yet.
    Http,
    /// The client wants another server than it asked for.
    Refused,
}

/// What is left of one direction of a connection.
struct Up<'a> {
    core: &'a Core,
    asked: &'a Asked,
    from: &'a TcpStream,
    buffer: &'a mut BytesMut,
    to: &'a TcpStream,
    sent: &'a AtomicU64,
}

async fn both_ways(core: &Core, client: &mut Wire, server: &mut Server) -> Outcome {
    let decided = Notify::new();
    let (from, to) = (&client.stream, &server.wire.stream);
    let asked = &server.asked;
    let mut up = Up { core, asked, from, buffer: &mut client.buffer, to, sent: &server.sent };
    let up = async {
        match up.pass(&decided).await {
            Ok(()) => match one(from, to, &server.sent).await {
                Ok(()) => Outcome::Ended,
                Err(_) => Outcome::Done,
            },
            Err(outcome) => outcome,
        }
    };
    // A client that stays silent may be waiting for its server, so after a moment the server's
    // words pass; the client's own are still read before they do.
    let down = async {
        if CLIENT_FIRST.contains(&asked.port) {
            decided.notified().await;
        } else {
            let _ = timeout(GRACE, decided.notified()).await;
        }
        // Bytes that came with the answer of an upstream proxy.
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
                // It may listen on, or it may be gone, which shows only as an error.
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
    /// Passes on what a client begins with, once it is known that it may pass.
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
        // From here on bytes go past this buffer; a tunnel may stand for days.
        *self.buffer = BytesMut::new();
        last
    }

    /// What is spoken, or `None` where nothing is.
    async fn first_words(&mut self) -> Option<Protocol> {
        let (core, from, port) = (self.core, self.from, self.asked.port);
        let buffer = &mut *self.buffer;
        let words = async {
            loop {
                if let Some(protocol) = sniff(buffer, port) {
                    return Some(protocol);
                }
                // Once it has begun, a client has no reason to stop in the middle of a line; and
                // where clients speak first, none to stay silent.
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

    /// Reads a whole `ClientHello`, judges it, and says how long it is.
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

    /// A server may ask for another `ClientHello`, and the second must not name another server than
    /// the first. Whatever else a client says next is encrypted, or comes after the choice.
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
        let reason = policy::server_name(&network, &self.asked.host, self.asked.port, said);
        self.core.require(self.asked, reason).await.map_err(|_| Outcome::Refused)
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
