//! Forwards one request and its response.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use model::Host;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::head::{HeadError, Request, head_end};
use super::response::Response;
use super::transfer::copy;
use crate::dial::Server;
use crate::relay::{PumpError, both};
use crate::wire::{Wire, fill, write_all};

/// What follows an exchange.
pub(super) enum Next {
    Keep,
    Close,
    /// Both sides switch to another protocol.
    Switch,
    /// The server sent no response that can be forwarded.
    Nothing(String),
}

/// Forwards one request and its response at the same time, because a server may respond before it has
/// the whole request.
pub(super) async fn exchange(
    client: &mut Wire,
    server: &mut Server,
    request: &Request,
    host: &Host,
) -> Next {
    let head = request.bytes(host, server.destination.port);
    let (sent, received) = (&server.sent, &server.received);
    let (client_stream, server_stream) = (&client.stream, &server.wire.stream);
    if write_all(server_stream, &head).await.is_err() {
        return Next::Nothing("it closed the connection".to_owned());
    }
    sent.fetch_add(u64::try_from(head.len()).unwrap_or(0), Ordering::Relaxed);
    let up = copy(request.body, client_stream, &mut client.buffer, server_stream, sent);
    let down = answer(server_stream, &mut server.wire.buffer, client_stream, request, received);
    tokio::pin!(up, down);
    let (valid, early) = tokio::select! {
        biased;
        done = &mut up => match done {
            Ok(()) => (true, None),
            // The server stopped reading and may have sent a response that says why.
            Err(PumpError::Writing) => (false, None),
            Err(PumpError::Reading) => return Next::Close,
        },
        next = &mut down => (false, Some(next)),
    };
    let next = match early {
        Some(next) => next,
        // A client that disconnects while it waits for the response is noticed only as an error.
        None => tokio::select! {
            biased;
            next = down => next,
            _ = client_stream.ready(Interest::ERROR) => return Next::Close,
        },
    };
    match next {
        Next::Keep if !valid || request.close => Next::Close,
        next => next,
    }
}

/// Forwards any number of interim responses, then the final one.
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
                return Next::Nothing("it switched to another protocol".to_owned());
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

/// Forwards bytes both ways after the server has accepted a protocol upgrade.
pub(super) async fn switch(client: Wire, server: Server) {
    let (up, down) = (&client.buffer, &server.wire.buffer);
    let first = tokio::try_join!(server.wire.write(up), client.write(down));
    if first.is_ok() {
        let _ = both(&client.stream, &server.wire.stream, &server.sent, &server.received).await;
    }
}

/// Reads a head, or `None` if the connection ends before one starts.
pub(super) async fn read_head(
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
