//! What happens in a run, as JSON lines for whoever started it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, Timespec};
use sandbox::{Got, Operation, Program, Usage};
use serde::Serialize;

use crate::terminal::error_line;

/// One event. Fields are only ever added.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    /// The wall stands, was tried from inside, and the command is about to run.
    Started {
        run: &'a str,
        ringwall: &'static str,
        command: Vec<String>,
        wall: &'a Got,
        self_test: &'a [(String, bool)],
        missing: &'a [String],
        plan: &'a model::Plan,
        violation_action: &'static str,
        config: &'a str,
    },
    /// Something was refused.
    Violation {
        run: &'a str,
        #[serde(flatten)]
        violation: &'a Violation,
        wall: Wall,
    },
    /// A connection to a granted host came to its end.
    Connection {
        run: &'a str,
        host: &'a str,
        port: u16,
        address: String,
        route: String,
        sent: u64,
        received: u64,
        seconds: f64,
        program: Program,
    },
    /// The proxy failed: nothing of the network can be reached any more.
    NetworkClosed { run: &'a str, why: &'a str },
    /// A limit was reached.
    Limit { run: &'a str, limit: &'a str },
    /// A protected name appeared although nothing may make one.
    Tampering { run: &'a str, path: String, moved_to: Option<String>, what: String },
    /// The run is over and nothing of it is left.
    Stopped {
        run: &'a str,
        exit: u8,
        end: &'a str,
        signal: Option<i32>,
        usage: Option<Usage>,
        limited_by: &'a str,
        violations: Counts,
        /// In a linked worktree: whether all other references are as they were.
        #[serde(skip_serializing_if = "Option::is_none")]
        other_references_unchanged: Option<bool>,
        seconds: f64,
    },
    /// There was no run.
    Refused { run: &'a str, exit: u8, error: String, lacking: &'a [sandbox::Lack] },
}

/// What holds the wall and what attributes, in every violation.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Wall {
    pub(crate) enforcement: sandbox::Enforcement,
    pub(crate) attribution: sandbox::Attribution,
}

/// An attempt that was refused.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Violation {
    pub(crate) class: Class,
    pub(crate) operation: Operation,
    /// The path, or the address.
    pub(crate) path: String,
    pub(crate) program: Program,
    /// The rule that refused, and where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<model::Origin>,
    /// What was refused and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// What would allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

/// How much an attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Class {
    /// Hidden, and noted.
    Probe,
    /// Refused, and the run went on.
    Deny,
    /// Refused, and the run ended.
    Stop,
}

/// How many of each class there were.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) probe: u64,
    pub(crate) deny: u64,
    pub(crate) stop: u64,
}

/// Where events go.
pub(crate) enum Events {
    Nowhere,
    Stream(Stream),
}

/// How long a reader may take at the end of a run to read what is left.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// What is kept for a reader that does not read.
const MOST_PENDING: usize = 16 << 20;
/// A pipe that has room takes as much without waiting.
const PART: usize = 4096;

impl Events {
    /// Opens `FILE` or `fd:N`.
    pub(crate) fn open(target: Option<&str>) -> io::Result<Self> {
        let Some(target) = target else { return Ok(Self::Nowhere) };
        let file = if let Some(number) = target.strip_prefix("fd:") {
            let number: i32 = number
                .parse()
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "`fd:` needs a number"))?;
            let known = std::path::Path::new("/proc/self/fd").join(number.to_string());
            if !known.exists() {
                let text = format!("descriptor {number} is not open");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            File::from(duplicate(number)?)
        } else {
            OpenOptions::new().append(true).create(true).open(target)?
        };
        Ok(Self::Stream(Stream { file, pending: Vec::new() }))
    }

    /// Writes one event with its time.
    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        let Self::Stream(stream) = self else { return };
        let time = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
        let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(event) else { return };
        let mut line = serde_json::Map::new();
        line.insert("time".into(), time.into());
        line.extend(fields);
        stream.pending.extend(serde_json::to_vec(&line).unwrap_or_default());
        stream.pending.push(b'\n');
        let mut flushed = stream.flush(Timespec::default());
        if stream.pending.len() > MOST_PENDING {
            flushed = stream.give_up(io::Error::other("nobody reads them"));
        }
        if flushed.is_err() {
            *self = Self::Nowhere;
        }
    }
}

/// An open stream, and what its reader has not taken yet. A run does not wait for whoever watches
/// it: its limits hold, and it can be ended, also if nobody reads.
pub(crate) struct Stream {
    file: File,
    pending: Vec<u8>,
}

impl Stream {
    /// Writes what can be written, as long as there is room within some time. What cannot be written
    /// at all is given up.
    fn flush(&mut self, patience: Timespec) -> io::Result<()> {
        self.write(patience).or_else(|error| self.give_up(error))
    }

    fn give_up(&mut self, error: io::Error) -> io::Result<()> {
        self.pending.clear();
        // A reader that went away wants no more.
        if error.kind() != io::ErrorKind::BrokenPipe {
            error_line(&format!("ringwall: events are lost from here on: {error}"));
        }
        Err(error)
    }

    fn write(&mut self, patience: Timespec) -> io::Result<()> {
        while !self.pending.is_empty() {
            let mut room = [PollFd::new(&self.file, PollFlags::OUT)];
            if rustix::event::poll(&mut room, Some(&patience))? == 0 {
                return Ok(());
            }
            let part = self.pending.get(..PART).unwrap_or(&self.pending);
            let written = self.file.write(part)?;
            self.pending.drain(..written);
        }
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let flushed = self.flush(PATIENCE);
        if flushed.is_ok() && !self.pending.is_empty() {
            error_line("ringwall: the last events are lost: nobody reads them");
        }
    }
}

/// A copy of a descriptor that the caller of this process left open for us.
fn duplicate(number: i32) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    match OpenOptions::new().append(true).open(&path) {
        Ok(file) => Ok(file.into()),
        // Sockets cannot be opened by name.
        Err(_) => sandbox::borrow_descriptor(number, |fd: BorrowedFd<'_>| fd.try_clone_to_owned()),
    }
}
