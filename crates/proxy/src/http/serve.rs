//! Serves the HTTP requests of a client.
//!
//! One request at a time: the next is read after the response to the last has been forwarded. So the
//! server gets exactly the request that was judged, even if a client pipelines.

use std::sync::Arc;
use std::time::Duration;

use model::{Caller, Host};
use tokio::time::timeout;

use super::exchange::{Next, exchange, read_head, switch};
use super::head::{Authority, HeadError, Request, Target};
use super::reply;
use crate::core::{Core, Destination, Failure};
use crate::dial::{Server, open};
use crate::observer::{Refusal, Route};
use crate::tunnel::carry;
use crate::wire::Wire;

/// How long a client may take to send a request head.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(30);

/// Where the requests come from.
pub(crate) enum Side {
    /// A client of the proxy: each request names its host.
    Proxy(Caller),
    /// A client that is connected to one server: every request must be for that server.
    Server(Box<Server>),
}

/// Serves a client until it or the server closes the connection.
pub(crate) async fn serve(core: &Arc<Core>, mut client: Wire, side: Side) {
    // Boxed, so that a tunnel does not keep the memory of the request that opened it.
    match Box::pin(requests(core, &mut client, side)).await {
        End::Close => {}
        End::Say(words) => client.finish(&words).await,
        End::Tunnel(server) => Box::pin(carry(core, client, *server)).await,
        End::Switch(server) => switch(client, *server).await,
    }
}

/// What follows the last request.
enum End {
    Close,
    /// Send these bytes, then close.
    Say(Vec<u8>),
    /// Forward bytes after CONNECT.
    Tunnel(Box<Server>),
    /// Forward bytes after a protocol upgrade.
    Switch(Box<Server>),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Say(reply::failure(&failure))
    }
}

async fn requests(core: &Arc<Core>, client: &mut Wire, side: Side) -> End {
    let (fixed, address, mut server) = match side {
        Side::Proxy(address) => (None, address, None),
        Side::Server(server) => {
            let destination = server.destination.clone();
            let client = destination.client;
            (Some(destination), client, Some(*server))
        }
    };
    loop {
        let Some(request) = next_request(core, client).await else { return End::Close };
        let (request, destination, host) =
            match judged(core, request, fixed.as_ref(), address).await {
                Ok(judged) => judged,
                Err(end) => return end,
            };
        let tunnel = matches!(request.target, Target::Tunnel(..));
        let reused = server.take().filter(|server| !tunnel && is_for(server, &destination));
        let is_reused = reused.is_some();
        let opened = match reused {
            // The rules may have changed since it was opened.
            Some(server) => {
                let reason =
                    policy::connect(&core.rules().network, &destination.host, destination.port);
                core.require(&destination, reason).await.map(|()| server)
            }
            None => open(core, &destination).await,
        };
        let mut upstream = match opened {
            Ok(server) => server,
            Err(failure) => return failure.into(),
        };
        if tunnel {
            return match client.write(reply::ESTABLISHED).await {
                Ok(()) => End::Tunnel(Box::new(upstream)),
                Err(_) => End::Close,
            };
        }
        match exchange(client, &mut upstream, &request, &host).await {
            Next::Keep => server = Some(upstream),
            Next::Close => return End::Close,
            Next::Switch => return End::Switch(Box::new(upstream)),
            // The server closed an idle connection; the client may repeat a safe request.
            Next::Nothing(_) if is_reused => return End::Close,
            Next::Nothing(why) => return End::Say(reply::bad_gateway(&why)),
        }
    }
}

/// The next request, or `None` if the client closed the connection, was idle for too long or had to
/// make room.
async fn next_request(core: &Core, client: &mut Wire) -> Option<Result<Request, HeadError>> {
    let words = timeout(HEAD_TIME, read_head(&client.stream, &mut client.buffer));
    match core.gate.waiting(words).await {
        Ok(Ok(Ok(head))) => head.map(|head| Request::parse(&head)),
        Ok(Ok(Err(error))) => Some(Err(error)),
        Ok(Err(_)) | Err(_) => None,
    }
}

/// Judges a request. Returns it with its destination and the host to send to the server.
async fn judged(
    core: &Core,
    request: Result<Request, HeadError>,
    fixed: Option<&Destination>,
    client: Caller,
) -> Result<(Request, Destination, Host), End> {
    let denied = match request {
        Ok(request) => match target(core, &request, fixed, client).await {
            Ok((destination, host)) => return Ok((request, destination, host)),
            Err(denied) => denied,
        },
        // An invalid host is reported as well, because a client tried to reach it.
        Err(HeadError::Host { text, error }) => {
            let reason = policy::unreadable_host(&text, error);
            let (port, route) =
                fixed.map_or((0, Route::Http), |destination| (destination.port, destination.route));
            Denied::Failure(core.report(Refusal { host: text, port, route, client, reason }).await)
        }
        Err(error) => Denied::Malformed(error),
    };
    Err(match denied {
        Denied::Failure(failure) => failure.into(),
        Denied::Malformed(error) => {
            core.observer.malformed(&client, &error.to_string());
            End::Say(reply::malformed(&error))
        }
    })
}

/// The destination of a request, and the host to send to the server. Every request on a connection
/// to one server must be for that server.
async fn target(
    core: &Core,
    request: &Request,
    fixed: Option<&Destination>,
    client: Caller,
) -> Result<(Destination, Host), Denied> {
    let destination = match (&request.target, fixed) {
        (Target::Tunnel(host, port), None) => {
            core.destination(host.clone(), *port, Route::Connect, client).await?
        }
        (Target::Absolute(to, _), None) => {
            core.destination(to.host.clone(), to.port.unwrap_or(80), Route::Http, client).await?
        }
        (Target::Origin(_), Some(destination)) => destination.clone(),
        (Target::Absolute(to, _), Some(destination)) => {
            named(core, destination, to).await?;
            destination.clone()
        }
        (Target::Origin(_), None) | (Target::Tunnel(..), Some(_)) => {
            return Err(Denied::Malformed(HeadError::Target));
        }
    };
    let host = match &request.host {
        Some(said) => named(core, &destination, said).await?,
        None => destination.host.clone(),
    };
    Ok((destination, host))
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

/// The host that a request names, if that is its destination.
async fn named(core: &Core, destination: &Destination, said: &Authority) -> Result<Host, Failure> {
    // A made-up address means the name that it was made up for.
    let alias = said.host.address().and_then(|address| core.book().host(address));
    let host = alias.as_ref().unwrap_or(&said.host);
    let network = core.rules().network;
    let reason =
        policy::request_host(&network, &destination.host, destination.port, host, said.port);
    core.require(destination, reason).await?;
    Ok(host.clone())
}

/// Whether a connection can be reused: the same server, still open, and no unread bytes.
fn is_for(server: &Server, destination: &Destination) -> bool {
    let mut byte = [0];
    let silent = server
        .wire
        .stream
        .try_read(&mut byte)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    silent
        && server.wire.buffer.is_empty()
        && (&server.destination.host, server.destination.port)
            == (&destination.host, destination.port)
}
