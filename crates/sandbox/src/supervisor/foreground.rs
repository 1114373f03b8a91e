//! The terminal: the command has it while it runs, as a job of a shell would.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use rustix::termios::{Action, OptionalActions, Termios};

use crate::sys;

/// Who has the terminal.
#[derive(Debug, Default)]
pub(crate) struct Foreground {
    terminal: Option<OwnedFd>,
    /// How the terminal was set before the command had it.
    settings: Option<Termios>,
    /// Whether this process gave the terminal to the command.
    given: bool,
}

impl Foreground {
    /// Gives the terminal to the command's process group, if this process group has it.
    pub(crate) fn give_to(&mut self, command: i32) {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
        let Ok(terminal) = rustix::fs::open("/dev/tty", flags, Mode::empty()) else { return };
        self.settings = rustix::termios::tcgetattr(&terminal).ok();
        self.terminal = Some(terminal);
        self.give(command);
    }

    /// Takes the terminal back.
    pub(crate) fn take_back(&mut self) {
        if let Some(terminal) = self.terminal.as_ref().filter(|_| self.given) {
            let _ = rustix::termios::tcsetpgrp(terminal, rustix::process::getpgrp());
            self.given = false;
            // The command may have stopped all output.
            let _ = rustix::termios::tcflow(terminal, Action::OOn);
        }
    }

    /// Takes the terminal back from a command that could not restore its settings.
    pub(crate) fn take_back_as_it_was(&mut self) {
        let given = self.given;
        self.take_back();
        if let (Some(terminal), Some(settings)) = (&self.terminal, &self.settings)
            && given
        {
            // Waiting until all output is shown could take forever: the run can stop it.
            let _ = rustix::termios::tcsetattr(terminal, OptionalActions::Now, settings);
        }
    }

    /// The command was stopped: stops this job, and continues the command with it. Without a
    /// terminal no shell waits for this process to stop. Where no shell could continue it, the kernel
    /// does not stop it, and the command goes on at once. After `left` the run is over anyway.
    pub(crate) fn suspend(&mut self, command: i32, signal: i32, left: Option<Duration>) -> bool {
        if self.terminal.is_none() {
            return false;
        }
        // A command that was started in the background asks for a terminal that this process group
        // has by now.
        let asks = [libc::SIGTTIN, libc::SIGTTOU].contains(&signal);
        if !(asks && self.is_ours()) {
            let stops = self.given || asks;
            self.take_back();
            let _timer = left.map(sys::continue_after);
            // The whole job, as the terminal would: a script that waits for this process has to be
            // stopped with it, or its shell never learns of it. SIGSTOP would also stop a job that
            // no shell can continue.
            if stops {
                let _ = rustix::process::kill_current_process_group(Signal::TSTP);
            }
        }
        // This process was continued, in the foreground or in the background.
        self.give(command);
        if let Some(group) = Pid::from_raw(command) {
            let _ = rustix::process::kill_process_group(group, Signal::CONT);
        }
        true
    }

    fn give(&mut self, command: i32) {
        if let (Some(terminal), Some(group)) = (&self.terminal, Pid::from_raw(command))
            && self.is_ours()
        {
            self.given = rustix::termios::tcsetpgrp(terminal, group).is_ok();
        }
    }

    fn is_ours(&self) -> bool {
        let holder = self.terminal.as_ref().and_then(|it| rustix::termios::tcgetpgrp(it).ok());
        holder == Some(rustix::process::getpgrp())
    }
}
