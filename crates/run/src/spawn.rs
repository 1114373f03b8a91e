//! [`spawn`]: a run in a supervisor process of its own, for programs with threads or many runs.
//!
//! Signal mask, CPU affinity, resource limits and the children that are waited for belong to a process,
//! so every run has one. It sends events and the report through a pipe as JSON lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};

use crate::events::Event;
use crate::execute::run_until;
use crate::report::Report;
use crate::request::{Error, Request};
use crate::writer::Writer;

/// A run that has been started.
///
/// Dropping the handle cancels the run and waits for its end.
#[derive(Debug)]
pub struct Handle {
    lines: BufReader<PipeReader>,
    /// A byte in it cancels the run. Closing it would not do: supervisors that are forked later
    /// inherit it.
    stop: PipeWriter,
    process: OwnedFd,
    outcome: Option<Result<Report, Error>>,
}

/// Cancels a run from another thread.
#[derive(Debug)]
pub struct Canceller(PipeWriter);

/// What the supervisor process sends.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Message {
    Report { report: Box<Report> },
    Error { error: Error },
    Event(Box<Event>),
}

/// Starts a run in a process of its own.
///
/// The process is forked without `exec`. A lock that another thread of this program holds at that moment
/// stays locked in it, so do not call this while other threads change the environment.
pub fn spawn(request: &Request) -> Result<Handle, Error> {
    // Another thread that forks meanwhile would keep these pipes open.
    static FORKING: Mutex<()> = Mutex::new(());
    let _alone = FORKING.lock().unwrap_or_else(PoisonError::into_inner);
    let (reader, writer) = io::pipe().map_err(Error::unavailable)?;
    let (stopped, stop) = io::pipe().map_err(Error::unavailable)?;
    let (process, _) =
        sandbox::fork_supervisor(|| supervise(request, OwnedFd::from(writer).into(), &stopped))
            .map_err(Error::unavailable)?;
    Ok(Handle { lines: BufReader::new(reader), stop, process, outcome: None })
}

/// Runs in the supervisor process, and reports through the pipe.
fn supervise(request: &Request, pipe: File, stopped: &PipeReader) -> u8 {
    let mut writer = Some(Writer::new(pipe));
    let mut sink = |event: &Event| send(&mut writer, |writer| writer.write_event(event));
    let outcome = run_until(request, &mut sink, Some(stopped.as_fd()));
    let exit = match &outcome {
        Ok(report) => report.exit,
        Err(error) => error.exit_code(),
    };
    let message = match outcome {
        Ok(report) => Message::Report { report: Box::new(report) },
        Err(error) => Message::Error { error },
    };
    send(&mut writer, |writer| writer.write_last(&message));
    if let Some(writer) = writer {
        let _ = writer.finish();
    }
    exit
}

/// A reader that is gone, or that never reads, loses the rest.
fn send(writer: &mut Option<Writer>, write: impl FnOnce(&mut Writer) -> io::Result<()>) {
    if writer.as_mut().is_some_and(|writer| write(writer).is_err()) {
        *writer = None;
    }
}

/// The events of the run; `None` after the last one.
impl Iterator for Handle {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while self.outcome.is_none() {
            let mut line = String::new();
            match self.lines.read_line(&mut line) {
                Ok(1..) => {}
                Ok(0) | Err(_) => {
                    let ended = "the supervisor process ended without a report";
                    self.outcome = Some(Err(Error::unavailable(ended)));
                    break;
                }
            }
            match serde_json::from_str(&line) {
                Ok(Message::Event(event)) => return Some(*event),
                Ok(Message::Report { report }) => self.outcome = Some(Ok(*report)),
                Ok(Message::Error { error }) => self.outcome = Some(Err(error)),
                Err(error) => {
                    let text = format!("cannot read the supervisor's message: {error}");
                    self.outcome = Some(Err(Error::unavailable(text)));
                }
            }
        }
        None
    }
}

impl Handle {
    /// Ends the run as soon as possible. Its report says that it was cancelled.
    pub fn stop(&mut self) {
        // A supervisor that is gone needs no word.
        let _ = self.stop.write_all(&[0]);
    }

    /// Lets another thread end the run: [`Canceller::stop`].
    pub fn canceller(&self) -> io::Result<Canceller> {
        self.stop.try_clone().map(Canceller)
    }

    /// Waits for the end. Events that were not taken are dropped.
    pub fn wait(mut self) -> Result<Report, Error> {
        while self.next().is_some() {}
        let unknown = || Err(Error::unavailable("the run has no report"));
        self.outcome.take().unwrap_or_else(unknown)
    }
}

impl Canceller {
    /// Ends the run as soon as possible.
    pub fn stop(mut self) -> io::Result<()> {
        self.0.write_all(&[0])
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
        // A supervisor with unread events waits for its reader.
        while self.next().is_some() {}
        // No process is left behind that no one waits for.
        while let Err(Errno::INTR) =
            waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED)
        {}
    }
}
