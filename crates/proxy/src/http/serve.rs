//! Requests and responses between a client and the servers it asks for.
//!
//! One request at a time: the next is read when the answer to the last has been passed on, so the
//! judged request is the one that the server gets, whatever a client sends in advance.

use std::sync::Arc;
use std::time::Duration;

use model::{Caller, Host};
use tokio::time::timeout;

use super::exchange::{Next, exchange, read_head, switch};
use super::head::{Authority, HeadError, Request, Target};
use super::reply;
use crate::core::{Asked, Core, Failure};
use crate::dial::{Server, open};
use crate::observer::{Refusal, Route};
use crate::tunnel::carry;
use crate::wire::Wire;

/// How long a client may take to say what it wants.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(30);

/// Whose requests these are.
pub(crate) enum Side {
    /// A client of the proxy: each request names its host.
    Proxy(Caller),
    /// A client that believes it speaks to a server: every request must be for that one.
    Server(Box<Server>),
}

/// Serves a client until one of the two has had enough.
pub(crate) async fn serve(core: &Arc<Core>, mut client: Wire, side: Side) {
    // Boxed, so that a tunnel does not hold the memory of the request that opened it.
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
    /// These words, and then the end.
    Say(Vec<u8>),
    /// What a client does with a server behind CONNECT.
    Tunnel(Box<Server>),
    /// The same behind a request to go on as something else.
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
            let asked = server.asked.clone();
            let client = asked.client;
            (Some(asked), client, Some(*server))
        }
    };
    loop {
        let Some(request) = next_request(core, client).await else { return End::Close };
        let (request, asked, host) = match judged(core, request, fixed.as_ref(), address).await {
            Ok(judged) => judged,
            Err(end) => return end,
        };
        let tunnel = matches!(request.target, Target::Tunnel(..));
        let reused = server.take().filter(|server| !tunnel && is_for(server, &asked));
        let is_reused = reused.is_some();
        let opened = match reused {
            // The rules may have changed since it was opened.
            Some(server) => {
                let reason = policy::connect(&core.rules().network, &asked.host, asked.port);
                core.require(&asked, reason).await.map(|()| server)
            }
            None => open(core, &asked).await,
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
            // The server had closed in the meantime; the client may repeat what it knows to be safe.
            Next::Nothing(_) if is_reused => return End::Close,
            Next::Nothing(why) => return End::Say(reply::bad_gateway(&why)),
        }
    }
}

/// The next request, or `None` where there is none: the client is gone, silent for too long, or sent
/// away.
async fn next_request(core: &Core, client: &mut Wire) -> Option<Result<Request, HeadError>> {
    let words = timeout(HEAD_TIME, read_head(&client.stream, &mut client.buffer));
    match core.gate.waiting(words).await {
        Ok(Ok(Ok(head))) => head.map(|head| Request::parse(&head)),
        Ok(Ok(Err(error))) => Some(Err(error)),
        Ok(Err(_)) | Err(_) => None,
    }
}

/// A request with what it is for and the host that it names to the server.
async fn judged(
    core: &Core,
    request: Result<Request, HeadError>,
    fixed: Option<&Asked>,
    client: Caller,
) -> Result<(Request, Asked, Host), End> {
    let denied = match request {
        Ok(request) => match target(core, &request, fixed, client).await {
            Ok((asked, host)) => return Ok((request, asked, host)),
            Err(denied) => denied,
        },
        // A host that cannot be read is still one that somebody tried to reach.
        Err(HeadError::Host { text, error }) => {
            let reason = policy::unreadable_host(&text, error);
            let (port, route) = fixed.map_or((0, Route::Http), |asked| (asked.port, asked.route));
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

/// What a request is for, and the host that it names to the server. Judged against what the
/// connection is for: every request on it has to be for the same host.
async fn target(
    core: &Core,
    request: &Request,
    fixed: Option<&Asked>,
    client: Caller,
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
    let network = core.rules().network;
    let reason = policy::request_host(&network, &asked.host, asked.port, host, said.port);
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
