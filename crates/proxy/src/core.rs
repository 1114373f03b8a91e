//! [`Core`]: the state that all connections of a proxy share, and how they are judged.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Caller, Host, Origin, Reason, Remedy, Rule, Verdict};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::dns::book::{Book, is_made_up};
use crate::gate::Gate;
use crate::observer::{Answer, ClientHold, Observer, Refusal, Route};
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
    /// Limits concurrent lookups.
    pub(crate) lookups: Semaphore,
    pub(crate) stop: watch::Sender<bool>,
    /// Whether a task has panicked.
    pub(crate) failed: AtomicBool,
    /// How many connections were opened so far.
    connections: AtomicU64,
}

/// Where a client wants to connect to.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) route: Route,
    pub(crate) client: Caller,
}

/// Why a client gets no connection.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The rules deny it, and the client gets an answer.
    Refused(Box<Reason>),
    /// The run is being stopped.
    Stopping,
    /// The server cannot be reached.
    Unreachable(String),
}

/// How long an observer may take to find the client's process. Resolvers do not wait longer either.
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

    /// The current rules.
    pub(crate) fn rules(&self) -> Rules {
        lock(&self.rules).clone()
    }

    pub(crate) fn replace(&self, rules: Rules) {
        *lock(&self.rules) = rules;
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// The destination that a client means: a made-up address means the name it was made up for.
    pub(crate) async fn destination(
        &self,
        host: Host,
        port: u16,
        route: Route,
        client: Caller,
    ) -> Result<Destination, Failure> {
        let Some(address) = host.address().filter(|address| is_made_up(*address)) else {
            return Ok(Destination { host, port, route, client });
        };
        let named = self.book().host(address);
        match named {
            Some(host) => Ok(Destination { host, port, route, client }),
            None => {
                let destination = Destination { host, port, route, client };
                Err(self.refuse(&destination, unexplained(address)).await)
            }
        }
    }

    /// Returns `Ok` if the rules allow it, else reports a denial.
    pub(crate) async fn require(
        &self,
        destination: &Destination,
        reason: Reason,
    ) -> Result<(), Failure> {
        match reason.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Ask | Verdict::Deny => Err(self.refuse(destination, reason).await),
        }
    }

    /// Reports that a destination was denied.
    pub(crate) async fn refuse(&self, destination: &Destination, reason: Reason) -> Failure {
        let host = destination.host.to_string();
        let Destination { port, route, client, .. } = *destination;
        self.report(Refusal { host, port, route, client, reason }).await
    }

    /// Reports a lookup of a name that is not allowed. The client waits meanwhile, so that the observer
    /// can find its process, but no longer than [`SEARCH_TIME`].
    pub(crate) async fn report_look_up(&self, name: String, client: Caller) {
        let observer = Arc::clone(&self.observer);
        let reported = tokio::task::spawn_blocking(move || observer.looked_up(&name, &client));
        let _ = tokio::time::timeout(SEARCH_TIME, reported).await;
    }

    /// Reports a denial and does what the observer answers. The observer may search for the client's
    /// process, which is slow, so it runs on a separate thread.
    pub(crate) async fn report(&self, refusal: Refusal) -> Failure {
        let reason = Box::new(refusal.reason.clone());
        let observer = Arc::clone(&self.observer);
        let answer = tokio::task::spawn_blocking(move || observer.refused(&refusal)).await;
        // An observer that panicked gave no answer; stopping is safe.
        match answer.unwrap_or(Answer::Stop) {
            Answer::Refuse => Failure::Refused(reason),
            Answer::Stop => {
                self.stop.send_replace(true);
                Failure::Stopping
            }
        }
    }
}

/// A connection that is about to be made, while the observer searches for the client's process.
pub(crate) struct Opening {
    core: Arc<Core>,
    number: u64,
    released: Option<oneshot::Receiver<()>>,
    made: bool,
}

impl Opening {
    pub(crate) fn report(core: &Arc<Core>, client: &Caller) -> Self {
        let number = core.connections.fetch_add(1, Ordering::Relaxed);
        let (hold, released) = ClientHold::new();
        core.observer.opening(number, client, hold);
        Self { core: Arc::clone(core), number, released: Some(released), made: false }
    }

    /// The connection is made. Returns its number once the observer is done.
    pub(crate) async fn made(mut self) -> u64 {
        if let Some(released) = self.released.take() {
            let _ = tokio::time::timeout(SEARCH_TIME, released).await;
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
    let text = format!("{address} is not the address of any name that was looked up");
    let advice = "look up the name first, then connect to the address in the answer";
    Reason::deny(Rule::MadeUpAddress, Origin::BuiltIn, text).with(Remedy::advice(advice))
}

/// A poisoned lock is safe to use: no code leaves the data inconsistent while it holds the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
