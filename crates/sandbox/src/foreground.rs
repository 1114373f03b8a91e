//! The terminal: the command has it while it runs, as a job of a shell would.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};

/// Who has the terminal.
#[derive(Debug, Default)]
pub(crate) struct Foreground {
    terminal: Option<OwnedFd>,
}

impl Foreground {
    /// Gives the terminal to the command's process group, if it is ours to give.
    pub(crate) fn give_to(&mut self, command: i32) {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
        let Ok(terminal) = rustix::fs::open("/dev/tty", flags, Mode::empty()) else { return };
        if rustix::termios::tcgetpgrp(&terminal) != Ok(rustix::process::getpgrp()) {
            return;
        }
        if let Some(group) = Pid::from_raw(command)
            && rustix::termios::tcsetpgrp(&terminal, group).is_ok()
        {
            self.terminal = Some(terminal);
        }
    }

    /// Takes the terminal back.
    pub(crate) fn take_back(&self) {
        if let Some(terminal) = &self.terminal {
            let _ = rustix::termios::tcsetpgrp(terminal, rustix::process::getpgrp());
        }
    }

    /// The command was stopped from the terminal: stop with it, and go on with it. Without a
    /// terminal there is nobody who waits for us to stop.
    pub(crate) fn suspend(&mut self, command: i32) -> bool {
        let Some(terminal) = &self.terminal else { return false };
        self.take_back();
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        // Somebody told us to go on: in the foreground, or in the background.
        let Some(group) = Pid::from_raw(command) else { return true };
        if rustix::termios::tcgetpgrp(terminal) == Ok(rustix::process::getpgrp()) {
            let _ = rustix::termios::tcsetpgrp(terminal, group);
        }
        let _ = rustix::process::kill_process_group(group, Signal::CONT);
        true
    }
}
