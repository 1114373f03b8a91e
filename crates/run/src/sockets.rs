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
        let found = sockets_below(&directory.path).into_iter();
        sockets.extend(found.map(|path| Grant {
            path,
            entry: Some(Entry::File),
            directory: false,
            ..directory.clone()
        }));
    }
    grants.into_iter().chain(sockets).collect()
}

/// The sockets below some directories that are not searched for anything else. The kernel lists the
/// paths that sockets of this network namespace were bound to; only if one of them was bound to a
/// relative path, which can be anywhere, the directories that are granted are searched.
pub(crate) fn bound_in(directories: &[&AbsPath], granted: &[Grant]) -> Vec<AbsPath> {
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    let lines = || table.split(|byte| *byte == b'\n').skip(1);
    let names = lines().filter_map(name);
    let relative = names.clone().any(|name| !matches!(name.first(), Some(b'/' | b'@')));
    let inside = |path: &AbsPath| directories.iter().any(|directory| path.is_within(directory));
    let mut paths: Vec<_> = names
        .filter(|name| name.starts_with(b"/"))
        .filter_map(|name| AbsPath::lexical(Path::new(OsStr::from_bytes(name))).ok())
        .filter(inside)
        .collect();
    if relative {
        let searched = granted.iter().filter(|grant| grant.entry == Some(Entry::Directory));
        searched.for_each(|grant| paths.extend(sockets_below(&grant.path)));
    }
    // Every connection to a server has the server's path.
    paths.sort();
    paths.dedup();
    paths
}

/// The name in a line of the table, which is its eighth field. Most sockets have none.
fn name(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line;
    for _ in 0..7 {
        let end = rest.iter().position(|byte| *byte == b' ')?;
        let blanks = rest.get(end..)?.iter().take_while(|byte| **byte == b' ').count();
        rest = rest.get(end + blanks..)?;
    }
    (!rest.is_empty()).then_some(rest)
}

fn sockets_below(directory: &AbsPath) -> Vec<AbsPath> {
    let mut sockets = Vec::new();
    facts::walk(directory, &mut |visit| {
        if let Visit::Entry(path, kind) = visit
            && kind.is_socket()
        {
            sockets.push(path.clone());
        }
        Step::Into
    });
    sockets
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_socket_is_the_end_of_its_line() {
        let line = b"00000000ab: 00000002 00000000 00010000 0001 01  4711 /run/with a blank";
        assert_eq!(name(line), Some(b"/run/with a blank".as_slice()));
        assert_eq!(name(b"00000000ab: 00000002 00000000 00010000 0001 01 17"), None);
        assert_eq!(name(b""), None);
    }
}
