//! The network of a run: the proxy that serves its doors, and what it tells.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};

use model::{Caller, Host};
use policy::NetworkRules;
use proxy::{
    Answer, Connection, Ended, Heard, Listeners, Observer, Place, Proxy, Refusal, Rules, Running,
    Upstream,
};

/// What the proxy has to say.
pub(crate) enum Told {
    /// A connection was refused; the client waits for the answer.
    Refused(Refusal, SyncSender<Answer>),
    /// A name that is not granted was looked up; the client waits until this is heard.
    LookedUp(String, Caller, SyncSender<()>),
    /// A connection with this number is about to be made; the client waits until this is heard.
    Opening { number: u64, client: Caller, _heard: Heard },
    /// It was not made.
    Failed(u64),
    /// A connection came to its end.
    Closed(Connection),
}

/// The proxy of a run, once somebody has knocked.
pub(crate) struct Network {
    running: Option<Running>,
    told: Receiver<Told>,
    wake: PipeReader,
}

impl Network {
    /// Serves the doors.
    pub(crate) fn open(doors: sandbox::Listeners, context: NetworkRules) -> io::Result<Self> {
        let (teller, told, wake) = Teller::new()?;
        let listeners = Listeners {
            proxy: TcpListener::from(doors.proxy),
            dns_udp: Some(UdpSocket::from(doors.names)),
            dns_tcp: Some(TcpListener::from(doors.names_tcp)),
            transparent: doors.ports.into_iter().map(TcpListener::from).collect(),
            place: Place::Namespace,
        };
        raise_descriptors();
        let running = Proxy::start(listeners, rules(context), upstream()?, Arc::new(teller))?;
        Ok(Self { running: Some(running), told, wake })
    }

    /// What to wait on.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let running = self.running.as_ref().map(AsFd::as_fd);
        std::iter::once(self.wake.as_fd()).chain(running).collect()
    }

    /// Everything that was told since the last time.
    pub(crate) fn news(&mut self) -> Vec<Told> {
        let mut news = Vec::new();
        while let Ok(told) = self.told.try_recv() {
            // One byte was written for each.
            let _ = self.wake.read(&mut [0]);
            news.push(told);
        }
        news
    }

    /// The name that an address inside stands for.
    pub(crate) fn name(&self, address: IpAddr) -> Option<Host> {
        self.running.as_ref().and_then(|running| running.name(address))
    }

    /// Ends the proxy, and with it every connection that still stands. Gives what was not heard yet.
    pub(crate) fn close(mut self) -> Vec<Told> {
        self.running = None;
        self.news()
    }

    /// Whether the proxy has ended by itself. Its sockets are closed then, and nothing passes.
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

/// The rules, with the machine's own resolver. Builds for tests know a few names more.
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

/// Every connection needs two descriptors. What runs inside has its own limit already.
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
        .map_err(|error| io::Error::other(format!("the proxy of this environment: {error}")))
}

/// Carries what the proxy says to the supervisor's thread.
struct Teller {
    told: Mutex<(Sender<Told>, PipeWriter)>,
}

impl Teller {
    fn new() -> io::Result<(Self, Receiver<Told>, PipeReader)> {
        let (sender, told) = channel();
        let (wake, writer) = io::pipe()?;
        Ok((Self { told: Mutex::new((sender, writer)) }, told, wake))
    }

    /// Fails when there is nobody left to tell.
    fn tell(&self, told: Told) -> bool {
        let Ok(mut line) = self.told.lock() else { return false };
        line.0.send(told).is_ok() && line.1.write_all(&[0]).is_ok()
    }
}

impl Observer for Teller {
    fn refused(&self, refusal: &Refusal) -> Answer {
        let (answer, heard) = sync_channel(1);
        if !self.tell(Told::Refused(refusal.clone(), answer)) {
            return Answer::Stop;
        }
        // No answer: the run is being stopped.
        heard.recv().unwrap_or(Answer::Stop)
    }

    fn looked_up(&self, name: &str, client: &Caller) {
        let (answer, heard) = sync_channel(1);
        if self.tell(Told::LookedUp(name.to_owned(), *client, answer)) {
            let _ = heard.recv();
        }
    }

    fn opening(&self, number: u64, client: &Caller, heard: Heard) {
        self.tell(Told::Opening { number, client: *client, _heard: heard });
    }

    fn failed(&self, number: u64) {
        self.tell(Told::Failed(number));
    }

    /// Builds for tests can see what becomes of a run whose proxy fails.
    fn malformed(&self, _client: &Caller, why: &str) {
        let fault = || std::env::var_os("RINGWALL_FAULT").is_some_and(|what| what == "proxy-panic");
        assert!(!cfg!(feature = "test-hooks") || !fault(), "the proxy was made to fail: {why}");
    }

    fn closed(&self, connection: &Connection) {
        self.tell(Told::Closed(connection.clone()));
    }
}
