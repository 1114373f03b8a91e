//! Accepts a client's connection and finds out where it wants to connect to.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Buf;
use model::{Caller, Host};
use tokio::time::timeout;

use crate::core::{Core, Failure};
use crate::dial::open;
use crate::http::serve::{HEAD_TIME, Side, serve};
use crate::observer::{Refusal, Route};
use crate::socks::{self, Reply, SocksError, SocksRequest};
use crate::tunnel::carry;
use crate::wire::Wire;

/// A client of the proxy port. Its first byte shows which protocol it speaks.
pub(crate) async fn proxied(core: &Arc<Core>, mut client: Wire, address: Caller) {
    let first = core.gate.waiting(timeout(HEAD_TIME, client.fill())).await;
    if !matches!(first, Ok(Ok(Ok(1..)))) {
        return;
    }
    match client.buffer.first() {
        Some(5) => socks(core, client, address).await,
        Some(byte) if byte.is_ascii_alphabetic() => serve(core, client, Side::Proxy(address)).await,
        _ => core.observer.malformed(&address, "neither HTTP nor SOCKS 5"),
    }
}

/// A client that connected to a made-up address, or to a local port that is forwarded to the host.
pub(crate) async fn transparent(core: &Arc<Core>, client: Wire, address: Caller) {
    let (ip, port) = (address.listener.ip().to_canonical(), address.listener.port());
    // In the sandbox, loopback on a port that the supervisor listens on means the host's loopback.
    let host = Host::from(if ip.is_loopback() { Ipv4Addr::LOCALHOST.into() } else { ip });
    let opened = match core.destination(host, port, Route::Transparent, address).await {
        Ok(destination) => open(core, &destination).await,
        Err(failure) => Err(failure),
    };
    match opened {
        Ok(server) => Box::pin(carry(core, client, server)).await,
        Err(_) => client.reset(),
    }
}

async fn socks(core: &Arc<Core>, mut client: Wire, address: Caller) {
    let greeting = timeout(HEAD_TIME, handshake(&mut client));
    let Ok(Ok(Some(request))) = core.gate.waiting(greeting).await else { return };
    let opened = match request {
        Ok(SocksRequest { command: socks::CONNECT, host, port }) => {
            match core.destination(host, port, Route::Socks, address).await {
                Ok(destination) => open(core, &destination).await,
                Err(failure) => Err(failure),
            }
        }
        Ok(_) => return client.finish(&Reply::Command.bytes()).await,
        Err(SocksError::Host { text, error, port }) => {
            let reason = policy::unreadable_host(&text, error);
            let refusal =
                Refusal { host: text, port, route: Route::Socks, client: address, reason };
            Err(core.report(refusal).await)
        }
        Err(error) => {
            core.observer.malformed(&address, &error.to_string());
            let reply = match error {
                SocksError::AddressKind => Reply::AddressKind,
                _ => Reply::Failure,
            };
            return client.finish(&reply.bytes()).await;
        }
    };
    let reply = match opened {
        Ok(server) => {
            if client.write(&Reply::Fine.bytes()).await.is_ok() {
                Box::pin(carry(core, client, server)).await;
            }
            return;
        }
        Err(Failure::Refused(_)) => Reply::Refused,
        Err(Failure::Unreachable(_)) => Reply::Unreachable,
        Err(Failure::Stopping) => return,
    };
    client.finish(&reply.bytes()).await;
}

/// Greeting and request; `None` if the client disconnects or requires a password.
async fn handshake(client: &mut Wire) -> Option<Result<SocksRequest, SocksError>> {
    let open = loop {
        match socks::greeting(&client.buffer) {
            Ok(Some((length, open))) => {
                client.buffer.advance(length);
                break open;
            }
            Ok(None) => {}
            Err(error) => return Some(Err(error)),
        }
        more(client).await?;
    };
    let method = if open { 0 } else { 0xff };
    client.write(&[5, method]).await.ok()?;
    if !open {
        return None;
    }
    loop {
        match socks::request(&client.buffer) {
            Ok(Some((length, request))) => {
                client.buffer.advance(length);
                return Some(Ok(request));
            }
            Ok(None) => {}
            Err(error) => return Some(Err(error)),
        }
        more(client).await?;
    }
}

async fn more(client: &mut Wire) -> Option<()> {
    client.fill().await.ok().filter(|count| *count > 0).map(|_| ())
}
