//! [`Gate`]: limits the number of connections, and closes idle ones to make room.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Counts connections. When the limit is reached, the connection that has been idle longest without a
/// request is closed, so that a thousand idle connections cannot lock out one that works.
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    silent: Mutex<Silent>,
}

#[derive(Default)]
struct Silent {
    next: u64,
    clients: BTreeMap<u64, Arc<Notify>>,
}

/// The client was disconnected to make room.
#[derive(Debug)]
pub(crate) struct Evicted;

impl Gate {
    pub(crate) fn new(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), silent: Mutex::default() }
    }

    /// Waits for room, and disconnects an idle client if there is none.
    pub(crate) async fn enter(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        let oldest = self.with(|silent| silent.clients.pop_first());
        if let Some((_, client)) = oldest {
            client.notify_one();
        }
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Waits for a client's request, unless the client must make room for another.
    pub(crate) async fn waiting<T>(&self, words: impl Future<Output = T>) -> Result<T, Evicted> {
        let called = Arc::new(Notify::new());
        let ticket = self.with(|silent| {
            let ticket = silent.next;
            silent.next += 1;
            silent.clients.insert(ticket, Arc::clone(&called));
            ticket
        });
        let _guard = Ticket { gate: self, ticket };
        tokio::select! {
            biased;
            words = words => Ok(words),
            () = called.notified() => Err(Evicted),
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Silent) -> T) -> T {
        act(&mut self.silent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Ticket<'a> {
    gate: &'a Gate,
    ticket: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.gate.with(|silent| silent.clients.remove(&self.ticket));
    }
}
