//! [`Writer`]: events as JSON lines, for a reader that may be slow or gone.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use serde::Serialize;

use crate::events::{Class, Event};

/// How long a reader may take at the end of a run to read what is left.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether someone wants this process to end meanwhile.
const STEP: Duration = Duration::from_millis(50);
/// How many bytes are kept for a reader that does not read.
const MAX_PENDING: usize = 1 << 20;
/// How many more are kept of what must not be lost.
const RESERVE: usize = 1 << 20;
/// A pipe that is ready takes this many bytes without blocking.
const PART: usize = 4096;

/// An open stream, and what its reader has not read yet. A run does not wait for its reader: limits
/// and signals work also if no one reads.
#[derive(Debug)]
pub struct Writer {
    file: File,
    pending: Vec<u8>,
    /// How many lines were lost because there was no room.
    lost: u64,
    /// Whether it was opened by its name, and not by the caller.
    named: bool,
    /// How long a regular file is if nobody else writes to it.
    length: u64,
    /// Whether someone else did, or replaced it.
    changed: bool,
    /// Writing to a regular file does not block, so a line is written with one call: it is there as a
    /// whole, or not at all.
    regular: bool,
}

impl Writer {
    /// Opens `FILE` or `fd:N`.
    pub fn open(target: &str) -> io::Result<Self> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        let Some(number) = target.strip_prefix("fd:") else {
            return Ok(Self { named: true, ..Self::new(open(Path::new(target))?) });
        };
        let number: i32 = number.parse().map_err(|_| invalid("`fd:` needs a number".into()))?;
        if !Path::new("/proc/self/fd").join(number.to_string()).exists() {
            return Err(invalid(format!("descriptor {number} is not open")));
        }
        Ok(Self::new(File::from(duplicate(number)?)))
    }

    /// Writes to a file, a pipe or a socket.
    pub fn new(file: File) -> Self {
        let (regular, length) =
            file.metadata().map_or((false, 0), |file| (file.is_file(), file.len()));
        Self { file, pending: Vec::new(), lost: 0, named: false, length, changed: false, regular }
    }

    /// Writes one value with its time as a line. If the reader does not read, it may be lost. After
    /// an error nothing more should be written.
    pub fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.write_within(value, MAX_PENDING)
    }

    /// Writes an event. What a run stopped for, and what is known after it, has room left for it.
    pub fn write_event(&mut self, event: &Event) -> io::Result<()> {
        let important = match event {
            Event::Violation { violation, .. } => violation.class == Class::Stop,
            Event::Connection { .. } => false,
            _ => true,
        };
        self.write_within(event, if important { MAX_PENDING + RESERVE } else { MAX_PENDING })
    }

    /// The last line, which must not be lost.
    pub(crate) fn write_last(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.write_within(value, usize::MAX)
    }

    fn write_within(&mut self, value: &impl Serialize, most: usize) -> io::Result<()> {
        let time = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
        let mut line = serde_json::Map::new();
        line.insert("time".into(), time.into());
        if let serde_json::Value::Object(fields) = serde_json::to_value(value)? {
            line.extend(fields);
        }
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        self.flush(Duration::ZERO)?;
        if !self.pending.is_empty() && self.pending.len() + line.len() > most {
            self.lost = self.lost.saturating_add(1);
            return Ok(());
        }
        self.pending.append(&mut line);
        self.flush(Duration::ZERO)
    }

    /// Whether anyone else wrote to the file since it was opened, or removed it: another run in the
    /// same directory can, if it began before the file existed.
    pub fn was_changed(&mut self) -> bool {
        self.notice_changes();
        self.changed
    }

    fn notice_changes(&mut self) {
        let same = |found: std::fs::Metadata| found.len() == self.length && found.nlink() == 1;
        self.changed |= self.named && self.regular && !self.file.metadata().is_ok_and(same);
    }

    /// Gives a slow reader time for the rest.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush(PATIENCE)?;
        match (self.pending.is_empty(), self.lost) {
            (false, _) => Err(io::Error::other("no one reads them")),
            (true, 0) => Ok(()),
            (true, lost) => {
                let text = format!("{lost} of them did not fit, because they were read too late");
                Err(io::Error::other(text))
            }
        }
    }

    /// Writes what can be written without blocking. Waits at most `patience` for room, and no longer
    /// once someone wants this process to end.
    fn flush(&mut self, patience: Duration) -> io::Result<()> {
        let mut since = Instant::now();
        while !self.pending.is_empty() {
            let mut room = [PollFd::new(&self.file, PollFlags::OUT)];
            let step = STEP.min(patience).as_nanos();
            let step = Timespec { tv_sec: 0, tv_nsec: i64::try_from(step).unwrap_or(0) };
            match rustix::event::poll(&mut room, Some(&step)) {
                Ok(0) | Err(rustix::io::Errno::INTR)
                    if since.elapsed() < patience && !sandbox::end_is_wanted() =>
                {
                    continue;
                }
                Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
                ready => ready?,
            };
            self.notice_changes();
            let most = if self.regular { self.pending.len() } else { PART };
            let part = self.pending.get(..most).unwrap_or(&self.pending);
            let written = match self.file.write(part) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                written => written?,
            };
            self.pending.drain(..written);
            if self.regular {
                self.length = self.file.metadata().map_or(0, |file| file.len());
            }
            since = Instant::now();
        }
        Ok(())
    }
}

/// Opens a file to append to. A link that an earlier run left there would make this process write
/// wherever it leads.
fn open(path: &Path) -> io::Result<File> {
    let own = ["/dev", "/proc"].iter().any(|place| path.starts_with(place));
    let flags = if own { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let opened = OpenOptions::new().append(true).create(true).custom_flags(flags).open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
            io::Error::new(error.kind(), "it is a symbolic link; name the file that it leads to")
        }
        _ => error,
    })
}

/// A copy of a descriptor that the caller of this process left open.
fn duplicate(number: i32) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    // A file description of our own, so that no write ever blocks and the caller's stays as it is.
    let ours = OFlags::NONBLOCK | OFlags::NOCTTY;
    let ours = i32::try_from(ours.bits()).unwrap_or(0);
    match OpenOptions::new().append(true).custom_flags(ours).open(&path) {
        Ok(file) => Ok(file.into()),
        // Sockets cannot be opened by name.
        Err(_) => sandbox::borrow_descriptor(number, |fd: BorrowedFd<'_>| fd.try_clone_to_owned()),
    }
}
