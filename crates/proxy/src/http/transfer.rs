//! Copies message bodies from one socket to another.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, BytesMut};
use tokio::net::TcpStream;

use super::HEAD_LIMIT;
use super::body::{Body, chunk_line};
use crate::relay::{PumpError, pump};
use crate::wire::{fill, write_all};

/// Copies a body, starting with the bytes that were read already, and not one byte beyond its end.
pub(super) async fn copy(
    body: Body,
    from: &TcpStream,
    buffer: &mut BytesMut,
    to: &TcpStream,
    count: &AtomicU64,
) -> Result<(), PumpError> {
    match body {
        Body::Empty => Ok(()),
        Body::Length(length) => exactly(length, from, buffer, to, count).await,
        Body::UntilClose => {
            let held = u64::try_from(buffer.len()).unwrap_or(0);
            exactly(held, from, buffer, to, count).await?;
            pump(from, to, None, count).await.map(|_| ())
        }
        Body::Chunked => loop {
            let (length, line) = loop {
                match chunk_line(buffer).map_err(|_| PumpError::Reading)? {
                    Some(chunk) => break chunk,
                    None => more(from, buffer).await?,
                }
            };
            buffer.advance(line);
            if length == 0 {
                trailers(from, buffer).await?;
                return write_all(to, b"0\r\n\r\n").await.map_err(|_| PumpError::Writing);
            }
            let line = format!("{length:x}\r\n");
            write_all(to, line.as_bytes()).await.map_err(|_| PumpError::Writing)?;
            exactly(length, from, buffer, to, count).await?;
            while buffer.len() < 2 {
                more(from, buffer).await?;
            }
            if !buffer.starts_with(b"\r\n") {
                return Err(PumpError::Reading);
            }
            buffer.advance(2);
            write_all(to, b"\r\n").await.map_err(|_| PumpError::Writing)?;
        },
    }
}

async fn more(from: &TcpStream, buffer: &mut BytesMut) -> Result<(), PumpError> {
    match fill(from, buffer).await {
        Ok(count) if count > 0 => Ok(()),
        _ => Err(PumpError::Reading),
    }
}

async fn exactly(
    length: u64,
    from: &TcpStream,
    buffer: &mut BytesMut,
    to: &TcpStream,
    count: &AtomicU64,
) -> Result<(), PumpError> {
    let held = usize::try_from(length).unwrap_or(usize::MAX).min(buffer.len());
    let first = buffer.split_to(held);
    write_all(to, &first).await.map_err(|_| PumpError::Writing)?;
    let held = u64::try_from(held).unwrap_or(0);
    count.fetch_add(held, Ordering::Relaxed);
    let moved = pump(from, to, Some(length - held), count).await?;
    if held + moved == length { Ok(()) } else { Err(PumpError::Reading) }
}

/// Skips the trailer headers after the last chunk. They are not forwarded, because they were not
/// judged.
async fn trailers(from: &TcpStream, buffer: &mut BytesMut) -> Result<(), PumpError> {
    let mut room = HEAD_LIMIT;
    loop {
        match buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) if end + 1 > room => return Err(PumpError::Reading),
            Some(end) => {
                let line = buffer.split_to(end + 1);
                room -= line.len();
                match line.strip_suffix(b"\r\n") {
                    Some(b"") => return Ok(()),
                    Some(line) if !line.contains(&b'\r') => {}
                    _ => return Err(PumpError::Reading),
                }
            }
            None if buffer.len() > room => return Err(PumpError::Reading),
            None => more(from, buffer).await?,
        }
    }
}
