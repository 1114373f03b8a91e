//! Connects to the server that a client requested.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use model::{Host, Origin, Reason, Rule, Verdict};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::core::{Core, Destination, Failure, Opening};
use crate::http::head::head_end;
use crate::observer::Connection;
use crate::rules::Rules;
use crate::upstream::UpstreamProxy;
use crate::wire::Wire;

/// A connection to a server. Dropping it reports its end to the observer.
pub(crate) struct Server {
    pub(crate) wire: Wire,
    pub(crate) destination: Destination,
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
    number: u64,
    address: SocketAddr,
    since: Instant,
    core: Arc<Core>,
}

/// How long a lookup may take.
const LOOKUP: Duration = Duration::from_secs(20);
/// How long a server or an upstream proxy may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(20);
/// How long to wait for one address before the next is tried in parallel.
const HEAD_START: Duration = Duration::from_millis(250);

/// Judges the destination, resolves it, judges the addresses, and connects.
pub(crate) async fn open(core: &Arc<Core>, destination: &Destination) -> Result<Server, Failure> {
    // Boxed, so that its memory is not kept as long as the connection is open.
    Box::pin(judge_and_dial(core, destination)).await
}

async fn judge_and_dial(core: &Arc<Core>, destination: &Destination) -> Result<Server, Failure> {
    let rules = core.rules();
    let (host, port) = (&destination.host, destination.port);
    core.require(destination, policy::connect(&rules.network, host, port)).await?;
    let opening = Opening::report(core, &destination.client);
    let (wire, address) = match core.upstream.for_host(host, port) {
        Some(proxy) => {
            if let Some(address) = host.address() {
                core.require(destination, policy::dial(&rules.network, host, port, address))
                    .await?;
            }
            through(core, &rules, proxy, destination).await?
        }
        None => {
            let addresses = addresses(core, &rules, host).await?;
            let addresses = permitted(core, &rules, destination, addresses).await?;
            let stream = race(&addresses).await?;
            let address = stream.peer_addr().map_err(|error| unreachable(host, &error))?;
            (Wire::new(stream), address)
        }
    };
    Ok(Server {
        wire,
        destination: destination.clone(),
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
        number: opening.made().await,
        address,
        since: Instant::now(),
        core: Arc::clone(core),
    })
}

impl Drop for Server {
    fn drop(&mut self) {
        self.core.observer.closed(&Connection {
            number: self.number,
            host: self.destination.host.to_string(),
            port: self.destination.port,
            route: self.destination.route,
            client: self.destination.client,
            address: self.address,
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            duration: self.since.elapsed(),
        });
    }
}

fn unreachable(host: &Host, why: &dyn std::fmt::Display) -> Failure {
    Failure::Unreachable(format!("cannot reach {host}: {why}"))
}

