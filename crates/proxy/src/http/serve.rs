//! Requests and responses between a client and the servers it asks for.
//!
//! One request at a time: the next is read when the answer to the last has been passed on, so the
//! judged request is the one that the server gets, whatever a client sends in advance.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::Host;
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
        let tunnel = matches!(request.target, Target::Tunnel(..));
        let reused = server.take().filter(|server| !tunnel && is_for(server, &asked));
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
        if tunnel {
            if client.write(reply::ESTABLISHED).await.is_ok() {
                carry(core, client, upstream).await;
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
