//! `ringwall run -- COMMAND`: arguments become a request, and a report becomes text.

mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use run::{ErrorKind, Event, Request, Writer};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::terminal::{self, plain};

pub(super) fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    let mut request = request(&args)?;
    if args.plan {
        let prepared = run::prepare(&request).map_err(|error| report::failure(&error))?;
        prepared.notices.iter().for_each(|notice| terminal::note(&plain(notice)));
        terminal::print(&report::plan(&prepared.plan, args.json));
        return Ok(ExitCode::SUCCESS);
    }
    let existed = request.events_file.as_ref().is_some_and(|file| file.exists());
    let mut events = Events::open(args.events.as_deref())?;
    let mut outcome = run::run(&request, &mut |event| events.take(event));
    if let Err(error) = &outcome
        && error.kind == ErrorKind::Untrusted
        && confirm_without(&error.problems)
    {
        request.ignore_untrusted = true;
        outcome = run::run(&request, &mut |event| events.take(event));
    }
    terminal::bound_waiting();
    events.finish();
    if outcome.is_err() {
        // A run that never began leaves no empty file.
        request.events_file.iter().filter(|_| !existed).for_each(|file| remove_if_empty(file));
    }
    let outcome = outcome.map_err(|error| report::failure(&error))?;
    report::print(&outcome);
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

/// Shows what the project asks for, and asks whether to run without it.
fn confirm_without(lines: &[String]) -> bool {
    let lines: String = lines.iter().map(|line| format!("  {}\n", plain(line))).collect();
    terminal::note(&format!(
        "the project's ringwall.toml asks for more than you allowed:\n{lines}"
    ));
    terminal::is_attended() && terminal::confirm("Run without these lines?")
}

/// The stream of `--events`, until its reader is gone.
#[derive(Default)]
struct Events {
    writer: Option<Writer>,
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

    fn take(&mut self, event: &Event) {
        if let Event::NetworkClosed { why, .. } = event {
            self.warnings.push(why.clone());
        }
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.write_event(event)) {
            self.writer = None;
            self.report_loss("events are lost from here on", &error);
        }
    }

    /// Writes the rest, and says what went wrong.
    fn finish(mut self) {
        if self.writer.as_mut().is_some_and(Writer::was_changed) {
            let text = "the events file was changed or replaced by another program meanwhile";
            self.warnings.push(text.into());
        }
        if let Some(Err(error)) = self.writer.take().map(Writer::finish) {
            self.report_loss("the last events are lost", &error);
        }
        self.warnings.iter().for_each(|warning| terminal::warning(warning));
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
