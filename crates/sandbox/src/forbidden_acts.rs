//! Forbidden acts, tried for real by the calling process. None of them changes anything if it
//! succeeds.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What to try the acts on. All of it belongs to the caller.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Targets {
    /// A file outside of what is allowed.
    pub file: PathBuf,
    /// A directory outside of what is allowed.
    pub directory: PathBuf,
    /// A port on the host's loopback.
    pub port: u16,
    /// A socket outside of what is allowed.
    pub socket: PathBuf,
    /// An abstract socket.
    pub abstract_socket: String,
    /// A process outside.
    pub pid: u32,
    /// An environment variable that must not be inherited.
    pub variable: String,
    /// A descriptor that was left open.
    pub descriptor: i32,
}

/// A forbidden act and how it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// What was tried.
    pub name: String,
    /// Whether it was denied.
    pub contained: bool,
    /// The error, or what succeeded.
    pub detail: String,
}

/// Tries everything.
pub fn try_all(targets: &Targets) -> Vec<Act> {
    let Targets { file, directory, socket, pid, .. } = targets;
    let proc_file = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
    let mut acts = vec![
        act("read a file outside", std::fs::File::open(file)),
        act("write a file outside", std::fs::OpenOptions::new().append(true).open(file)),
        act("list a directory outside", list(directory)),
        act("connect to the host's loopback", tcp(targets.port)),
        act("connect to a socket outside", UnixStream::connect(socket)),
        act("connect to an abstract socket of the host", abstract_socket(&targets.abstract_socket)),
        act("see a process of the host", std::fs::metadata(proc_file("stat"))),
        act("read another process's environment", std::fs::read(proc_file("environ"))),
        act("signal a process of the host", signal(*pid)),
        act("use a descriptor that was left open", descriptor(targets.descriptor)),
        act(
            "see a variable that was not passed",
            std::env::var(&targets.variable).map_err(|_| io::Error::from(io::ErrorKind::NotFound)),
        ),
        act(
            "write a kernel setting",
            std::fs::OpenOptions::new().write(true).open("/proc/sys/kernel/core_pattern"),
        ),
    ];
    acts.extend(crate::sys::forbidden_calls().into_iter().map(|(name, done)| act(name, done)));
    acts.push(status("hold a capability", "CapEff", |value| value.trim_matches('0').is_empty()));
    acts.push(status("gain privileges by running a program", "NoNewPrivs", |value| value == "1"));
    acts.push(status("make calls that no filter sees", "Seccomp", |value| value == "2"));
    acts
}

fn act<T>(name: &str, done: io::Result<T>) -> Act {
    match done {
        Ok(_) => Act { name: name.into(), contained: false, detail: "it succeeded".into() },
        Err(error) => Act { name: name.into(), contained: true, detail: error.to_string() },
    }
}

/// A field of `/proc/self/status`.
fn status(name: &str, field: &str, good: impl Fn(&str) -> bool) -> Act {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let value = value.unwrap_or_default().trim();
    Act { name: name.into(), contained: good(value), detail: format!("{field}: {value}") }
}

/// Opening a directory shows nothing yet; only reading an entry does.
fn list(directory: &std::path::Path) -> io::Result<std::fs::DirEntry> {
    std::fs::read_dir(directory)?.next().unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
}

fn tcp(port: u16) -> io::Result<()> {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into();
    TcpStream::connect_timeout(&address, Duration::from_secs(5)).map(drop)
}

fn abstract_socket(name: &str) -> io::Result<()> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?).map(drop)
}

fn signal(pid: u32) -> io::Result<()> {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed());
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::test_kill_process(pid)?)
}

fn descriptor(number: i32) -> io::Result<()> {
    crate::borrow_descriptor(number, |fd| fd.try_clone_to_owned()).map(drop)
}
