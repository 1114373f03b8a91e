//! [`Proxy::start`]: starts a proxy on its own thread, and returns the handle that ends it.

use std::future::Future;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::{Caller, Host, Transport};
use tokio::net as tokio_net;
use tokio::runtime::{Builder, Runtime};

use crate::client;
use crate::core::Core;
use crate::dns;
use crate::observer::Observer;
use crate::publish;
use crate::rules::Rules;
use crate::upstream::Upstream;
use crate::wire::Wire;

/// The listening sockets of a run. They are created in its network namespace and passed out of it.
#[derive(Debug)]
pub struct Listeners {
    /// For clients that know the proxy: HTTP, CONNECT and SOCKS 5.
    pub proxy: TcpListener,
    /// For DNS queries over UDP.
    pub dns_udp: Option<UdpSocket>,
    /// For DNS queries over TCP.
    pub dns_tcp: Option<TcpListener>,
    /// For connections to made-up addresses, one per allowed port; and on loopback for local ports
    /// that are forwarded to the host.
    pub transparent: Vec<TcpListener>,
    /// Ports of the host that lead to servers inside.
    pub published: Vec<Published>,
    /// Unconnected sockets in the run's network, to connect to those servers.
    pub sockets: Vec<OwnedFd>,
    /// Which network namespace the sockets are in.
    pub place: Place,
}

/// A port of the host that leads to a server inside.
#[derive(Debug)]
pub struct Published {
    /// Accepts connections on the host.
    pub listener: TcpListener,
    /// The port of the server.
    pub inside: u16,
}

/// The network namespace of listening sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A separate one: no connection of the proxy can reach them.
    Namespace,
    /// The host's: the proxy must never connect to them.
    Host,
}

/// The network boundary of a run.
#[derive(Debug, Clone, Copy)]
pub struct Proxy;

/// A running proxy. Dropping it ends every connection.
pub struct Running {
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
    ended: PipeReader,
}

/// How a proxy ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to stop.
    Stopped,
    /// It failed. Nothing is forwarded any more.
    Failed,
}

/// The most connections at once, if there are enough file descriptors.
const CONNECTIONS: u64 = 4096;
/// The most connections that wait to be accepted.
const QUEUE: i32 = 4096;
/// File descriptors that are left to the rest of the process.
const SPARE_DESCRIPTORS: u64 = 384;

impl Proxy {
    /// Starts a proxy on the given sockets.
    ///
    /// Each connection needs two file descriptors, so the soft limit of the process limits the number
    /// of connections. The caller may raise it first.
    pub fn start(
        listeners: Listeners,
        rules: Rules,
        upstream: Upstream,
        observer: Arc<dyn Observer>,
    ) -> io::Result<Running> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(64)
            .thread_keep_alive(Duration::from_secs(2))
            .thread_name("proxy-worker")
            .build()?;
        let own = own_addresses(&listeners)?;
        // A connection to a published port has two descriptors besides the one that is kept for it.
        let kept = listeners.transparent.len() + 2 * listeners.sockets.len();
        let most = connections(kept);
        let core = Core::new(rules, upstream, observer, own, most);
        let core = Arc::new(core);
        let sockets = Sockets::register(listeners, &runtime)?;
        let (ended, alive) = io::pipe()?;
        let shared = Arc::clone(&core);
        let thread = thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || work(runtime, sockets, shared, alive))?;
        Ok(Running { core, thread: Some(thread), ended })
    }
}

impl Running {
    /// Judges new connections by new rules. Open ones are not affected.
    pub fn replace(&self, rules: Rules) {
        self.core.replace(rules);
    }

    /// The name that an address was made up for.
    pub fn name(&self, address: IpAddr) -> Option<Host> {
        self.core.book().host(address)
    }

    /// Asks the proxy to end, without waiting.
    pub fn stop(&self) {
        self.core.stop.send_replace(true);
    }

    /// Waits until the proxy has ended.
    pub fn wait(mut self) -> Ended {
        let _ = self.ended.read(&mut [0]);
        self.join()
    }

    fn join(&mut self) -> Ended {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Ended::Failed,
            _ if self.core.failed.load(Ordering::Relaxed) => Ended::Failed,
            _ => Ended::Stopped,
        }
    }
}

impl AsFd for Running {
    /// A file descriptor that becomes readable (end of file) when the proxy has ended, for any reason.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        self.join();
    }
}

fn connections(listeners: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let spare = SPARE_DESCRIPTORS + u64::try_from(listeners).unwrap_or(0);
    let limit = limit.unwrap_or(u64::MAX).saturating_sub(spare) / 2;
    usize::try_from(limit.clamp(32, CONNECTIONS)).unwrap_or(32)
}

