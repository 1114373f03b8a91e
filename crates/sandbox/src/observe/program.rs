//! [`Program`]: the process behind an attempt.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

/// A process inside, as it was while its call waited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its process ID inside the run.
    pub pid: u32,
    /// The file it executes, where that is known.
    pub path: Option<PathBuf>,
    /// Its command line.
    pub argv: Vec<String>,
}

/// How much of a command line is kept.
const MOST_BYTES: usize = 4096;

impl Program {
    /// Looks a process up in a `/proc`.
    pub(crate) fn look_up(view: BorrowedFd<'_>, pid: u32) -> Self {
        let path = rustix::fs::readlinkat(view, format!("{pid}/exe"), Vec::new()).ok();
        let path = path.map(|path| PathBuf::from(path.to_string_lossy().into_owned()));
        Self { pid, path, argv: command_line(view, pid).unwrap_or_default() }
    }

    /// The same in the `/proc` of this process, where processes of the run have other IDs.
    pub(crate) fn look_up_here(pid: u32) -> Self {
        let view = rustix::fs::open("/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let Ok(view) = view else { return Self { pid, ..Self::default() } };
        let mut program = Self::look_up(view.as_fd(), pid);
        let status = read_text(view.as_fd(), &format!("{pid}/status")).unwrap_or_default();
        program.pid = innermost(&status, "NSpid:").unwrap_or(pid);
        program
    }
}

/// The ID of a process in its innermost PID namespace, from a line of its status.
pub(crate) fn innermost(status: &str, name: &str) -> Option<u32> {
    let numbers = status.lines().find_map(|line| line.strip_prefix(name))?;
    numbers.split_whitespace().last()?.parse().ok()
}

pub(crate) fn read_text(view: BorrowedFd<'_>, path: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(view, path, flags, Mode::empty()).ok()?;
    std::io::read_to_string(std::fs::File::from(file)).ok()
}

fn command_line(view: BorrowedFd<'_>, pid: u32) -> Option<Vec<String>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(view, format!("{pid}/cmdline"), flags, Mode::empty()).ok()?;
    let mut bytes = vec![0; MOST_BYTES];
    let read = rustix::io::read(&file, &mut bytes[..]).ok()?;
    bytes.truncate(read);
    // A process that sets its title leaves the rest of the buffer empty.
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let words = bytes.get(..end).unwrap_or_default().split(|byte| *byte == 0);
    Some(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// Whether every process in a `/proc` is dead, or has been killed and waits for a call to end.
pub(crate) fn all_dying(view: BorrowedFd<'_>) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = rustix::fs::openat(view, ".", flags, Mode::empty()) else { return true };
    let Ok(entries) = rustix::fs::Dir::new(dir) else { return true };
    entries.flatten().all(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        // The first process waits for the others.
        name == "1" || !name.bytes().all(|byte| byte.is_ascii_digit()) || is_dying(view, &name)
    })
}

fn is_dying(view: BorrowedFd<'_>, pid: &str) -> bool {
    const KILL: u64 = 1 << 8;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let path = format!("{pid}/status");
    let Ok(file) = rustix::fs::openat(view, path, flags, Mode::empty()) else { return true };
    let mut bytes = vec![0; MOST_BYTES];
    let Ok(read) = rustix::io::read(&file, &mut bytes[..]) else { return true };
    let text = String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()).into_owned();
    text.lines().any(|line| match line.split_once(':') {
        Some(("State", state)) => matches!(state.trim().chars().next(), Some('Z' | 'X')),
        Some(("SigPnd" | "ShdPnd", signals)) => {
            u64::from_str_radix(signals.trim(), 16).is_ok_and(|signals| signals & KILL != 0)
        }
        _ => false,
    })
}
