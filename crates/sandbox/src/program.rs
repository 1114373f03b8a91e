//! [`Program`]: who it was.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use serde::Serialize;

/// A process inside, as it was while its call waited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Its number, as the run counts.
    pub pid: u32,
    /// The file it runs, where that can be told.
    pub path: Option<PathBuf>,
    /// Its command line.
    pub argv: Vec<String>,
}

/// As much of a command line as is kept.
const MOST_BYTES: usize = 4096;

impl Program {
    /// Looks a process up in a view of processes.
    pub(crate) fn look_up(view: BorrowedFd<'_>, pid: u32) -> Self {
        let path = rustix::fs::readlinkat(view, format!("{pid}/exe"), Vec::new()).ok();
        let path = path.map(|path| PathBuf::from(path.to_string_lossy().into_owned()));
        Self { pid, path, argv: command_line(view, pid).unwrap_or_default() }
    }

    /// The same in the view that this process has, where a process of the run has another number.
    pub(crate) fn look_up_here(pid: u32) -> Self {
        let view = rustix::fs::open("/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let Ok(view) = view else { return Self { pid, ..Self::default() } };
        let mut program = Self::look_up(view.as_fd(), pid);
        program.pid = number_inside(view.as_fd(), pid).unwrap_or(pid);
        program
    }
}

/// The number of a process as the innermost namespace that it is in counts.
fn number_inside(view: BorrowedFd<'_>, pid: u32) -> Option<u32> {
    let status = read_text(view, &format!("{pid}/status"))?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// The program that holds an end of a connection inside a run.
pub(crate) fn owner(view: BorrowedFd<'_>, end: SocketAddr) -> Option<Program> {
    let inode = ["tcp", "udp", "tcp6", "udp6"].iter().find_map(|table| {
        let table = read_text(view, &format!("1/net/{table}"))?;
        table.lines().skip(1).find_map(|line| holder(line, end))
    })?;
    let link = format!("socket:[{inode}]");
    processes(view)
        .into_iter()
        .find(|pid| holds(view, pid, &link))
        .map(|pid| Program::look_up(view, pid.parse().unwrap_or_default()))
}

/// The number of the socket in a line of the kernel's table, if its own end is this one.
fn holder(line: &str, end: SocketAddr) -> Option<u64> {
    let mut fields = line.split_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    if u16::from_str_radix(port, 16) != Ok(end.port()) {
        return None;
    }
    let text = |bytes: &[u8]| {
        let words =
            bytes.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap_or_default()));
        words.map(|word| format!("{word:08X}")).collect::<String>()
    };
    let same = match end.ip() {
        IpAddr::V4(ip) => {
            address == text(&ip.octets()) || address == text(&ip.to_ipv6_mapped().octets())
        }
        IpAddr::V6(ip) => address == text(&ip.octets()),
    };
    // Clients of the name service need not be bound to an address.
    let unbound = address.bytes().all(|byte| byte == b'0');
    (same || unbound).then(|| fields.nth(7)?.parse().ok()).flatten()
}

fn processes(view: BorrowedFd<'_>) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = rustix::fs::openat(view, ".", flags, Mode::empty()) else { return Vec::new() };
    let Ok(entries) = rustix::fs::Dir::new(dir) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

fn holds(view: BorrowedFd<'_>, pid: &str, link: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = format!("{pid}/fd");
    let Ok(dir) = rustix::fs::openat(view, path, flags, Mode::empty()) else { return false };
    let Ok(entries) = rustix::fs::Dir::read_from(&dir) else { return false };
    entries.flatten().any(|entry| {
        let target = rustix::fs::readlinkat(&dir, entry.file_name(), Vec::new());
        target.is_ok_and(|target| target.to_bytes() == link.as_bytes())
    })
}

fn read_text(view: BorrowedFd<'_>, path: &str) -> Option<String> {
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
    // A process that gives itself a title leaves the rest of the room empty.
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let words = bytes.get(..end).unwrap_or_default().split(|byte| *byte == 0);
    Some(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// Whether every process in a view is dead, or has been killed and waits for a call to end.
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
