//! [`Wire`]: a socket, and the bytes that were read from it but not used yet.

use std::io;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// One end of a connection.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    pub(crate) buffer: BytesMut,
}

/// How much is read at once before the protocol is known.
const STEP: usize = 4 * 1024;

impl Wire {
    /// Takes over a socket, and turns on keep-alive to notice peers that vanish.
    pub(crate) fn new(stream: TcpStream) -> Self {
        // A connection works without these options, so errors are ignored.
        let _ = stream.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(&stream, true);
        let _ = sockopt::set_tcp_keepidle(&stream, Duration::from_mins(1));
        let _ = sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(15));
        let _ = sockopt::set_tcp_keepcnt(&stream, 4);
        Self { stream, buffer: BytesMut::new() }
    }

    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        fill(&self.stream, &mut self.buffer).await
    }

    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        write_all(&self.stream, bytes).await
    }

    /// Writes the last bytes, then reads until the peer closes. A socket that is closed with unread
    /// bytes resets the connection, and the peer would lose the last bytes.
    pub(crate) async fn finish(mut self, last: &[u8]) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let drained = async {
            self.write(last).await?;
            shut(&self.stream);
            let mut room = 1024 * 1024usize;
            while room > 0 {
                self.buffer.clear();
                let count = self.fill().await?;
                if count == 0 {
                    break;
                }
                room = room.saturating_sub(count);
            }
            io::Result::Ok(())
        };
        let _ = timeout(PATIENCE, drained).await;
    }

    /// Ends the connection so that the client sees a reset.
    pub(crate) fn reset(self) {
        let _ = sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }
}

/// Reads what is available. Zero means end of file. Memory is allocated only once there is something
/// to read, so idle connections hold none.
pub(crate) async fn fill(stream: &TcpStream, buffer: &mut BytesMut) -> io::Result<usize> {
    // A peer that never pauses must not keep the others waiting.
    tokio::task::consume_budget().await;
    loop {
        stream.readable().await?;
        buffer.reserve(STEP);
        match stream.try_read_buf(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

pub(crate) async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes.advance(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Closes the writing side, so that the peer sees end of file.
pub(crate) fn shut(stream: &TcpStream) {
    let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
}
