//! The network of a run: the proxy that serves its listeners, and the messages it sends.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};

use model::{Caller, Host};
use policy::NetworkRules;
use proxy::{
    Answer, ClientHold, Connection, Ended, Listeners, Observer, Place, Proxy, Published, Refusal,
    Rules, Running, Upstream,
};

/// What the proxy has to say.
pub(crate) enum ProxyMessage {
    /// A connection was denied; the client waits for the answer.
    Refused(Refusal, SyncSender<Answer>),
    /// A name that is not granted was looked up; the client waits until this is handled.
    LookedUp(String, Caller, SyncSender<()>),
    /// A connection with this number is about to be made; the client waits until this is handled.
    Opening { number: u64, client: Caller, _hold: ClientHold },
    /// It was not made.
    Failed(u64),
    /// A connection came to its end.
    Closed(Connection),
}

/// The proxy of a run. It starts with the first connection.
pub(crate) struct Network {
    running: Option<Running>,
    receiver: Receiver<ProxyMessage>,
    wake: PipeReader,
}

impl Network {
    /// Serves the listeners.
    pub(crate) fn open(
        listeners: sandbox::Listeners,
        published: Vec<Published>,
        context: NetworkRules,
    ) -> io::Result<Self> {
        let (reporter, receiver, wake) = Reporter::new()?;
        let served = Listeners {
            proxy: TcpListener::from(listeners.proxy),
            dns_udp: Some(UdpSocket::from(listeners.names)),
            dns_tcp: Some(TcpListener::from(listeners.names_tcp)),
            transparent: listeners.ports.into_iter().map(TcpListener::from).collect(),
            published,
            sockets: listeners.unconnected,
            place: Place::Namespace,
        };
        raise_descriptors();
        let running = Proxy::start(served, rules(context), upstream()?, Arc::new(reporter))?;
        Ok(Self { running: Some(running), receiver, wake })
    }

    /// What to wait on.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let running = self.running.as_ref().map(AsFd::as_fd);
        std::iter::once(self.wake.as_fd()).chain(running).collect()
    }

    /// All messages since the last call.
    pub(crate) fn messages(&mut self) -> Vec<ProxyMessage> {
        let mut messages = Vec::new();
        while let Ok(message) = self.receiver.try_recv() {
            // One byte was written for each.
            let _ = self.wake.read(&mut [0]);
            messages.push(message);
        }
        messages
    }

    /// The name that an address inside the sandbox was given out for.
    pub(crate) fn name(&self, address: IpAddr) -> Option<Host> {
        self.running.as_ref().and_then(|running| running.name(address))
    }

    /// Stops the proxy, and with it every open connection. Returns the messages that were not
    /// handled yet.
    pub(crate) fn close(mut self) -> Vec<ProxyMessage> {
        self.running = None;
        self.messages()
    }

    /// Whether the proxy has ended without being stopped. Its sockets are closed then, and nothing
    /// passes.
    pub(crate) fn has_ended(&mut self) -> bool {
        let Some(running) = &self.running else { return false };
        let mut polled = [rustix::event::PollFd::new(running, rustix::event::PollFlags::IN)];
        let ready = rustix::event::poll(&mut polled, Some(&rustix::event::Timespec::default()));
        if !matches!(ready, Ok(1..)) {
            return false;
        }
        let ended = self.running.take().map(Running::wait);
        matches!(ended, Some(Ended::Failed | Ended::Stopped))
    }
}

/// The rules, with the machine's own resolver. Builds for tests know some more names.
fn rules(context: NetworkRules) -> Rules {
    sandbox::look_up_hosts_without_loading();
    let mut rules = Rules::new(context);
    if cfg!(feature = "test-hooks")
        && let Ok(hosts) = std::env::var("RINGWALL_TEST_HOSTS")
    {
        rules.resolver = Arc::new(TestHosts(hosts));
    }
    rules
}

/// Names for tests, as `name=address` with commas between them.
struct TestHosts(String);

impl proxy::Resolve for TestHosts {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let known = self.0.split(',').filter_map(|entry| entry.split_once('='));
        let found: Vec<_> = known
            .filter(|(known, _)| *known == name)
            .filter_map(|(_, address)| address.parse().ok())
            .collect();
        if found.is_empty() { proxy::SystemResolver.resolve(name) } else { Ok(found) }
    }
}

/// Every connection needs two descriptors. The processes inside have their own limit already.
fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The user's own proxy, for the supervisor's connections.
fn upstream() -> io::Result<Upstream> {
    let variable = |names: [&str; 2]| {
        names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    };
    let http = variable(["http_proxy", "HTTP_PROXY"]);
    let https = variable(["https_proxy", "HTTPS_PROXY"]);
    let exempt = variable(["no_proxy", "NO_PROXY"]);
    Upstream::from_variables(http.as_deref(), https.as_deref(), exempt.as_deref())
        .map_err(|error| io::Error::other(format!("invalid proxy in the environment: {error}")))
}

/// Sends what the proxy reports to the supervisor's thread.
struct Reporter {
    line: Mutex<(Sender<ProxyMessage>, PipeWriter)>,
}

impl Reporter {
    fn new() -> io::Result<(Self, Receiver<ProxyMessage>, PipeReader)> {
        let (sender, receiver) = channel();
        let (wake, writer) = io::pipe()?;
        Ok((Self { line: Mutex::new((sender, writer)) }, receiver, wake))
    }

    /// Fails if the receiver is gone.
    fn send(&self, message: ProxyMessage) -> bool {
        let Ok(mut line) = self.line.lock() else { return false };
        line.0.send(message).is_ok() && line.1.write_all(&[0]).is_ok()
    }
}

impl Observer for Reporter {
    fn refused(&self, refusal: &Refusal) -> Answer {
        let (answer, answered) = sync_channel(1);
        if !self.send(ProxyMessage::Refused(refusal.clone(), answer)) {
            return Answer::Stop;
        }
        // No answer: the run is being stopped.
        answered.recv().unwrap_or(Answer::Stop)
    }

    fn looked_up(&self, name: &str, client: &Caller) {
        let (answer, answered) = sync_channel(1);
        if self.send(ProxyMessage::LookedUp(name.to_owned(), *client, answer)) {
            let _ = answered.recv();
        }
    }

    fn opening(&self, number: u64, client: &Caller, hold: ClientHold) {
        self.send(ProxyMessage::Opening { number, client: *client, _hold: hold });
    }

    fn failed(&self, number: u64) {
        self.send(ProxyMessage::Failed(number));
    }

    /// In builds for tests, makes the proxy fail, to test what happens to the run.
    fn malformed(&self, _client: &Caller, why: &str) {
        let fault = || std::env::var_os("RINGWALL_FAULT").is_some_and(|what| what == "proxy-panic");
        assert!(!cfg!(feature = "test-hooks") || !fault(), "the proxy was made to fail: {why}");
    }

    fn closed(&self, connection: &Connection) {
        self.send(ProxyMessage::Closed(connection.clone()));
    }
}
