//! `ringwall run -- COMMAND`: arguments become a request, and a report becomes text.

mod live;
mod report;
mod screen;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use live::{Live, Shown};
use run::{ErrorKind, Event, Observer, Request, Writer};
use screen::Screen;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::terminal::{self, plain};

pub(super) fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    let mut request = request(&args)?;
    if args.plan {
        let prepared = run::prepare(&request).map_err(|error| report::failure(&error))?;
        prepared.notices.iter().for_each(|notice| terminal::note(&plain(notice)));
        terminal::print(&report::plan(&prepared, args.json));
        return Ok(ExitCode::SUCCESS);
    }
    let existed = request.events_file.as_ref().is_some_and(|file| file.exists());
    let mut events = Events::open(args.events.as_deref())?;
    events.live = request.interactive.then(Live::default);
    let screen = Screen::now();
    let mut outcome = run::run(&request, &mut events);
    if let Err(error) = &outcome
        && error.kind == ErrorKind::Untrusted
        && confirm_without(&error.problems)
    {
        request.ignore_untrusted = true;
        outcome = run::run(&request, &mut events);
    }
    if outcome.as_ref().is_ok_and(|report| report.end != run::Ending::Exited) {
        screen.leave_clean();
    }
    terminal::bound_waiting();
    let shown = events.finish();
    if outcome.is_err() {
        // A run that never began leaves no empty file.
        request.events_file.iter().filter(|_| !existed).for_each(|file| remove_if_empty(file));
    }
    let outcome = outcome.map_err(|error| report::failure(&error))?;
    report::print(&outcome, &shown);
    Ok(ExitCode::from(outcome.exit))
}

fn request(args: &RunArgs) -> Result<Request, Failure> {
    let agent = match &args.agent {
        Some(name) => Some(agents::find(name).ok_or_else(|| Failure::usage("unknown agent"))?),
        None => None,
    };
    let events_file = args.events.as_deref().filter(|target| !target.starts_with("fd:"));
    Ok(Request {
        command: args.command.clone(),
        agent,
        options: args.common.clone().into(),
        allow_read: args.allow_read.clone(),
        allow_write: args.allow_write.clone(),
        allow_unix: args.allow_unix.clone(),
        publish: args.publish.clone(),
        allow_domain: args.allow_domain.clone(),
        environment: args.env.iter().map(|typed| variable(typed)).collect(),
        on_violation: args.on_violation,
        interactive: terminal::is_attended() && live::is_typed_in(&args.command),
        accept_wide_workspace: args.yes,
        ignore_untrusted: false,
        learn: args.learn,
        fresh: args.fresh,
        mechanisms: sandbox::Requested {
            enforcement: args.enforcement,
            attribution: args.attribution,
        },
        events_file: events_file.map(PathBuf::from),
    })
}

/// A variable as it is typed: `NAME` or `NAME=VALUE`.
fn variable(typed: &OsStr) -> (OsString, Option<OsString>) {
    let bytes = typed.as_bytes();
    let Some(at) = bytes.iter().position(|byte| *byte == b'=') else {
        return (typed.to_owned(), None);
    };
    let (name, value) = bytes.split_at(at);
    let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    (text(name), Some(text(value.get(1..).unwrap_or_default())))
}

/// Shows what the project asks for, and asks whether to run without it.
fn confirm_without(lines: &[String]) -> bool {
    let lines: String = lines.iter().map(|line| format!("  {}\n", plain(line))).collect();
    terminal::note(&format!(
        "the project's ringwall.toml asks for more than you allowed:\n{lines}"
    ));
    terminal::is_attended() && terminal::confirm("Run without these lines?")
}

/// The stream of `--events`, until its reader is gone, and what is shown while the run goes on.
#[derive(Default)]
struct Events {
    writer: Option<Writer>,
    /// What a person at an interactive shell is told at once.
    live: Option<Live>,
    /// What went wrong meanwhile. The command has the terminal, and may have stopped it.
    warnings: Vec<String>,
}

impl Events {
    fn open(target: Option<&str>) -> Result<Self, Failure> {
        let opened = target.map(Writer::open).transpose();
        let target = target.unwrap_or_default();
        opened
            .map(|writer| Self { writer, ..Self::default() })
            .map_err(|error| Failure::usage(format!("--events {target}: {error}")))
    }
}

impl Observer for Events {
    fn event(&mut self, event: &Event) {
        self.live.iter_mut().for_each(|live| live.take(event));
        if let Event::NetworkClosed { why, .. } = event {
            self.warnings.push(why.clone());
        }
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.write_event(event)) {
            self.writer = None;
            self.report_loss("events are lost from here on", &error);
        }
    }

    fn between_events(&mut self) -> Option<Duration> {
        self.live.as_mut().and_then(Live::show)
    }
}

impl Events {
    /// Writes the rest, and says what went wrong. Returns what was shown already.
    fn finish(mut self) -> Shown {
        if self.writer.as_mut().is_some_and(Writer::was_changed) {
            let text = "the events file was changed or replaced by another program meanwhile";
            self.warnings.push(text.into());
        }
        if let Some(Err(error)) = self.writer.take().map(Writer::finish) {
            self.report_loss("the last events are lost", &error);
        }
        self.warnings.iter().for_each(|warning| terminal::warning(warning));
        self.live.map(Live::shown).unwrap_or_default()
    }

    /// A reader that went away wants no more events.
    fn report_loss(&mut self, what: &str, error: &std::io::Error) {
        if error.kind() != std::io::ErrorKind::BrokenPipe {
            self.warnings.push(format!("{what}: {error}"));
        }
    }
}

fn remove_if_empty(file: &Path) {
    if file.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == 0) {
        let _ = std::fs::remove_file(file);
    }
}
