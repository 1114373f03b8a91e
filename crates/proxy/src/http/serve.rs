//! Requests and responses between a client and the servers it asks for.
//!
//! One request at a time: the next is read when the answer to the last has been passed on, so the
//! judged request is the one that the server gets, whatever a client sends in advance.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use model::Host;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::body::{Body, chunk_line};
use super::head::{Authority, HeadError, Request, Target, head_end};
use super::response::Response;
use super::{HEAD_LIMIT, reply};
use crate::core::{Asked, Core, Failure};
use crate::dial::{Server, open};
use crate::observer::{Refusal, Route};
use crate::relay::{PumpError, both, pump};
use crate::tunnel;
use crate::wire::{Wire, fill, write_all};

/// How long a client may take to say what it wants.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(30);

/// Whose requests these are.
pub(crate) enum Side {
    /// A client of the proxy: each request names its host.
    Proxy(SocketAddr),
    /// A client that believes it speaks to a server: every request must be for that one.
    Server(Box<Server>),
}

/// Serves a client until one of the two has had enough.
pub(crate) async fn serve(core: &Arc<Core>, mut client: Wire, side: Side) {
    let (fixed, address, mut server) = match side {
        Side::Proxy(address) => (None, address, None),
        Side::Server(server) => {
            let asked = server.asked.clone();
            let client = asked.client;
            (Some(asked), client, Some(*server))
        }
    };
    loop {
        let request = match next_request(core, &mut client).await {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(HeadError::Host { text, error }) => {
                // A host that cannot be read is still one that somebody tried to reach.
                let reason = policy::unreadable_host(&text, error);
                let (port, route) = fixed.as_ref().map_or((0, Route::Http), |a| (a.port, a.route));
                let refusal = Refusal { host: text, port, route, client: address, reason };
                let failure = core.report(refusal).await;
                return client.finish(&reply::failure(&failure)).await;
            }
            Err(error) => {
                core.observer.malformed(address, &error.to_string());
                return client.finish(&reply::malformed(&error)).await;
            }
        };
        let (asked, host) = match target(core, &request, fixed.as_ref(), address).await {
            Ok(target) => target,
            Err(Denied::Failure(failure)) => {
                return client.finish(&reply::failure(&failure)).await;
            }
            Err(Denied::Malformed(error)) => {
                core.observer.malformed(address, &error.to_string());
                return client.finish(&reply::malformed(&error)).await;
            }
        };
        let reused = server.take().filter(|server| is_for(server, &asked));
        let is_reused = reused.is_some();
        let opened = match reused {
            // The rules may have changed since it was opened.
            Some(server) => {
                let reason = policy::connect(&core.rules().ground, &asked.host, asked.port);
                core.require(&asked, reason).await.map(|()| server)
            }
            None => open(core, &asked).await,
        };
        let mut upstream = match opened {
            Ok(server) => server,
            Err(failure) => return client.finish(&reply::failure(&failure)).await,
        };
        if matches!(request.target, Target::Tunnel(..)) {
            if client.write(reply::ESTABLISHED).await.is_ok() {
                tunnel::carry(core, client, upstream).await;
            }
            return;
        }
        match exchange(&mut client, &mut upstream, &request, &host).await {
            Next::Keep => server = Some(upstream),
            Next::Close => return,
            Next::Switch => return switch(client, upstream).await,
            // The server had closed in the meantime; the client may repeat what it knows to be safe.
            Next::Nothing(_) if is_reused => return,
            Next::Nothing(why) => return client.finish(&reply::bad_gateway(&why)).await,
        }
    }
}

async fn next_request(core: &Core, client: &mut Wire) -> Result<Option<Request>, HeadError> {
    let words = timeout(HEAD_TIME, read_head(&client.stream, &mut client.buffer));
    match core.gate.waiting(words).await {
        Ok(Ok(Ok(Some(head)))) => Request::parse(&head).map(Some),
        Ok(Ok(Err(error))) => Err(error),
        // Gone, silent for too long, or sent away.
        Ok(Ok(Ok(None)) | Err(_)) | Err(_) => Ok(None),
    }
}

/// Reads a head, or `None` where the connection ends before there is one.
async fn read_head(
    stream: &TcpStream,
    buffer: &mut BytesMut,
) -> Result<Option<BytesMut>, HeadError> {
    let mut seen = 0;
    loop {
        if let Some(end) = head_end(buffer, seen)? {
            return Ok(Some(buffer.split_to(end)));
        }
        seen = buffer.len();
        if !fill(stream, buffer).await.is_ok_and(|count| count > 0) {
            return Ok(None);
        }
    }
}