/// The addresses at which the proxy could reach its own listeners.
fn own_addresses(listeners: &Listeners) -> io::Result<Vec<SocketAddr>> {
    if listeners.place == Place::Namespace {
        return Ok(Vec::new());
    }
    let all =
        [&listeners.proxy].into_iter().chain(&listeners.dns_tcp).chain(&listeners.transparent);
    all.map(TcpListener::local_addr).collect()
}

/// The same sockets, registered with the runtime.
struct Sockets {
    proxy: tokio_net::TcpListener,
    dns_udp: Option<tokio_net::UdpSocket>,
    dns_tcp: Option<tokio_net::TcpListener>,
    transparent: Vec<tokio_net::TcpListener>,
    published: Vec<(tokio_net::TcpListener, u16)>,
    inner: Vec<OwnedFd>,
}

impl Sockets {
    fn register(listeners: Listeners, runtime: &Runtime) -> io::Result<Self> {
        let _context = runtime.enter();
        let tcp = |listener: TcpListener| {
            // A client that finds the queue full retries only after a second.
            rustix::net::listen(&listener, QUEUE)?;
            listener.set_nonblocking(true)?;
            tokio_net::TcpListener::from_std(listener)
        };
        let udp = |socket: UdpSocket| {
            socket.set_nonblocking(true)?;
            tokio_net::UdpSocket::from_std(socket)
        };
        Ok(Self {
            proxy: tcp(listeners.proxy)?,
            dns_udp: listeners.dns_udp.map(udp).transpose()?,
            dns_tcp: listeners.dns_tcp.map(tcp).transpose()?,
            transparent: listeners.transparent.into_iter().map(tcp).collect::<Result<_, _>>()?,
            published: listeners
                .published
                .into_iter()
                .map(|one| Ok((tcp(one.listener)?, one.inside)))
                .collect::<io::Result<_>>()?,
            inner: listeners.sockets,
        })
    }
}

fn work(runtime: Runtime, sockets: Sockets, core: Arc<Core>, alive: PipeWriter) {
    // Closed when this thread ends, also by a panic, which is how the owner notices.
    let _alive = alive;
    runtime.block_on(async {
        let mut stop = core.stop.subscribe();
        let Sockets { proxy, dns_udp, dns_tcp, transparent, published, inner } = sockets;
        spawn_accept(&core, proxy, |core, wire, address| async move {
            client::proxied(&core, wire, address).await;
        });
        for listener in transparent {
            spawn_accept(&core, listener, |core, wire, address| async move {
                client::transparent(&core, wire, address).await;
            });
        }
        let inner = Arc::new(publish::Sockets::new(inner));
        for (listener, inside) in published {
            let (core, inner) = (Arc::clone(&core), Arc::clone(&inner));
            tokio::spawn(async move {
                let _alarm = Alarm(Arc::clone(&core));
                publish::accept(core, inner, listener, inside).await;
            });
        }
        if let Some(listener) = dns_tcp {
            spawn_accept(&core, listener, |core, wire, address| async move {
                dns::serve::connection(&core, wire, address).await;
            });
        }
        if let Some(socket) = dns_udp {
            let core = Arc::clone(&core);
            tokio::spawn(async move {
                let _alarm = Alarm(Arc::clone(&core));
                dns::serve::datagrams(&core, &socket).await;
            });
        }
        let _ = stop.wait_for(|stop| *stop).await;
    });
    // Ends all connections. A lookup that hangs in the resolver must not delay this.
    runtime.shutdown_background();
}

/// Accepts connections and serves each on a task of its own.
fn spawn_accept<F>(
    core: &Arc<Core>,
    listener: tokio_net::TcpListener,
    serve: impl Fn(Arc<Core>, Wire, Caller) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let core = Arc::clone(core);
    tokio::spawn(async move {
        let _alarm = Alarm(Arc::clone(&core));
        loop {
            let Ok((stream, end)) = listener.accept().await else {
                // Most likely out of file descriptors: wait for some connections to end.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let Some(place) = core.gate.enter().await else { return };
            // The client has disconnected already.
            let Ok(listener) = stream.local_addr() else { continue };
            let caller = Caller { transport: Transport::Tcp, end, listener };
            let alarm = Alarm(Arc::clone(&core));
            let served = serve(Arc::clone(&core), Wire::new(stream), caller);
            tokio::spawn(async move {
                served.await;
                drop((place, alarm));
            });
        }
    });
}

/// Ends the proxy when the task that holds it panics. The runtime would go on without that task, and
/// the failure would not be noticed.
struct Alarm(Arc<Core>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed.store(true, Ordering::Relaxed);
            self.0.stop.send_replace(true);
        }
    }
}
