//! [`Core`]: what all connections of one proxy share, and how they ask for permission.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Host, Origin, Reason, Verdict};
use tokio::sync::{Semaphore, watch};

use crate::dns::book::{Book, is_made_up};
use crate::gate::Gate;
use crate::observer::{Answer, Observer, Refusal, Route};
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
}

/// What a client asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) route: Route,
    pub(crate) client: SocketAddr,
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
        client: SocketAddr,
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
    pub(crate) async fn report_look_up(&self, name: String, client: SocketAddr) {
        let observer = Arc::clone(&self.observer);
        let told = tokio::task::spawn_blocking(move || observer.looked_up(&name, client));
        let _ = tokio::time::timeout(SEARCH_TIME, told).await;
    }

    /// Reports a connection. The client waits for its first byte meanwhile: one that is served at
    /// once is gone before anybody can see who it was.
    pub(crate) async fn report_opened(&self, client: SocketAddr) {
        let observer = Arc::clone(&self.observer);
        let told = tokio::task::spawn_blocking(move || observer.opened(client));
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

fn unexplained(address: IpAddr) -> Reason {
    Reason {
        verdict: Verdict::Deny,
        rule: "made-up-address".into(),
        origin: Origin::BuiltIn,
        text: format!("{address} stands for no name: it was never given as an answer"),
        instead: Some("look the name up first, and connect to the address it has then".into()),
    }
}

/// A thread that panicked while it held the lock has left nothing half-done behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
