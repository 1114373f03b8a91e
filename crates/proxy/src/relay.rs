//! Bytes from one socket to another.
//!
//! Short exchanges go through one small buffer that all connections share, so an idle connection
//! holds no memory. Once a direction has moved a good deal, the kernel moves the pages itself
//! through a pipe (`splice`), and no byte is copied here.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::io::Interest;
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
/// From this many bytes on, a direction gets a pipe.
const BULK: u64 = 512 * 1024;
/// The size of a pipe: of those measured, the one that costs the least processor time.
const PIPE: usize = 1024 * 1024;
/// How many pipes there may be; who comes later copies. A user may hold 64 MiB in pipes, and has
/// other uses for them.
static PIPES: Semaphore = Semaphore::const_new(16);

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
        if moved >= BULK
            && let Some(pipe) = Pipe::open()
        {
            return Ok(moved + pipe.pump(from, to, left, count).await?);
        }
        let most = usize::try_from(left).unwrap_or(SCRATCH).min(SCRATCH);
        let step = match step(from, to, most) {
            Ok(Step::End) => break,
            Ok(Step::Moved(step)) => {
                count.fetch_add(size(step), Ordering::Relaxed);
                step
            }
            Ok(Step::Stuck(rest, step)) => {
                // Counted before it waits: who sees zero here can be sure that nothing is lost.
                count.fetch_add(size(step), Ordering::Relaxed);
                write_all(to, &rest).await.map_err(|_| PumpError::Writing)?;
                step
            }
            Ok(Step::Nothing) => {
                from.readable().await.map_err(|_| PumpError::Reading)?;
                continue;
            }
            Err(error) => return Err(error),
        };
        moved += size(step);
        left -= size(step);
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
    /// What could not be written yet, of how many bytes.
    Stuck(Vec<u8>, usize),
}

/// One read into the shared buffer and one write out of it, without waiting in between.
fn step(from: &TcpStream, to: &TcpStream, most: usize) -> Result<Step, PumpError> {
    BUFFER.with_borrow_mut(|buffer| {
        let room = buffer.get_mut(..most).unwrap_or_default();
        let count = match from.try_read(room) {
            Ok(0) => return Ok(Step::End),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Step::Nothing),
            Err(_) => return Err(PumpError::Reading),
        };
        let bytes = room.get(..count).unwrap_or_default();
        let written = match to.try_write(bytes) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => return Err(PumpError::Writing),
        };
        match bytes.get(written..) {
            Some(rest) if !rest.is_empty() => Ok(Step::Stuck(rest.to_vec(), count)),
            _ => Ok(Step::Moved(count)),
        }
    })
}

/// A pipe in the kernel, through which pages move from socket to socket.
struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    _permit: SemaphorePermit<'static>,
}

impl Pipe {
    fn open() -> Option<Self> {
        let permit = PIPES.try_acquire().ok()?;
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // The kernel may refuse; the usual size works too.
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE);
        Some(Self { reader, writer, _permit: permit })
    }

    async fn pump(
        &self,
        from: &TcpStream,
        to: &TcpStream,
        limit: u64,
        count: &AtomicU64,
    ) -> Result<u64, PumpError> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let mut moved = 0;
        while moved < limit {
            tokio::task::consume_budget().await;
            let most = usize::try_from(limit - moved).unwrap_or(PIPE).min(PIPE);
            let taken = loop {
                from.readable().await.map_err(|_| PumpError::Reading)?;
                let take = || Ok(splice(from, None, &self.writer, None, most, flags)?);
                match from.try_io(Interest::READABLE, take) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return Err(PumpError::Reading),
                    Ok(taken) => break taken,
                }
            };
            if taken == 0 {
                break;
            }
            let mut held = taken;
            while held > 0 {
                let give = || Ok(splice(&self.reader, None, to, None, held, flags)?);
                match to.try_io(Interest::WRITABLE, give) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        to.writable().await.map_err(|_| PumpError::Writing)?;
                    }
                    Err(_) | Ok(0) => return Err(PumpError::Writing),
                    Ok(given) => held -= given,
                }
            }
            count.fetch_add(size(taken), Ordering::Relaxed);
            moved += size(taken);
        }
        Ok(moved)
    }
}
