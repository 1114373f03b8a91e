//! Copies bytes from one socket to another.
//!
//! Short exchanges use one small buffer that all connections share, so an idle connection holds no
//! memory. A direction that has copied a lot uses a large buffer, which it holds only while there is
//! something in it.
//!
//! `splice(2)` through a pipe would avoid the copies, but it splits the data into single pages, each
//! with its own bookkeeping on both sides. Measured on loopback, that costs more than the copies.

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::wire::{shut, write_all};

/// Which side failed.
#[derive(Debug)]
pub(crate) enum PumpError {
    /// The source.
    Reading,
    /// The destination.
    Writing,
}

/// The size of the shared buffer.
const SCRATCH: usize = 32 * 1024;
/// After this many bytes a direction uses a large buffer.
const BULK_AFTER: u64 = 512 * 1024;
/// The size of a large buffer: of the sizes measured, the smallest that is as fast as larger ones.
/// Its pages are allocated only when a read fills them.
const BULK_SIZE: usize = 4 * 1024 * 1024;
/// Limits the number of large buffers; further connections use the small one.
static BULK_BUFFERS: Semaphore = Semaphore::const_new(8);
/// Large buffers that are not in use.
static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
/// How many of them are kept: enough for both directions of a busy connection.
const MOST_SPARE: usize = 2;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
}

/// Copies bytes until the source ends or `limit` is reached, and returns how many.
pub(crate) async fn pump(
    from: &TcpStream,
    to: &TcpStream,
    limit: Option<u64>,
    count: &AtomicU64,
) -> Result<u64, PumpError> {
    let mut left = limit.unwrap_or(u64::MAX);
    let mut moved = 0;
    while left > 0 {
        // A fast pair of peers must not starve the others.
        tokio::task::consume_budget().await;
        let bulk = if moved >= BULK_AFTER { BulkBuffer::take() } else { None };
        let step = match bulk {
            Some(mut buffer) => buffer.step(from, to, left, count).await?,
            None => short_step(from, to, left, count).await?,
        };
        match step {
            Step::End => break,
            Step::Nothing => from.readable().await.map_err(|_| PumpError::Reading)?,
            Step::Moved(step) => {
                moved += size(step);
                left -= size(step);
            }
        }
    }
    Ok(moved)
}

/// Copies in both directions until both have ended or one has failed. An end of file is forwarded, so
/// that a client that closed its writing side still gets the response.
pub(crate) async fn both(
    client: &TcpStream,
    server: &TcpStream,
    sent: &AtomicU64,
    received: &AtomicU64,
) -> Result<(), PumpError> {
    tokio::try_join!(one(client, server, sent), one(server, client, received))?;
    Ok(())
}

/// Copies in one direction, and forwards the end of file.
pub(crate) async fn one(
    from: &TcpStream,
    to: &TcpStream,
    count: &AtomicU64,
) -> Result<(), PumpError> {
    pump(from, to, None, count).await?;
    shut(to);
    Ok(())
}

fn size(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

enum Step {
    End,
    Nothing,
    Moved(usize),
}

/// Reads once into the shared buffer and writes the bytes out.
async fn short_step(
    from: &TcpStream,
    to: &TcpStream,
    left: u64,
    count: &AtomicU64,
) -> Result<Step, PumpError> {
    let most = usize::try_from(left).unwrap_or(SCRATCH).min(SCRATCH);
    let taken = BUFFER.with_borrow_mut(|buffer| {
        let room = buffer.get_mut(..most).unwrap_or_default();
        let taken = match read(from, room)? {
            Step::Moved(taken) => taken,
            step => return Ok(Err(step)),
        };
        let bytes = room.get(..taken).unwrap_or_default();
        let written = match to.try_write(bytes) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => return Err(PumpError::Writing),
        };
        // The buffer is shared, so the rest is copied out of it.
        Ok(Ok((taken, bytes.get(written..).unwrap_or_default().to_vec())))
    });
    let (taken, rest) = match taken? {
        Ok(taken) => taken,
        Err(step) => return Ok(step),
    };
    // Counted before it waits, so that a count of zero means that nothing was read.
    count.fetch_add(size(taken), Ordering::Relaxed);
    write_all(to, &rest).await.map_err(|_| PumpError::Writing)?;
    Ok(Step::Moved(taken))
}

/// Reads what is available, without waiting.
fn read(from: &TcpStream, room: &mut [u8]) -> Result<Step, PumpError> {
    match from.try_read(room) {
        Ok(0) => Ok(Step::End),
        Ok(taken) => Ok(Step::Moved(taken)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Step::Nothing),
        Err(_) => Err(PumpError::Reading),
    }
}

/// A large buffer.
struct BulkBuffer {
    buffer: Vec<u8>,
    _permit: SemaphorePermit<'static>,
}

impl BulkBuffer {
    fn take() -> Option<Self> {
        let permit = BULK_BUFFERS.try_acquire().ok()?;
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Some(Self { buffer: spare.unwrap_or_else(|| vec![0; BULK_SIZE]), _permit: permit })
    }

    /// The same as a short step, but the bytes can stay in the buffer while they wait.
    async fn step(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        left: u64,
        count: &AtomicU64,
    ) -> Result<Step, PumpError> {
        let most = usize::try_from(left).unwrap_or(BULK_SIZE).min(BULK_SIZE);
        let step = read(from, self.buffer.get_mut(..most).unwrap_or_default())?;
        if let Step::Moved(taken) = step {
            count.fetch_add(size(taken), Ordering::Relaxed);
            let bytes = self.buffer.get(..taken).unwrap_or_default();
            write_all(to, bytes).await.map_err(|_| PumpError::Writing)?;
        }
        Ok(step)
    }
}

impl Drop for BulkBuffer {
    fn drop(&mut self) {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < MOST_SPARE {
            spare.push(std::mem::take(&mut self.buffer));
        }
    }
}
