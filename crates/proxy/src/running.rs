//! [`Proxy::start`]: a proxy on a thread of its own, and the handle that ends it.

use std::future::Future;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
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
use crate::rules::Rules;
use crate::upstream::Upstream;
use crate::wire::Wire;

/// The listening sockets of a run. They are made inside its net namespace and handed out.
#[derive(Debug)]
pub struct Listeners {
    /// For clients that know the proxy: HTTP, CONNECT and SOCKS 5.
    pub proxy: TcpListener,
    /// For questions about names.
    pub dns_udp: Option<UdpSocket>,
    /// For the same over TCP.
    pub dns_tcp: Option<TcpListener>,
    /// For connections to made-up addresses, one per granted port; and on loopback for local ports
    /// that lead to the host's own.
    pub transparent: Vec<TcpListener>,
    /// Where the sockets live.
    pub place: Place,
}

/// Where listening sockets live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a net namespace of their own: nothing that is dialled can lead back to them.
    Namespace,
    /// In the host's: they must never be dialled.
    Host,
}

/// The network boundary of a run.
#[derive(Debug, Clone, Copy)]
pub struct Proxy;

/// A proxy at work. Dropping it ends every connection.
pub struct Running {
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
    ended: PipeReader,
}

/// How a proxy came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to stop.
    Stopped,
    /// It failed. Nothing passes any more.
    Failed,
}

/// Connections that may be open at once, where descriptors suffice.
const CONNECTIONS: u64 = 4096;
/// Connections that may wait to be accepted.
const QUEUE: i32 = 4096;
/// Descriptors that are left to the rest of the process.
const SPARE_DESCRIPTORS: u64 = 384;

impl Proxy {
    /// Starts a proxy on the given sockets.
    ///
    /// Each connection needs two descriptors, so the soft limit of the process bounds how many
    /// there can be. The caller may raise it first.
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
        let most = connections(listeners.transparent.len());
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
    /// Judges new connections by new rules. Standing ones stay.
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
    /// A descriptor that becomes readable (at its end) when the proxy has ended, for whatever
    /// reason.
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

/// Where the listeners can be reached from here.
fn own_addresses(listeners: &Listeners) -> io::Result<Vec<SocketAddr>> {
    if listeners.place == Place::Namespace {
        return Ok(Vec::new());
    }
    let all =
        [&listeners.proxy].into_iter().chain(&listeners.dns_tcp).chain(&listeners.transparent);
    all.map(TcpListener::local_addr).collect()
}

/// The same sockets, known to the runtime.
struct Sockets {
    proxy: tokio_net::TcpListener,
    dns_udp: Option<tokio_net::UdpSocket>,
    dns_tcp: Option<tokio_net::TcpListener>,
    transparent: Vec<tokio_net::TcpListener>,
}

impl Sockets {
    fn register(listeners: Listeners, runtime: &Runtime) -> io::Result<Self> {
        let _context = runtime.enter();
        let tcp = |listener: TcpListener| {
            // A client whose connection finds no room in the queue waits a second for its next try.
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
        })
    }
}

fn work(runtime: Runtime, sockets: Sockets, core: Arc<Core>, alive: PipeWriter) {
    // Closed when this thread ends, also by a panic: that is how the owner hears of it.
    let _alive = alive;
    runtime.block_on(async {
        let mut stop = core.stop.subscribe();
        let Sockets { proxy, dns_udp, dns_tcp, transparent } = sockets;
        spawn_accept(&core, proxy, |core, wire, address| async move {
            client::proxied(&core, wire, address).await;
        });
        for listener in transparent {
            spawn_accept(&core, listener, |core, wire, address| async move {
                client::transparent(&core, wire, address).await;
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
    // Connections end here. A lookup that hangs in the resolver must not hold us up.
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
                // Out of descriptors, most likely: let some connections end.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let Some(place) = core.gate.enter().await else { return };
            // One that has gone already needs nothing.
            let Ok(door) = stream.local_addr() else { continue };
            let caller = Caller { transport: Transport::Tcp, end, door };
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
/// nobody would know that half of the network is gone.
struct Alarm(Arc<Core>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed.store(true, Ordering::Relaxed);
            self.0.stop.send_replace(true);
        }
    }
}
