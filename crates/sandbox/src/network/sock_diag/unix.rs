//! Which sockets are bound to a file, asked of the kernel (`sock_diag(7)`).
//!
//! A path does not belong to a network namespace, but every socket does: those that the kernel lists
//! for the run's namespace were created by the run.

use std::io;

use rustix::net::{RecvFlags, SendFlags};

use super::{SockDiag, word};

/// A socket of the family `AF_UNIX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnixSocket {
    /// The number of the socket, as `fstat` of its descriptor shows it.
    pub(crate) inode: u32,
    /// Whether something can be sent to it by its address.
    pub(crate) receives: bool,
    /// Whether it neither listens nor is connected.
    pub(crate) idle: bool,
    /// The file it is bound to: the device of the file system, and the lower half of the inode number.
    pub(crate) file: Option<(u32, u32)>,
    /// The address as it was bound. An abstract one begins with a zero.
    pub(crate) name: Vec<u8>,
}

const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `UDIAG_SHOW_NAME` and `UDIAG_SHOW_VFS`.
const SHOW: u32 = 1 | 2;
const ATTRIBUTE_NAME: u16 = 0;
const ATTRIBUTE_FILE: u16 = 1;
/// `TCP_LISTEN`, the state of a listening socket.
const LISTENS: u8 = 10;
/// `TCP_CLOSE`, the state of one that is only bound.
const IDLE: u8 = 7;

impl SockDiag {
    /// The sockets of the namespace that have an address.
    pub(crate) fn unix_sockets(&self) -> io::Result<Vec<UnixSocket>> {
        let number = self.asked.get().wrapping_add(1);
        self.asked.set(number);
        rustix::net::send(&self.socket, &question(number), SendFlags::empty())?;
        let (mut bytes, mut sockets) = (vec![0; 64 * 1024], Vec::new());
        loop {
            // The kernel has the next part ready before the last one is taken.
            let (_, length) = rustix::net::recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT)?;
            let mut rest = bytes.get(..length).unwrap_or_default();
            while let Some(size) = word(rest, 0).and_then(|size| usize::try_from(size).ok()) {
                let Some(message) = rest.get(..size).filter(|message| message.len() >= 16) else {
                    return Err(io::ErrorKind::InvalidData.into());
                };
                if word(message, 8) == Some(number) {
                    match half(message, 4) {
                        Some(DONE) => return Ok(sockets),
                        Some(ERROR) => {
                            let error = word(message, 16).unwrap_or_default().cast_signed();
                            return Err(io::Error::from_raw_os_error(error.wrapping_neg()));
                        }
                        _ => sockets.extend(socket(message.get(16..).unwrap_or_default())),
                    }
                }
                rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// `nlmsghdr` and `unix_diag_req`.
fn question(number: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40);
    bytes.extend(40u32.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((REQUEST | DUMP).to_ne_bytes());
    bytes.extend(number.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.push(u8::try_from(libc::AF_UNIX).unwrap_or_default());
    bytes.extend([0; 3]);
    // Every state, every socket.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend(SHOW.to_ne_bytes());
    bytes.extend([0xff; 8]);
    bytes
}

/// Reads `unix_diag_msg` and its attributes.
fn socket(bytes: &[u8]) -> Option<UnixSocket> {
    let &[_, kind, state, _] = bytes.first_chunk::<4>()?;
    // The server's end of a connection has the address of its server, in the namespace of the client.
    let receives = state == LISTENS || c_int(kind) == libc::SOCK_DGRAM;
    let mut found = UnixSocket {
        inode: word(bytes, 4)?,
        receives,
        idle: state == IDLE,
        file: None,
        name: Vec::new(),
    };
    let mut rest = bytes.get(16..)?;
    while let (Some(size), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let size = usize::from(size);
        let Some(value) = rest.get(4..size) else { break };
        match kind {
            ATTRIBUTE_NAME => found.name = value.to_vec(),
            ATTRIBUTE_FILE => found.file = word(value, 4).zip(word(value, 0)),
            _ => {}
        }
        rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
    }
    (!found.name.is_empty()).then_some(found)
}

fn c_int(value: u8) -> libc::c_int {
    value.into()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
#[expect(clippy::print_stderr, reason = "the test log must show what did not run")]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_bound_socket_is_found_by_its_file_and_a_connection_to_it_is_no_second_one() {
        let Ok(diag) = SockDiag::here() else { return eprintln!("skipped: no sock_diag") };
        let dir = tempfile::tempdir().unwrap();
        let (stream, datagram) = (dir.path().join("s"), dir.path().join("d"));
        let listener = UnixListener::bind(&stream).unwrap();
        let _datagram = UnixDatagram::bind(&datagram).unwrap();
        let _client = UnixStream::connect(&stream).unwrap();
        let _server = listener.accept().unwrap();
        let Ok(all) = diag.unix_sockets() else { return eprintln!("skipped: no unix_diag") };
        for path in [&stream, &datagram] {
            let inode = std::fs::metadata(path).unwrap().ino();
            let here = all.iter().filter(|one| {
                one.file.is_some_and(|file| u64::from(file.1) == inode & u64::from(u32::MAX))
            });
            let here: Vec<_> = here.filter(|one| one.receives).collect();
            assert_eq!(here.len(), 1, "{path:?}: {here:?}");
            assert!(here[0].name.starts_with(path.as_os_str().as_encoded_bytes()));
        }
    }
}
