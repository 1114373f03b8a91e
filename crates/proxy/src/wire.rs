//! [`Wire`]: a socket with the bytes that were read from it and not yet used.

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

/// How much is read at once before it is known what is spoken.
const STEP: usize = 4 * 1024;

impl Wire {
    /// Takes over a socket. Peers that vanish without a word are noticed.
    pub(crate) fn new(stream: TcpStream) -> Self {
        // None of this is needed for a connection to work.
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

    /// Says the last word and makes sure that it can be heard: a socket that is closed while bytes
    /// wait in it resets the connection, and the word is lost.
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

/// Reads what there is. Zero means that nothing more will come. Memory is taken only once there is
/// something to read, so idle connections hold none.
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

/// Tells the peer that nothing more will come.
pub(crate) fn shut(stream: &TcpStream) {
    let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
}
