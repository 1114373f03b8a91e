//! [`Core`]: what all connections of one proxy share, and how they ask for permission.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Caller, Host, Origin, Reason, Remedy, Rule, Verdict};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::dns::book::{Book, is_made_up};
use crate::gate::Gate;
use crate::observer::{Answer, Heard, Observer, Refusal, Route};
use crate::rules::Rules;
use crate::upstream::Upstream;

pub(crate) struct Core {
    rules: Mutex<Rules>,
    book: Mutex<Book>,
    pub(crate) upstream: Upstream,
    pub(crate) observer: Arc<dyn Observer>,
    /// Our own listeners, where they can be reached from the host.
    pub(crate) own: Vec<SocketAddr>,
    pub(crate) gate: Gate,
    /// Lookups that may be under way at once.
    pub(crate) lookups: Semaphore,
    pub(crate) stop: watch::Sender<bool>,
    /// Whether a task has panicked.
    pub(crate) failed: AtomicBool,
    /// How many connections there have been.
    connections: AtomicU64,
}

/// What a client asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) route: Route,
    pub(crate) client: Caller,
}

/// Why a client gets no connection.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The rules do not allow it, and the client is told.
    Refused(Box<Reason>),
    /// Everything is being stopped.
    Stopping,
    /// The server cannot be reached.
    Unreachable(String),
}

/// How long an observer may take to find who looked a name up, or who connects. Resolvers do not wait
/// longer either.
const SEARCH_TIME: Duration = Duration::from_secs(2);

impl Core {
    pub(crate) fn new(
        rules: Rules,
        upstream: Upstream,
        observer: Arc<dyn Observer>,
        own: Vec<SocketAddr>,
        connections: usize,
    ) -> Self {
        Self {
            rules: Mutex::new(rules),
            book: Mutex::default(),
            upstream,
            observer,
            own,
            gate: Gate::new(connections),
            lookups: Semaphore::new(32),
            stop: watch::Sender::new(false),
            failed: AtomicBool::new(false),
            connections: AtomicU64::new(0),
        }
    }

    /// The rules of this moment.
    pub(crate) fn rules(&self) -> Rules {
        lock(&self.rules).clone()
    }

    pub(crate) fn replace(&self, rules: Rules) {
        *lock(&self.rules) = rules;
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// What is meant by a host: a made-up address means the name it was made up for.
    pub(crate) async fn asked(
        &self,
        host: Host,
        port: u16,
        route: Route,
        client: Caller,
    ) -> Result<Asked, Failure> {
        let Some(address) = host.address().filter(|address| is_made_up(*address)) else {
            return Ok(Asked { host, port, route, client });
        };
        let named = self.book().host(address);
        match named {
            Some(host) => Ok(Asked { host, port, route, client }),
            None => {
                let asked = Asked { host, port, route, client };
                Err(self.refuse(&asked, unexplained(address)).await)
            }
        }
    }

    /// Passes what the rules allow and refuses the rest.
    pub(crate) async fn require(&self, asked: &Asked, reason: Reason) -> Result<(), Failure> {
        match reason.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Ask | Verdict::Deny => Err(self.refuse(asked, reason).await),
        }
    }

    /// Reports a refusal of what a client asked for.
    pub(crate) async fn refuse(&self, asked: &Asked, reason: Reason) -> Failure {
        let host = asked.host.to_string();
        let Asked { port, route, client, .. } = *asked;
        self.report(Refusal { host, port, route, client, reason }).await
    }

    /// Reports a name that is not allowed. The client waits for its answer meanwhile, so that the
    /// observer can find it; but not for long, and the others with it.
    pub(crate) async fn report_look_up(&self, name: String, client: Caller) {
        let observer = Arc::clone(&self.observer);
        let told = tokio::task::spawn_blocking(move || observer.looked_up(&name, &client));
        let _ = tokio::time::timeout(SEARCH_TIME, told).await;
    }

    /// Reports a refusal and does what the observer says. The observer may look for the program
    /// behind the client, which takes its time and must not hold up the others.
    pub(crate) async fn report(&self, refusal: Refusal) -> Failure {
        let reason = Box::new(refusal.reason.clone());
        let observer = Arc::clone(&self.observer);
        let answer = tokio::task::spawn_blocking(move || observer.refused(&refusal)).await;
        // An observer that fails has not agreed to anything: the safe reading is to stop.
        match answer.unwrap_or(Answer::Stop) {
            Answer::Refuse => Failure::Refused(reason),
            Answer::Stop => {
                self.stop.send_replace(true);
                Failure::Stopping
            }
        }
    }
}

/// A connection that is about to be made. The observer finds out who wants it while it is.
pub(crate) struct Opening {
    core: Arc<Core>,
    number: u64,
    heard: Option<oneshot::Receiver<()>>,
    made: bool,
}

impl Opening {
    pub(crate) fn report(core: &Arc<Core>, client: &Caller) -> Self {
        let number = core.connections.fetch_add(1, Ordering::Relaxed);
        let (hearing, heard) = Heard::new();
        core.observer.opening(number, client, hearing);
        Self { core: Arc::clone(core), number, heard: Some(heard), made: false }
    }

    /// The connection is made, and gets its number once the observer has heard of it.
    pub(crate) async fn made(mut self) -> u64 {
        if let Some(heard) = self.heard.take() {
            let _ = tokio::time::timeout(SEARCH_TIME, heard).await;
        }
        self.made = true;
        self.number
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.made {
            self.core.observer.failed(self.number);
        }
    }
}

fn unexplained(address: IpAddr) -> Reason {
    let text = format!("{address} stands for no name: it was never given as an answer");
    let advice = "look the name up first, and connect to the address it has then";
    Reason::deny(Rule::MadeUpAddress, Origin::BuiltIn, text).with(Remedy::advice(advice))
}

/// A thread that panicked while it held the lock has left nothing half-done behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
