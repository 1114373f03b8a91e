//! [`Live`]: in a shell in which a person types, what is denied is said at once.
//!
//! Only while the terminal is in line mode: an editor or a pager has the whole screen, and would be
//! painted over. Nothing here waits for the terminal.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use run::{Class, Event, Violation};
use rustix::fs::OFlags;
use rustix::process::Pid;
use rustix::termios::LocalModes;

use super::report;

/// What was shown: the operation and the path of each violation.
pub(super) type Shown = BTreeSet<(&'static str, String)>;

/// How soon to look again whether the terminal is in line mode.
const AGAIN: Duration = Duration::from_millis(50);
/// Messages that are kept until then; the end of the run shows the rest.
const MOST_KEPT: usize = 20;

/// Shells in which people type.
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "tcsh", "zsh"];

/// Whether a command is a shell without a script and without commands of its own.
pub(super) fn is_typed_in(command: &[OsString]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    let name = Path::new(program).file_name().unwrap_or_default();
    if !SHELLS.iter().any(|shell| name == *shell) {
        return false;
    }
    let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy());
    while let Some(argument) = arguments.next() {
        match &*argument {
            // They name a file with settings, or an option.
            "--rcfile" | "--init-file" | "-o" | "+o" => drop(arguments.next()),
            long if long.starts_with("--") => {
                if long.starts_with("--command") {
                    return false;
                }
            }
            short if short.len() > 1 && short.starts_with(['-', '+']) => {
                if short.contains('c') {
                    return false;
                }
            }
            _ => return false,
        }
    }
    true
}

/// Messages for the terminal of a run that goes on.
#[derive(Default)]
pub(super) struct Live {
    waiting: VecDeque<Violation>,
    /// The job that had the screen when a message had to wait. It sets line mode some time before it
    /// leaves the screen, so another job must have the terminal first.
    holder: Option<Pid>,
    shown: Shown,
}

impl Live {
    pub(super) fn take(&mut self, event: &Event) {
        if let Event::Violation { violation, .. } = event
            && violation.class == Class::Deny
            && self.waiting.len() < MOST_KEPT
        {
            self.waiting.push_back(violation.clone());
            self.show();
        }
    }

    /// Shows what is waiting, if the terminal takes it. Returns when to try again.
    pub(super) fn show(&mut self) -> Option<Duration> {
        while let Some(violation) = self.waiting.front() {
            let text = report::denial(violation);
            let Some(terminal) = terminal() else { return Some(AGAIN) };
            let holder = rustix::termios::tcgetpgrp(&terminal).ok();
            let settled = self.holder.is_none() || holder != self.holder;
            if !settled || !is_in_line_mode(&terminal) || !print(terminal, &text) {
                self.holder = self.holder.filter(|_| !settled).or(holder);
                return Some(AGAIN);
            }
            self.shown.insert(report::key(violation));
            self.waiting.pop_front();
        }
        self.holder = None;
        None
    }

    pub(super) fn shown(self) -> Shown {
        self.shown
    }
}

/// The terminal of this process.
fn terminal() -> Option<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut options = File::options();
    options.read(true).write(true).custom_flags(flags.bits().cast_signed());
    options.open("/dev/tty").ok()
}

fn is_in_line_mode(terminal: &File) -> bool {
    let modes = rustix::termios::tcgetattr(terminal).map(|found| found.local_modes);
    modes.is_ok_and(|modes| modes.contains(LocalModes::ICANON))
}

/// Prints a text if the terminal takes it. One of which a part was taken is not said twice.
fn print(mut terminal: File, text: &str) -> bool {
    terminal.write(text.as_bytes()).is_ok_and(|written| written > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_without_a_script_is_typed_in() {
        let is = |line: &str| is_typed_in(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in
            ["bash", "/bin/zsh -l", "bash --norc -i", "bash --rcfile x -i", "sh -eu", "fish"]
        {
            assert!(is(line), "{line}");
        }
        for line in ["bash -c ls", "sh -ec ls", "bash x.sh", "fish --command=ls", "vim", "bash -"] {
            assert!(!is(line), "{line}");
        }
    }
}
