//! Bytes from one socket to another.
//!
//! Short exchanges go through one small buffer that all connections share, so an idle connection
//! holds no memory. Once a direction has moved a good deal it moves long stretches through a large
//! buffer, which it holds only while there is something in it.
//!
//! Both copy. `splice(2)` through a pipe does not, but takes the bytes apart into single pages, each
//! with its own bookkeeping on both sides: measured on loopback, that costs more than the copies.

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::wire::{shut, write_all};

/// Where it failed.
#[derive(Debug)]
pub(crate) enum PumpError {
    /// The source.
    Reading,
    /// The destination.
    Writing,
}

/// The size of the shared buffer.
const SCRATCH: usize = 32 * 1024;
/// From this many bytes on, a direction moves long stretches.
const BULK: u64 = 512 * 1024;
/// The size of a stretch: of those measured, the shortest that is as fast as longer ones. Memory is
/// taken only as far as a read has ever filled it.
const STRETCH: usize = 4 * 1024 * 1024;
/// How many large buffers there may be; who comes later makes do with the small one.
static STRETCHES: Semaphore = Semaphore::const_new(8);
/// Large buffers that nobody uses at the moment.
static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
/// How many of them are kept: enough for both directions of a busy connection.
const MOST_SPARE: usize = 2;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
}

/// Moves bytes until the source ends or `limit` is reached, and says how many.
pub(crate) async fn pump(
    from: &TcpStream,
    to: &TcpStream,
    limit: Option<u64>,
    count: &AtomicU64,
) -> Result<u64, PumpError> {
    let mut left = limit.unwrap_or(u64::MAX);
    let mut moved = 0;
    while left > 0 {
        // A fast pair of peers must not keep the others waiting.
        tokio::task::consume_budget().await;
        let bulk = if moved >= BULK { Stretch::take() } else { None };
        let step = match bulk {
            Some(mut stretch) => stretch.step(from, to, left, count).await?,
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

/// Both directions, until both have ended or one has failed. An end is passed on, so that a client
/// which has said all it wants to say still hears the answer.
pub(crate) async fn both(
    client: &TcpStream,
    server: &TcpStream,
    sent: &AtomicU64,
    received: &AtomicU64,
) -> Result<(), PumpError> {
    tokio::try_join!(one(client, server, sent), one(server, client, received))?;
    Ok(())
}

/// One direction, with its end.
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

/// One read into the shared buffer, and its bytes written out again.
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
        // The others need the buffer.
        Ok(Ok((taken, bytes.get(written..).unwrap_or_default().to_vec())))
    });
    let (taken, rest) = match taken? {
        Ok(taken) => taken,
        Err(step) => return Ok(step),
    };
    // Counted before it waits: who sees zero here can be sure that nothing is lost.
    count.fetch_add(size(taken), Ordering::Relaxed);
    write_all(to, &rest).await.map_err(|_| PumpError::Writing)?;
    Ok(Step::Moved(taken))
}

/// Reads what there is, without waiting.
fn read(from: &TcpStream, room: &mut [u8]) -> Result<Step, PumpError> {
    match from.try_read(room) {
        Ok(0) => Ok(Step::End),
        Ok(taken) => Ok(Step::Moved(taken)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Step::Nothing),
        Err(_) => Err(PumpError::Reading),
    }
}

/// A large buffer.
struct Stretch {
    buffer: Vec<u8>,
    _permit: SemaphorePermit<'static>,
}

impl Stretch {
    fn take() -> Option<Self> {
        let permit = STRETCHES.try_acquire().ok()?;
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Some(Self { buffer: spare.unwrap_or_else(|| vec![0; STRETCH]), _permit: permit })
    }

    /// The same as a short step, but the bytes can stay here while they wait.
    async fn step(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        left: u64,
        count: &AtomicU64,
    ) -> Result<Step, PumpError> {
        let most = usize::try_from(left).unwrap_or(STRETCH).min(STRETCH);
        let step = read(from, self.buffer.get_mut(..most).unwrap_or_default())?;
        if let Step::Moved(taken) = step {
            count.fetch_add(size(taken), Ordering::Relaxed);
            let bytes = self.buffer.get(..taken).unwrap_or_default();
            write_all(to, bytes).await.map_err(|_| PumpError::Writing)?;
        }
        Ok(step)
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < MOST_SPARE {
            spare.push(std::mem::take(&mut self.buffer));
        }
    }
}
