//! [`Writer`]: events as JSON lines, for a reader that may be slow or gone.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;

/// How long a reader may take at the end of a run to read what is left.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// How many bytes are kept for a reader that does not read.
const MAX_PENDING: usize = 16 << 20;
/// A pipe that is ready takes this many bytes without blocking.
const PART: usize = 4096;

/// An open stream, and what its reader has not read yet. A run does not wait for its reader: limits
/// and signals work also if no one reads.
#[derive(Debug)]
pub struct Writer {
    file: File,
    pending: Vec<u8>,
    /// Writing to a regular file does not block, so a line is written with one call: it is there as a
    /// whole, or not at all.
    regular: bool,
}

impl Writer {
    /// Opens `FILE` or `fd:N`.
    pub fn open(target: &str) -> io::Result<Self> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        let Some(number) = target.strip_prefix("fd:") else {
            return Ok(Self::new(OpenOptions::new().append(true).create(true).open(target)?));
        };
        let number: i32 = number.parse().map_err(|_| invalid("`fd:` needs a number".into()))?;
        if !std::path::Path::new("/proc/self/fd").join(number.to_string()).exists() {
            return Err(invalid(format!("descriptor {number} is not open")));
        }
        Ok(Self::new(File::from(duplicate(number)?)))
    }

    /// Writes to a file, a pipe or a socket.
    pub fn new(file: File) -> Self {
        let regular = file.metadata().is_ok_and(|file| file.is_file());
        Self { file, pending: Vec::new(), regular }
    }

    /// Writes one value with its time as a line. After an error nothing more should be written.
    pub fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        let time = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
        let mut line = serde_json::Map::new();
        line.insert("time".into(), time.into());
        if let serde_json::Value::Object(fields) = serde_json::to_value(value)? {
            line.extend(fields);
        }
        self.pending.extend(serde_json::to_vec(&line)?);
        self.pending.push(b'\n');
        self.flush(Timespec::default())?;
        if self.pending.len() > MAX_PENDING {
            self.pending.clear();
            return Err(io::Error::other("no one reads them"));
        }
        Ok(())
    }

    /// Gives a slow reader time for the rest.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush(PATIENCE)?;
        if self.pending.is_empty() { Ok(()) } else { Err(io::Error::other("no one reads them")) }
    }

    /// Writes what can be written without blocking. Waits at most `patience` for room.
    fn flush(&mut self, patience: Timespec) -> io::Result<()> {
        while !self.pending.is_empty() {
            let mut room = [PollFd::new(&self.file, PollFlags::OUT)];
            if rustix::event::poll(&mut room, Some(&patience))? == 0 {
                return Ok(());
            }
            let most = if self.regular { self.pending.len() } else { PART };
            let part = self.pending.get(..most).unwrap_or(&self.pending);
            let written = match self.file.write(part) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                written => written?,
            };
            self.pending.drain(..written);
        }
        Ok(())
    }
}

/// A copy of a descriptor that the caller of this process left open.
fn duplicate(number: i32) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    match OpenOptions::new().append(true).open(&path) {
        Ok(file) => Ok(file.into()),
        // Sockets cannot be opened by name.
        Err(_) => sandbox::borrow_descriptor(number, |fd: BorrowedFd<'_>| fd.try_clone_to_owned()),
    }
}