/// What a request is for, and the host that it names to the server. Judged against what the
/// connection is for: every request on it has to be for the same host.
async fn target(
    core: &Core,
    request: &Request,
    fixed: Option<&Asked>,
    client: SocketAddr,
) -> Result<(Asked, Host), Denied> {
    let asked = match (&request.target, fixed) {
        (Target::Tunnel(host, port), None) => {
            core.asked(host.clone(), *port, Route::Connect, client).await?
        }
        (Target::Absolute(to, _), None) => {
            core.asked(to.host.clone(), to.port.unwrap_or(80), Route::Http, client).await?
        }
        (Target::Origin(_), Some(asked)) => asked.clone(),
        (Target::Absolute(to, _), Some(asked)) => {
            named(core, asked, to).await?;
            asked.clone()
        }
        (Target::Origin(_), None) | (Target::Tunnel(..), Some(_)) => {
            return Err(Denied::Malformed(HeadError::Target));
        }
    };
    let host = match &request.host {
        Some(said) => named(core, &asked, said).await?,
        None => asked.host.clone(),
    };
    Ok((asked, host))
}

enum Denied {
    Failure(Failure),
    Malformed(HeadError),
}

impl From<Failure> for Denied {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// The host that is said, where it is the one that was asked for.
async fn named(core: &Core, asked: &Asked, said: &Authority) -> Result<Host, Failure> {
    // A made-up address means the name that it was made up for.
    let alias = said.host.address().and_then(|address| core.book().host(address));
    let host = alias.as_ref().unwrap_or(&said.host);
    let ground = core.rules().ground;
    let reason = policy::request_host(&ground, &asked.host, asked.port, host, said.port);
    core.require(asked, reason).await?;
    Ok(host.clone())
}

/// Whether a connection can serve another request: the same server, still there, and silent.
fn is_for(server: &Server, asked: &Asked) -> bool {
    let mut byte = [0];
    let silent = server
        .wire
        .stream
        .try_read(&mut byte)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    silent
        && server.wire.buffer.is_empty()
        && (&server.asked.host, server.asked.port) == (&asked.host, asked.port)
}

/// How it goes on after an exchange.
enum Next {
    Keep,
    Close,
    /// Both go on as something else than HTTP.
    Switch,
    /// The server gave no answer that could be passed on.
    Nothing(String),
}

/// One request and its answer. Both flow at once: a server may answer before it has heard all.
async fn exchange(client: &mut Wire, server: &mut Server, request: &Request, host: &Host) -> Next {
    let head = request.bytes(host, server.asked.port);
    let (sent, received) = (&server.sent, &server.received);
    let (client_stream, server_stream) = (&client.stream, &server.wire.stream);
    if write_all(server_stream, &head).await.is_err() {
        return Next::Nothing("it closed the connection".to_owned());
    }
    sent.fetch_add(u64::try_from(head.len()).unwrap_or(0), Ordering::Relaxed);
    let up = copy(request.body, client_stream, &mut client.buffer, server_stream, sent);
    let down = answer(server_stream, &mut server.wire.buffer, client_stream, request, received);
    tokio::pin!(up, down);
    let (sound, early) = tokio::select! {
        biased;
        done = &mut up => match done {
            Ok(()) => (true, None),
            // The server has heard enough and may have said why.
            Err(PumpError::Writing) => (false, None),
            Err(PumpError::Reading) => return Next::Close,
        },
        next = &mut down => (false, Some(next)),
    };
    let next = match early {
        Some(next) => next,
        // A client that is gone shows only as an error while its answer is awaited.
        None => tokio::select! {
            biased;
            next = down => next,
            _ = client_stream.ready(Interest::ERROR) => return Next::Close,
        },
    };
    match next {
        Next::Keep if !sound || request.close => Next::Close,
        next => next,
    }
}

/// Passes the answer on: any number of interim ones, then the one.
async fn answer(
    server: &TcpStream,
    buffer: &mut BytesMut,
    client: &TcpStream,
    request: &Request,
    received: &AtomicU64,
) -> Next {
    let mut begun = false;
    loop {
        let response = match read_head(server, buffer).await {
            Ok(Some(head)) => Response::parse(&head, &request.method),
            Ok(None) if begun => return Next::Close,
            Ok(None) => return Next::Nothing("it closed the connection".to_owned()),
            Err(error) => Err(error),
        };
        let response = match response {
            Ok(response) if response.switches() && !request.websocket => {
                return Next::Nothing("it switches to another protocol".to_owned());
            }
            Ok(response) => response,
            Err(_) if begun => return Next::Close,
            Err(error) => return Next::Nothing(error.to_string()),
        };
        let close = response.close || request.close;
        let head = response.bytes(close);
        begun = true;
        if write_all(client, &head).await.is_err() {
            return Next::Close;
        }
        received.fetch_add(u64::try_from(head.len()).unwrap_or(0), Ordering::Relaxed);
        if response.switches() {
            return Next::Switch;
        }
        if response.status < 200 {
            continue;
        }
        return match copy(response.body, server, buffer, client, received).await {
            Ok(()) if !close => Next::Keep,
            _ => Next::Close,
        };
    }
}

/// Both sides go on as they like: the server has agreed to it.
async fn switch(client: Wire, server: Server) {
    let (up, down) = (&client.buffer, &server.wire.buffer);
    let first = tokio::try_join!(server.wire.write(up), client.write(down));
    if first.is_ok() {
        let _ = both(&client.stream, &server.wire.stream, &server.sent, &server.received).await;
    }
}

/// Moves a body, beginning with what was read already, and not one byte beyond its end.
async fn copy(
    body: Body,
    from: &TcpStream,
    buffer: &mut BytesMut,
    to: &TcpStream,
    count: &AtomicU64,
) -> Result<(), PumpError> {
    match body {
        Body::Empty => Ok(()),
        Body::Length(length) => exactly(length, from, buffer, to, count).await,
        Body::UntilClose => {
            let held = u64::try_from(buffer.len()).unwrap_or(0);
            exactly(held, from, buffer, to, count).await?;
            pump(from, to, None, count).await.map(|_| ())
        }
        Body::Chunked => loop {
            let (length, line) = loop {
                match chunk_line(buffer).map_err(|_| PumpError::Reading)? {
                    Some(chunk) => break chunk,
                    None => more(from, buffer).await?,
                }
            };
            buffer.advance(line);
            if length == 0 {
                trailers(from, buffer).await?;
                return write_all(to, b"0\r\n\r\n").await.map_err(|_| PumpError::Writing);
            }
            let line = format!("{length:x}\r\n");
            write_all(to, line.as_bytes()).await.map_err(|_| PumpError::Writing)?;
            exactly(length, from, buffer, to, count).await?;
            while buffer.len() < 2 {
                more(from, buffer).await?;
            }
            if !buffer.starts_with(b"\r\n") {
                return Err(PumpError::Reading);
            }
            buffer.advance(2);
            write_all(to, b"\r\n").await.map_err(|_| PumpError::Writing)?;
        },
    }
}

async fn more(from: &TcpStream, buffer: &mut BytesMut) -> Result<(), PumpError> {
    match fill(from, buffer).await {
        Ok(count) if count > 0 => Ok(()),
        _ => Err(PumpError::Reading),
    }
}

async fn exactly(
    length: u64,
    from: &TcpStream,
    buffer: &mut BytesMut,
    to: &TcpStream,
    count: &AtomicU64,
) -> Result<(), PumpError> {
    let held = usize::try_from(length).unwrap_or(usize::MAX).min(buffer.len());
    let first = buffer.split_to(held);
    write_all(to, &first).await.map_err(|_| PumpError::Writing)?;
    let held = u64::try_from(held).unwrap_or(0);
    count.fetch_add(held, Ordering::Relaxed);
    let moved = pump(from, to, Some(length - held), count).await?;
    if held + moved == length { Ok(()) } else { Err(PumpError::Reading) }
}

/// Reads over the fields behind the last chunk. They are not passed on: nothing that they say was
/// judged.
async fn trailers(from: &TcpStream, buffer: &mut BytesMut) -> Result<(), PumpError> {
    let mut room = HEAD_LIMIT;
    loop {
        match buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) if end + 1 > room => return Err(PumpError::Reading),
            Some(end) => {
                let line = buffer.split_to(end + 1);
                room -= line.len();
                match line.strip_suffix(b"\r\n") {
                    Some(b"") => return Ok(()),
                    Some(line) if !line.contains(&b'\r') => {}
                    _ => return Err(PumpError::Reading),
                }
            }
            None if buffer.len() > room => return Err(PumpError::Reading),
            None => more(from, buffer).await?,
        }
    }
}