async fn addresses(core: &Core, rules: &Rules, host: &Host) -> Result<Vec<IpAddr>, Failure> {
    if let Some(address) = host.address() {
        return Ok(vec![address]);
    }
    if host.is_local() {
        // This name always means this machine (RFC 6761), whatever a resolver answers.
        return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    let _turn = core.lookups.acquire().await.map_err(|_| Failure::Stopping)?;
    let (resolver, name) = (Arc::clone(&rules.resolver), host.to_string());
    let lookup = tokio::task::spawn_blocking(move || resolver.resolve(&name));
    match timeout(LOOKUP, lookup).await {
        Ok(Ok(Ok(addresses))) if addresses.is_empty() => {
            Err(unreachable(host, &"it has no address"))
        }
        Ok(Ok(Ok(addresses))) => Ok(addresses),
        Ok(Ok(Err(error))) => Err(unreachable(host, &error)),
        Ok(Err(error)) => Err(unreachable(host, &error)),
        Err(_) => Err(unreachable(host, &"the lookup timed out")),
    }
}

/// The allowed addresses. The destination is denied only if there is none: a name with a public and a
/// private address is reached at the public one.
async fn permitted(
    core: &Core,
    rules: &Rules,
    destination: &Destination,
    addresses: Vec<IpAddr>,
) -> Result<Vec<SocketAddr>, Failure> {
    let mut refusal = None;
    let mut fine = Vec::new();
    for address in addresses {
        let target = SocketAddr::new(address.to_canonical(), destination.port);
        let reason = if core.own.iter().any(|own| is_same(*own, target)) {
            own_listener(target)
        } else {
            policy::dial(&rules.network, &destination.host, destination.port, target.ip())
        };
        if reason.verdict == Verdict::Allow {
            fine.push(target);
        } else {
            refusal.get_or_insert(reason);
        }
    }
    match refusal {
        Some(reason) if fine.is_empty() => Err(core.refuse(destination, reason).await),
        _ => Ok(fine),
    }
}

/// Whether connecting to the target would reach the listener.
fn is_same(listener: SocketAddr, target: SocketAddr) -> bool {
    let local = target.ip().is_loopback() || target.ip().is_unspecified();
    listener.port() == target.port()
        && (listener.ip() == target.ip() || (listener.ip().is_unspecified() && local))
}

fn own_listener(target: SocketAddr) -> Reason {
    Reason::deny(Rule::OwnListener, Origin::BuiltIn, format!("{target} is this proxy itself"))
}

/// Connects to the first address that accepts. Each address gets a head start over the next, so that
/// an unreachable one delays the connection only a little.
async fn race(addresses: &[SocketAddr]) -> Result<TcpStream, Failure> {
    let mut attempts = JoinSet::new();
    let mut rest = addresses.iter().copied();
    let mut problem = "it has no address".to_owned();
    let start = |attempts: &mut JoinSet<_>, address: SocketAddr| {
        attempts.spawn(async move {
            match timeout(CONNECT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => Ok(stream),
                Ok(Err(error)) => Err(format!("cannot reach {address}: {error}")),
                Err(_) => Err(format!("{address} timed out")),
            }
        });
    };
    loop {
        if let Some(address) = rest.next() {
            start(&mut attempts, address);
        } else if attempts.is_empty() {
            return Err(Failure::Unreachable(problem));
        }
        let patience = if rest.len() > 0 { HEAD_START } else { CONNECT * 2 };
        match timeout(patience, attempts.join_next()).await {
            Ok(Some(Ok(Ok(stream)))) => return Ok(stream),
            Ok(Some(Ok(Err(error)))) => problem = error,
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
    }
}

/// Opens a tunnel through the upstream proxy. The user chose its address, so that is not judged.
async fn through(
    core: &Core,
    rules: &Rules,
    proxy: &UpstreamProxy,
    destination: &Destination,
) -> Result<(Wire, SocketAddr), Failure> {
    let found = addresses(core, rules, &proxy.host).await?;
    let targets: Vec<_> = found.into_iter().map(|ip| SocketAddr::new(ip, proxy.port)).collect();
    let stream = race(&targets).await?;
    let address = stream.peer_addr().map_err(|error| unreachable(&proxy.host, &error))?;
    let mut wire = Wire::new(stream);
    let target = destination.host.with_port(destination.port);
    let credentials = proxy.credentials.as_ref();
    let credentials = credentials.map(|value| format!("Proxy-Authorization: {value}\r\n"));
    let request = format!(
        "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{}\r\n",
        credentials.unwrap_or_default()
    );
    let status = timeout(CONNECT, async {
        wire.write(request.as_bytes()).await.map_err(|error| error.to_string())?;
        loop {
            let end = head_end(&wire.buffer, 0).map_err(|error| error.to_string())?;
            if let Some(end) = end {
                return Ok(wire.buffer.split_to(end));
            }
            match wire.fill().await {
                Ok(0) => return Err("it closed the connection".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    });
    let head = match status.await {
        Ok(Ok(head)) => head,
        Ok(Err(why)) => {
            return Err(unreachable(&destination.host, &format!("upstream proxy: {why}")));
        }
        Err(_) => return Err(unreachable(&destination.host, &"the upstream proxy timed out")),
    };
    let line = head.as_ref().split(|byte: &u8| *byte == b'\r').next().unwrap_or_default();
    let fine = line.starts_with(b"HTTP/1.") && line.get(8..11) == Some(b" 20");
    if !fine {
        let line = String::from_utf8_lossy(line).into_owned();
        return Err(unreachable(
            &destination.host,
            &format!("the upstream proxy answered `{line}`"),
        ));
    }
    Ok((wire, address))
}
