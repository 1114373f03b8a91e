//! From what a client asked for to a connection with the server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use model::{Host, Origin, Reason, Rule, Verdict};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::core::{Asked, Core, Failure, Opening};
use crate::http::head::head_end;
use crate::observer::Connection;
use crate::rules::Rules;
use crate::upstream::UpstreamProxy;
use crate::wire::Wire;

/// A connection to a server. When it is dropped, the observer hears of its end.
pub(crate) struct Server {
    pub(crate) wire: Wire,
    pub(crate) asked: Asked,
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
    number: u64,
    address: SocketAddr,
    since: Instant,
    core: Arc<Core>,
}

/// How long a name server may take.
const LOOKUP: Duration = Duration::from_secs(20);
/// How long a server, or an upstream proxy, may take to answer a connection.
const CONNECT: Duration = Duration::from_secs(20);
/// How long one address has before the next is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

/// Judges what was asked for, resolves it, judges the addresses, and connects.
pub(crate) async fn open(core: &Arc<Core>, asked: &Asked) -> Result<Server, Failure> {
    // Boxed, so that what is needed only now is not held as long as the connection stands.
    Box::pin(judge_and_dial(core, asked)).await
}

async fn judge_and_dial(core: &Arc<Core>, asked: &Asked) -> Result<Server, Failure> {
    let rules = core.rules();
    let (host, port) = (&asked.host, asked.port);
    core.require(asked, policy::connect(&rules.network, host, port)).await?;
    let opening = Opening::report(core, &asked.client);
    let (wire, address) = match core.upstream.for_host(host, port) {
        Some(proxy) => {
            if let Some(address) = host.address() {
                core.require(asked, policy::dial(&rules.network, host, port, address)).await?;
            }
            through(core, &rules, proxy, asked).await?
        }
        None => {
            let addresses = addresses(core, &rules, host).await?;
            let addresses = permitted(core, &rules, asked, addresses).await?;
            let stream = race(&addresses).await?;
            let address = stream.peer_addr().map_err(|error| unreachable(host, &error))?;
            (Wire::new(stream), address)
        }
    };
    Ok(Server {
        wire,
        asked: asked.clone(),
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
            host: self.asked.host.to_string(),
            port: self.asked.port,
            route: self.asked.route,
            client: self.asked.client,
            address: self.address,
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            duration: self.since.elapsed(),
        });
    }
}

fn unreachable(host: &Host, why: &dyn std::fmt::Display) -> Failure {
    Failure::Unreachable(format!("{host} cannot be reached: {why}"))
}

async fn addresses(core: &Core, rules: &Rules, host: &Host) -> Result<Vec<IpAddr>, Failure> {
    if let Some(address) = host.address() {
        return Ok(vec![address]);
    }
    if host.is_local() {
        // Whatever a resolver says, this name is this machine (RFC 6761).
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
        Err(_) => Err(unreachable(host, &"the lookup takes too long")),
    }
}

/// The addresses that may be dialled. Refused only if there is none: a name with a public and a
/// private address is reached at the public one.
async fn permitted(
    core: &Core,
    rules: &Rules,
    asked: &Asked,
    addresses: Vec<IpAddr>,
) -> Result<Vec<SocketAddr>, Failure> {
    let mut refusal = None;
    let mut fine = Vec::new();
    for address in addresses {
        let target = SocketAddr::new(address.to_canonical(), asked.port);
        let reason = if core.own.iter().any(|own| is_same(*own, target)) {
            own_listener(target)
        } else {
            policy::dial(&rules.network, &asked.host, asked.port, target.ip())
        };
        if reason.verdict == Verdict::Allow {
            fine.push(target);
        } else {
            refusal.get_or_insert(reason);
        }
    }
    match refusal {
        Some(reason) if fine.is_empty() => Err(core.refuse(asked, reason).await),
        _ => Ok(fine),
    }
}

/// Whether dialling the target would reach the listener.
fn is_same(listener: SocketAddr, target: SocketAddr) -> bool {
    let local = target.ip().is_loopback() || target.ip().is_unspecified();
    listener.port() == target.port()
        && (listener.ip() == target.ip() || (listener.ip().is_unspecified() && local))
}

fn own_listener(target: SocketAddr) -> Reason {
    Reason::deny(Rule::OwnListener, Origin::BuiltIn, format!("{target} is this proxy itself"))
}

/// Connects to the first address that answers. Each gets a head start over the next, so that a
/// dead route costs a moment and not a timeout.
async fn race(addresses: &[SocketAddr]) -> Result<TcpStream, Failure> {
    let mut attempts = JoinSet::new();
    let mut rest = addresses.iter().copied();
    let mut problem = "it has no address".to_owned();
    let start = |attempts: &mut JoinSet<_>, address: SocketAddr| {
        attempts.spawn(async move {
            match timeout(CONNECT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => Ok(stream),
                Ok(Err(error)) => Err(format!("{address} cannot be reached: {error}")),
                Err(_) => Err(format!("{address} does not answer")),
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

/// A tunnel through the upstream proxy. Its own address is the user's choice and is not judged.
async fn through(
    core: &Core,
    rules: &Rules,
    proxy: &UpstreamProxy,
    asked: &Asked,
) -> Result<(Wire, SocketAddr), Failure> {
    let found = addresses(core, rules, &proxy.host).await?;
    let targets: Vec<_> = found.into_iter().map(|ip| SocketAddr::new(ip, proxy.port)).collect();
    let stream = race(&targets).await?;
    let address = stream.peer_addr().map_err(|error| unreachable(&proxy.host, &error))?;
    let mut wire = Wire::new(stream);
    let target = asked.host.with_port(asked.port);
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
            return Err(unreachable(&asked.host, &format!("the upstream proxy: {why}")));
        }
        Err(_) => return Err(unreachable(&asked.host, &"the upstream proxy does not answer")),
    };
    let line = head.as_ref().split(|byte: &u8| *byte == b'\r').next().unwrap_or_default();
    let fine = line.starts_with(b"HTTP/1.") && line.get(8..11) == Some(b" 20");
    if !fine {
        let line = String::from_utf8_lossy(line).into_owned();
        return Err(unreachable(&asked.host, &format!("the upstream proxy says `{line}`")));
    }
    Ok((wire, address))
}
