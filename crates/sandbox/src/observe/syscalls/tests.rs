use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use libc::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW};
use libc::{
    O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_PATH, O_RDWR, O_TMPFILE, O_TRUNC, O_WRONLY,
};
use proptest::prelude::*;

use super::Operation::*;
use super::*;

/// A path as the tables below write it: directory, pointer, and what holds of it.
fn path(directory: i32, pointer: u64, marks: &str) -> PathArgument {
    PathArgument {
        directory,
        pointer,
        follow: marks.contains('f'),
        empty_means_directory: marks.contains('e'),
    }
}

fn call(nr: c_long, args: [u64; 6]) -> Call {
    match describe(nr, args) {
        Some(Described::Path(call)) => call,
        other => panic!("{nr}: {other:?}"),
    }
}

/// A register that holds an `int`, with other bits in the half that the kernel does not look at.
fn register(value: i32) -> u64 {
    u64::from(value.cast_unsigned()) | 0xabcd_0000_0000_0000
}

#[test]
fn an_open_is_what_its_flags_say() {
    for (flags, operation, marks) in [
        (0, Read, "f"),
        (O_NOFOLLOW, Read, ""),
        (libc::O_APPEND, Read, "f"),
        (O_EXCL, Read, "f"),
        (O_DIRECTORY, List, "f"),
        (O_DIRECTORY | O_NOFOLLOW, List, ""),
        (O_PATH, Look, "f"),
        (O_PATH | O_CREAT | O_EXCL | O_RDWR, Look, "f"),
        (O_PATH | O_DIRECTORY, Look, "f"),
        (O_WRONLY, Write, "f"),
        (O_RDWR, Write, "f"),
        (O_WRONLY | O_RDWR, Write, "f"),
        (O_TRUNC, Write, "f"),
        (O_WRONLY | O_NOFOLLOW, Write, ""),
        (O_CREAT, Create, "f"),
        (O_CREAT | O_WRONLY | O_TRUNC, Create, "f"),
        (O_CREAT | O_EXCL | O_WRONLY, Create, ""),
        (O_CREAT | O_NOFOLLOW, Create, ""),
        (O_TMPFILE | O_RDWR, Create, "f"),
        (O_TMPFILE | O_RDWR | O_EXCL, Create, "f"),
    ] {
        let wanted = Call {
            operation,
            path: path(7, 0x10, marks),
            second: None,
            flags: flags.cast_unsigned(),
        };
        let args = [register(7), 0x10, register(flags), 0, 0, 0];
        assert_eq!(call(libc::SYS_openat, args), wanted, "openat {flags:#o}");
        #[cfg(target_arch = "x86_64")]
        {
            let wanted = Call { path: path(AT_FDCWD, 0x10, marks), ..wanted };
            assert_eq!(call(libc::SYS_open, [0x10, register(flags), 0, 0, 0, 0]), wanted);
        }
    }
}

