//! Sockets of programs on the host, among the files that a run can see.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use facts::{Step, Visit};
use model::AbsPath;
use plan::{Entry, Grant};
use rustix::fs::{Mode, OFlags};

/// What rules grant, with every socket in a directory that is granted.
pub(crate) fn granted(grants: Vec<Grant>) -> Vec<Grant> {
    let mut sockets = Vec::new();
    for directory in grants.iter().filter(|grant| grant.entry == Some(Entry::Directory)) {
        facts::walk(&directory.path, &mut |visit| {
            if let Visit::Entry(path, kind) = visit
                && kind.is_socket()
            {
                let (path, entry) = (path.clone(), Some(Entry::File));
                sockets.push(Grant { path, entry, directory: false, ..directory.clone() });
            }
            Step::Into
        });
    }
    grants.into_iter().chain(sockets).collect()
}

/// The sockets below some directories, as far as the kernel lists them: by the path that they were
/// bound to, of the programs in this network namespace. Not every directory is searched.
pub(crate) fn bound_in(directories: &[&AbsPath]) -> Vec<AbsPath> {
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n').skip(1);
    let names = lines.filter_map(|line| {
        line.iter().position(|byte| *byte == b'/').map(|at| line.split_at(at).1)
    });
    let inside = |path: &AbsPath| directories.iter().any(|directory| path.is_within(directory));
    let mut paths: Vec<_> = names
        .filter_map(|name| AbsPath::lexical(Path::new(OsStr::from_bytes(name))).ok())
        .filter(inside)
        .collect();
    // Every connection to a server has the server's path.
    paths.sort();
    paths.dedup();
    paths
}

/// Whether there is a socket that a program serves and no rule grants. What is left of a server that
/// has ended is only a file, and the run may replace it.
pub(crate) fn is_served(path: &AbsPath, grants: &[Grant]) -> bool {
    !grants.iter().any(|grant| path.is_within(&grant.path)) && is_alive(path.as_path())
}

/// Tries to send to it without sending anything: a socket for streams does not take datagrams, and says
/// so, and one for datagrams does not notice who could send to it.
fn is_alive(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else { return false };
    let kind =
        rustix::fs::fstat(&file).map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode));
    if kind != Ok(rustix::fs::FileType::Socket) {
        return false;
    }
    // An address has less room than a path.
    let by_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    let tried = UnixDatagram::unbound().and_then(|socket| socket.connect(by_descriptor));
    tried.err().is_none_or(|error| error.kind() != ErrorKind::ConnectionRefused)
}