#[test]
fn calls_with_a_directory() {
    let [seven, eight] = [7, 8].map(register);
    let follow = register(AT_SYMLINK_FOLLOW);
    let nofollow = register(AT_SYMLINK_NOFOLLOW);
    let empty = register(AT_EMPTY_PATH);
    let [reg, fifo, chr] = [libc::S_IFREG, libc::S_IFIFO, libc::S_IFCHR].map(u64::from);
    let one = |marks| path(7, 0x10, marks);
    let two = Some(path(8, 0x20, ""));
    let cwd = |marks| path(AT_FDCWD, 0x10, marks);
    for (nr, args, operation, path, second) in [
        (libc::SYS_mkdirat, [seven, 0x10, 0o755, 0, 0, 0], MakeDirectory, one(""), None),
        (libc::SYS_mknodat, [seven, 0x10, 0o644, 0, 0, 0], Create, one(""), None),
        (libc::SYS_mknodat, [seven, 0x10, reg | 0o644, 0, 0, 0], Create, one(""), None),
        (libc::SYS_mknodat, [seven, 0x10, fifo | 0o644, 0, 0, 0], MakeNode, one(""), None),
        (libc::SYS_mknodat, [seven, 0x10, chr | 0o644, 0, 0, 0], MakeNode, one(""), None),
        // The first argument is what the link says, not where it stands.
        (libc::SYS_symlinkat, [0x99, seven, 0x10, 0, 0, 0], SymbolicLink, one(""), None),
        (libc::SYS_linkat, [seven, 0x10, eight, 0x20, 0, 0], Link, one(""), two),
        (libc::SYS_linkat, [seven, 0x10, eight, 0x20, follow, 0], Link, one("f"), two),
        (libc::SYS_linkat, [seven, 0x10, eight, 0x20, empty, 0], Link, one("e"), two),
        (libc::SYS_unlinkat, [seven, 0x10, 0, 0, 0, 0], Remove, one(""), None),
        (libc::SYS_unlinkat, [seven, 0x10, 0x200, 0, 0, 0], Remove, one(""), None),
        (libc::SYS_renameat, [seven, 0x10, eight, 0x20, 0, 0], Rename, one(""), two),
        (libc::SYS_renameat2, [seven, 0x10, eight, 0x20, 2, 0], Rename, one(""), two),
        (libc::SYS_truncate, [0x10, 0, 0, 0, 0, 0], Truncate, cwd("f"), None),
        (libc::SYS_fchmodat, [seven, 0x10, 0o644, nofollow, 0, 0], ChangeMode, one("f"), None),
        (numbers::FCHMODAT2, [seven, 0x10, 0o644, nofollow, 0, 0], ChangeMode, one(""), None),
        (numbers::FCHMODAT2, [seven, 0x10, 0o644, empty, 0, 0], ChangeMode, one("fe"), None),
        (libc::SYS_fchownat, [seven, 0x10, 1, 1, 0, 0], ChangeOwner, one("f"), None),
        (libc::SYS_fchownat, [seven, 0x10, 1, 1, nofollow, 0], ChangeOwner, one(""), None),
        (libc::SYS_utimensat, [seven, 0x10, 0, nofollow, 0, 0], ChangeTimes, one(""), None),
        (libc::SYS_utimensat, [seven, 0x10, 0, 0, 0, 0], ChangeTimes, one("f"), None),
        (libc::SYS_setxattr, [0x10, 0, 0, 0, 0, 0], ChangeAttributes, cwd("f"), None),
        (libc::SYS_removexattr, [0x10, 0, 0, 0, 0, 0], ChangeAttributes, cwd("f"), None),
        (libc::SYS_lsetxattr, [0x10, 0, 0, 0, 0, 0], ChangeAttributes, cwd(""), None),
        (libc::SYS_lremovexattr, [0x10, 0, 0, 0, 0, 0], ChangeAttributes, cwd(""), None),
    ] {
        let flags = if nr == libc::SYS_renameat2 { 2 } else { 0 };
        assert_eq!(call(nr, args), Call { operation, path, second, flags }, "{nr} {args:x?}");
    }
    assert_eq!(describe(libc::SYS_utimensat, [seven, 0, 0, 0, 0, 0]), None);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_without_a_directory() {
    let old = |marks| path(AT_FDCWD, 0x10, marks);
    let new = Some(path(AT_FDCWD, 0x20, ""));
    for (nr, operation, path, second) in [
        (libc::SYS_creat, Create, old("f"), None),
        (libc::SYS_mkdir, MakeDirectory, old(""), None),
        (libc::SYS_mknod, Create, old(""), None),
        (libc::SYS_symlink, SymbolicLink, path(AT_FDCWD, 0x20, ""), None),
        (libc::SYS_link, Link, old(""), new),
        (libc::SYS_rename, Rename, old(""), new),
        (libc::SYS_unlink, Remove, old(""), None),
        (libc::SYS_rmdir, Remove, old(""), None),
        (libc::SYS_chmod, ChangeMode, old("f"), None),
        (libc::SYS_chown, ChangeOwner, old("f"), None),
        (libc::SYS_lchown, ChangeOwner, old(""), None),
        (libc::SYS_utime, ChangeTimes, old("f"), None),
        (libc::SYS_utimes, ChangeTimes, old("f"), None),
    ] {
        let flags = if nr == libc::SYS_creat { O_CREAT | O_WRONLY | O_TRUNC } else { 0 };
        let wanted = Call { operation, path, second, flags: flags.cast_unsigned() };
        assert_eq!(call(nr, [0x10, 0x20, 0, 0, 0, 0]), wanted, "{nr}");
    }
    let times = call(libc::SYS_futimesat, [register(7), 0x10, 0, 0, 0, 0]);
    assert_eq!(times.path, path(7, 0x10, "f"));
}

#[test]
fn starts_and_connections() {
    let arguments = 0x30;
    let execve = Described::Execute { path: path(AT_FDCWD, 0x10, "f"), arguments };
    assert_eq!(describe(libc::SYS_execve, [0x10, 0x30, 0x40, 0, 0, 0]), Some(execve));
    let flags = register(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
    let execveat = Described::Execute { path: path(7, 0x10, "e"), arguments };
    let args = [register(7), 0x10, 0x30, 0x40, flags, 0];
    assert_eq!(describe(libc::SYS_execveat, args), Some(execveat));
    let connect = Described::Connect { socket: 7, address: 0x10, length: 16 };
    assert_eq!(
        describe(libc::SYS_connect, [register(7), 0x10, register(16), 0, 0, 0]),
        Some(connect)
    );
    assert_eq!(describe(libc::SYS_getpid, [0; 6]), None);
    assert_eq!(describe(-1, [0; 6]), None);
}

#[test]
fn paths_come_in_the_order_of_the_call() {
    let rename = call(libc::SYS_renameat2, [7, 0x10, 8, 0x20, 0, 0]);
    assert_eq!(rename.paths().map(|path| path.pointer).collect::<Vec<_>>(), [0x10, 0x20]);
}

fn bytes(family: c_int, rest: &[u8]) -> Vec<u8> {
    let family = u16::try_from(family).unwrap();
    [&family.to_ne_bytes(), rest].concat()
}

#[test]
fn addresses() {
    let path = |text: &str| Address::Path(PathBuf::from(text));
    let ip = |text: &str| Address::Ip(text.parse().unwrap());
    let v6 = |scope: &[u8]| [b"\x01\xbb", &[0; 19][..], &[1], scope].concat();
    let full = [b'x'; 108];
    for (family, rest, wanted) in [
        (libc::AF_UNIX, &b"/run/s\0junk"[..], path("/run/s")),
        (libc::AF_UNIX, b"s", path("s")),
        (libc::AF_UNIX, &full, path(&"x".repeat(108))),
        (libc::AF_UNIX, b"\0bus\0x", Address::Abstract(b"bus\0x".to_vec())),
        (libc::AF_UNIX, b"\0", Address::Abstract(vec![])),
        (libc::AF_UNIX, b"", Address::Unnamed),
        (libc::AF_UNSPEC, b"whatever", Address::Unnamed),
        (libc::AF_INET, b"\x1f\x90\x7f\0\0\x01........", ip("127.0.0.1:8080")),
        (libc::AF_INET, b"\x1f\x90\x7f\0\0\x01.......", Address::Other(2)),
        (libc::AF_INET6, &v6(&[]), ip("[::1]:443")),
        (libc::AF_INET6, &v6(&3_u32.to_ne_bytes()), ip("[::1%3]:443")),
        (libc::AF_INET6, &v6(&[])[..21], Address::Other(10)),
        (libc::AF_VSOCK, b"........", Address::Other(40)),
    ] {
        assert_eq!(address(&bytes(family, rest)), wanted, "{family} {rest:?}");
    }
    assert_eq!(address(&[]), Address::Unnamed);
    assert_eq!(address(&[1]), Address::Unnamed);
}

proptest! {
    #[test]
    fn any_bytes_are_an_address(bytes in prop::collection::vec(any::<u8>(), 0..140)) {
        if let Address::Path(path) = address(&bytes) {
            let name = path.as_os_str().as_bytes();
            prop_assert!(!name.is_empty() && !name.contains(&0));
        }
    }
}

#[test]
fn whatever_changes_a_path_can_be_performed() {
    let mut seen = 0;
    for nr in 0..500 {
        let Some(Described::Path(call)) = describe(nr, [1; 6]) else { continue };
        if call.operation.writes() {
            assert!(act(nr, [1; 6]).is_some(), "{nr}");
            seen += 1;
        }
    }
    assert!(seen >= 17, "{seen}");
    let open = |flags: c_int| {
        act(libc::SYS_openat, [register(7), 0x10, register(flags), register(0o640), 0, 0])
    };
    assert_eq!(open(O_CREAT), Some(Act::Open { flags: O_CREAT.cast_unsigned(), mode: 0o640 }));
    let removes = |flags| act(libc::SYS_unlinkat, [register(7), 0x10, register(flags), 0, 0, 0]);
    assert_eq!(removes(libc::AT_REMOVEDIR), Some(Act::Remove { directory: true }));
    assert_eq!(removes(0), Some(Act::Remove { directory: false }));
}
