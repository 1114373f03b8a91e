//! The protocol, with requests written by hand.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

/// A contents that is a table, and remembers what it was told.
#[derive(Debug)]
pub(super) struct Land {
    pub(super) paths: BTreeMap<PathBuf, Seen>,
    pub(super) targets: BTreeMap<PathBuf, PathBuf>,
    pub(super) looks: Vec<(PathBuf, u32)>,
    pub(super) attempts: Vec<Attempt>,
    /// One for each attempt to come; after the last, EACCES.
    pub(super) answers: Vec<Ruling>,
}

impl Land {
    pub(super) fn new(paths: &[(&str, Seen)]) -> Self {
        Self {
            paths: paths.iter().map(|(path, seen)| (path.into(), *seen)).collect(),
            targets: BTreeMap::new(),
            looks: Vec::new(),
            attempts: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// The attempts since the last call, as text.
    fn told(&mut self) -> Vec<String> {
        let told = |one: Attempt| format!("{:?} {} {}", one.operation, one.path.display(), one.pid);
        self.attempts.drain(..).map(told).collect()
    }
}

impl Contents for Land {
    fn look(&mut self, path: &Path, pid: u32) -> Seen {
        self.looks.push((path.to_owned(), pid));
        self.paths.get(path).copied().unwrap_or(Seen::Absent(libc::ENOENT))
    }

    fn names(&mut self, path: &Path) -> Vec<(OsString, Seen)> {
        let inside = self.paths.iter().filter(|(other, _)| other.parent() == Some(path));
        inside.map(|(path, seen)| (path.file_name().unwrap().to_owned(), *seen)).collect()
    }

    fn target(&mut self, path: &Path) -> Option<PathBuf> {
        self.targets.get(path).cloned()
    }

    fn attempt(&mut self, attempt: Attempt) -> Ruling {
        self.attempts.push(attempt);
        if self.answers.is_empty() { Ruling::Errno(libc::EACCES) } else { self.answers.remove(0) }
    }
}

const PID: u32 = 77;
const UNIQUE: u64 = 0x1122_3344_5566_7788;

fn request(opcode: u32, node: u64, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let mut bytes = u32::try_from(40 + body.len()).unwrap().to_ne_bytes().to_vec();
    bytes.extend(opcode.to_ne_bytes());
    bytes.extend(UNIQUE.to_ne_bytes());
    bytes.extend(node.to_ne_bytes());
    bytes.extend([0; 8]); // uid, gid
    bytes.extend(PID.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

/// What a reply says: its payload, or the error.
fn said(reply: &[u8]) -> Result<Vec<u8>, i32> {
    assert_eq!(word(reply, 0) as usize, reply.len());
    assert_eq!(&reply[8..16], UNIQUE.to_ne_bytes());
    match word(reply, 4).cast_signed() {
        0 => Ok(reply[16..].to_vec()),
        error => {
            assert!((-511..0).contains(&error) && reply.len() == 16);
            Err(-error)
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn serve(wire: &mut Tripwire, land: &mut Land, request: &[u8]) -> Result<Vec<u8>, i32> {
    reply(wire.serve(request, land).unwrap()).expect("a reply")
}

fn reply(served: Served<'_>) -> Option<Result<Vec<u8>, i32>> {
    match served {
        Served::Reply(reply) => Some(said(reply)),
        Served::Nothing | Served::Stop => None,
    }
}

/// Looks a path up name by name, as the kernel does: the node of the last one.
fn walk(wire: &mut Tripwire, land: &mut Land, path: &str) -> u64 {
    path.split('/').filter(|name| !name.is_empty()).fold(1, |node, name| {
        let lookup = request(opcode::LOOKUP, node, &[name.as_bytes(), b"\0"]);
        long(&serve(wire, land, &lookup).unwrap(), 0)
    })
}

fn home() -> (Tripwire, Land) {
    let mut land = Land::new(&[
        ("/home", Seen::Way),
        ("/home/work", Seen::Way),
        ("/home/link", Seen::Link),
        ("/home/secret", Seen::Directory),
        ("/home/secret/key", Seen::File),
        ("/home/config", Seen::MountPoint),
    ]);
    land.targets.insert("/home/link".into(), "work/deep".into());
    (Tripwire::new(1000, 1001), land)
}

fn start(major: u32, minor: u32) -> Vec<u8> {
    let [major, minor] = [major, minor].map(u32::to_ne_bytes);
    request(opcode::INIT, 0, &[&major, &minor, &65_536_u32.to_ne_bytes(), &[0xff; 4]])
}

#[test]
fn the_start_agrees_on_the_older_version() {
    let (mut wire, mut land) = home();
    for (major, minor, agreed) in [(7, 31, 31), (7, 33, 33), (7, 45, 45), (7, 99, 45), (8, 0, 45)] {
        let reply = serve(&mut wire, &mut land, &start(major, minor)).unwrap();
        assert_eq!((reply.len(), word(&reply, 0), word(&reply, 4)), (64, 7, agreed));
        assert_eq!(word(&reply, 12), FEATURES);
        assert_eq!(word(&reply, 20), MAX_WRITE);
    }
    for (major, minor) in [(6, 99), (7, 30)] {
        assert_eq!(serve(&mut wire, &mut land, &start(major, minor)), Err(libc::EPROTO));
    }
    let mut modest = start(7, 40);
    modest.truncate(40 + 12);
    modest.extend(0_u32.to_ne_bytes());
    assert_eq!(word(&serve(&mut wire, &mut land, &modest).unwrap(), 12), 0);
}

#[test]
fn a_lookup_tells_the_kind_and_nothing_more() {
    for (path, mode, links, size, name_seconds) in [
        ("/home", 0o40555, 2, 0, LONG_SECONDS),
        ("/home/link", 0o120_777, 1, 9, LONG_SECONDS),
        ("/home/config", 0o100_777, 1, 0, LONG_SECONDS),
        ("/home/secret", 0o40555, 2, 0, 0),
        ("/home/secret/key", 0o100_777, 1, 0, 0),
    ] {
        let (mut wire, mut land) = home();
        let (above, name) = path.rsplit_once('/').unwrap();
        let above = walk(&mut wire, &mut land, above);
        let lookup = request(opcode::LOOKUP, above, &[name.as_bytes(), b"\0"]);
        let entry = serve(&mut wire, &mut land, &lookup).unwrap();
        assert_eq!(entry.len(), 128, "{path}");
        let node = long(&entry, 0);
        assert_eq!((long(&entry, 16), long(&entry, 24)), (name_seconds, LONG_SECONDS), "{path}");

        let getattr = request(opcode::GETATTR, node, &[&[0; 16]]);
        let got = serve(&mut wire, &mut land, &getattr).unwrap();
        assert_eq!(got.len(), 104, "{path}");
        for attributes in [&entry[40..], &got[16..]] {
            let mut expected = Vec::new();
            expected.extend([node, size, 0, 0, 0, 0].map(u64::to_ne_bytes).concat());
            expected
                .extend([0, 0, 0, mode, links, 1000, 1001, 0, 0, 0].map(u32::to_ne_bytes).concat());
            assert_eq!(attributes, expected, "{path}");
        }
        assert_eq!(land.looks.last(), Some(&(path.into(), PID)));
        assert_eq!(land.told(), [""; 0]);
    }
}

#[test]
fn what_is_absent_is_never_a_node() {
    let (mut wire, mut land) = home();
    let gone = serve(&mut wire, &mut land, &request(opcode::LOOKUP, 1, &[b"gone\0"])).unwrap();
    // No node, and no need to ask again for a moment.
    let seconds = [0, 0, ABSENT_SECONDS].map(u64::to_ne_bytes).concat();
    assert_eq!(gone.split_at(24), (&seconds[..], &[0; 104][..]));
    land.paths.insert("/hidden".into(), Seen::Absent(libc::EACCES));
    land.paths.insert("/nonsense".into(), Seen::Absent(0));
    for (name, errno) in [("hidden", libc::EACCES), ("nonsense", libc::EACCES)] {
        let lookup = request(opcode::LOOKUP, 1, &[name.as_bytes(), b"\0"]);
        assert_eq!(serve(&mut wire, &mut land, &lookup), Err(errno), "{name}");
    }
    let deep = request(opcode::LOOKUP, 1, &[&[b'a'; 5000], b"\0"]);
    assert_eq!(serve(&mut wire, &mut land, &deep), Err(libc::ENAMETOOLONG));
    let stale = request(opcode::LOOKUP, 4321, &[b"home\0"]);
    assert_eq!(serve(&mut wire, &mut land, &stale), Err(libc::ESTALE));
}

#[test]
fn every_change_is_an_attempt() {
    let (mut wire, mut land) = home();
    let work = walk(&mut wire, &mut land, "/home/work");
    let secret = walk(&mut wire, &mut land, "/home/secret");
    let key = walk(&mut wire, &mut land, "/home/secret/key");
    let open = |flags: i32| request(opcode::OPEN, key, &[&flags.to_ne_bytes(), &[0; 4]]);
    let setattr = |valid: u32| request(opcode::SETATTR, key, &[&valid.to_ne_bytes(), &[0; 84]]);
    let mknod =
        |mode: u32| request(opcode::MKNOD, work, &[&mode.to_ne_bytes(), &[0; 12], b"new\0"]);
    let nodes = [work, key].map(u64::to_ne_bytes);
    let cases = [
        (open(libc::O_RDONLY), "Read /home/secret/key 77"),
        (open(0x20), "Execute /home/secret/key 77"),
        (open(libc::O_WRONLY), "Write /home/secret/key 77"),
        (open(libc::O_RDWR | libc::O_APPEND), "Write /home/secret/key 77"),
        (open(libc::O_TRUNC), "Write /home/secret/key 77"),
        (setattr(1), "ChangeMode /home/secret/key 77"),
        (setattr(1 | 2), "ChangeOwner /home/secret/key 77"),
        (setattr(4), "ChangeOwner /home/secret/key 77"),
        (setattr(8 | 32), "Truncate /home/secret/key 77"),
        (setattr(16 | 32 | 128), "ChangeTimes /home/secret/key 77"),
        (mknod(0o100_644), "Create /home/work/new 77"),
        (mknod(0o10_644), "MakeNode /home/work/new 77"),
        (mknod(0o140_755), "MakeNode /home/work/new 77"),
        (request(opcode::CREATE, work, &[&[0; 16], b"new\0"]), "Create /home/work/new 77"),
        (request(opcode::CREATE, 1, &[&[0; 16], b"new\0"]), "Create /new 77"),
        (request(opcode::TMPFILE, work, &[&[0; 16], b"\0"]), "Create /home/work 77"),
        (request(opcode::MKDIR, secret, &[&[0; 8], b"d\0"]), "MakeDirectory /home/secret/d 77"),
        (request(opcode::SYMLINK, work, &[b"l\0", b"/etc\0"]), "SymbolicLink /home/work/l 77"),
        (request(opcode::UNLINK, secret, &[b"key\0"]), "Remove /home/secret/key 77"),
        (request(opcode::RMDIR, 1, &[b"home\0"]), "Remove /home 77"),
        (
            request(opcode::SETXATTR, key, &[&[0; 8], b"n\0v"]),
            "ChangeAttributes /home/secret/key 77",
        ),
        (request(opcode::REMOVEXATTR, key, &[b"n\0"]), "ChangeAttributes /home/secret/key 77"),
        (
            request(opcode::RENAME, secret, &[&nodes[0], b"key\0mine\0"]),
            "Rename /home/secret/key 77, Rename /home/work/mine 77",
        ),
        (
            request(opcode::RENAME2, secret, &[&nodes[0], &[0; 8], b"key\0mine\0"]),
            "Rename /home/secret/key 77, Rename /home/work/mine 77",
        ),
        (
            request(opcode::LINK, work, &[&nodes[1], b"mine\0"]),
            "Link /home/secret/key 77, Link /home/work/mine 77",
        ),
    ];
    for (request, expected) in cases {
        land.answers = vec![Ruling::Errno(libc::EROFS)];
        assert_eq!(serve(&mut wire, &mut land, &request), Err(libc::EROFS), "{expected}");
        assert_eq!(land.told().join(", "), expected);
    }
}

#[test]
fn a_rename_tells_both_paths_unless_the_tree_dies() {
    let (mut wire, mut land) = home();
    let rename = request(opcode::RENAME, 1, &[&1_u64.to_ne_bytes(), b"a\0b\0"]);
    for (answers, expected, told) in [
        (vec![Ruling::Errno(libc::EPERM), Ruling::Errno(libc::EROFS)], Some(Err(libc::EPERM)), 2),
        (vec![Ruling::Stop], None, 1),
        (vec![Ruling::Errno(libc::EPERM), Ruling::Stop], None, 2),
    ] {
        land.answers = answers;
        let served = wire.serve(&rename, &mut land).unwrap();
        assert_eq!(served == Served::Stop, expected.is_none());
        assert_eq!(reply(served), expected);
        assert_eq!(land.told().len(), told);
    }
}

#[test]
fn no_attempt_succeeds_whatever_the_answer() {
    let (mut wire, mut land) = home();
    let mkdir = request(opcode::MKDIR, 1, &[&[0; 8], b"new\0"]);
    for errno in [0, -1, i32::MIN, i32::MAX, 512, libc::ENOSYS, libc::EINTR] {
        land.answers = vec![Ruling::Errno(errno)];
        assert_eq!(serve(&mut wire, &mut land, &mkdir), Err(libc::EACCES), "{errno}");
    }
    land.answers = vec![Ruling::Errno(libc::ENOENT)];
    assert_eq!(serve(&mut wire, &mut land, &mkdir), Err(libc::ENOENT));
}

fn page(opcode: u32, node: u64, offset: u64, size: u32) -> Vec<u8> {
    let [fh, offset] = [0, offset].map(u64::to_ne_bytes);
    request(opcode, node, &[&fh, &offset, &size.to_ne_bytes(), &[0; 20]])
}

/// All lines of a listing, read page by page: (inode, node in the entry, kind, name).
fn listing(
    wire: &mut Tripwire,
    land: &mut Land,
    opcode: u32,
    node: u64,
) -> Vec<(u64, u64, u32, String)> {
    let (mut lines, mut offset) = (Vec::new(), 0);
    loop {
        let bytes = serve(wire, land, &page(opcode, node, offset, 4096)).unwrap();
        assert!(bytes.len() <= 4096);
        if bytes.is_empty() {
            return lines;
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let mut entry = 0;
            if opcode == opcode::READDIRPLUS {
                entry = long(rest, 0);
                rest = &rest[128..];
            }
            let length = word(rest, 16) as usize;
            let name = String::from_utf8(rest[24..24 + length].to_vec()).unwrap();
            lines.push((long(rest, 0), entry, word(rest, 20), name));
            offset = long(rest, 8);
            rest = &rest[(24 + length).next_multiple_of(8)..];
        }
    }
}

#[test]
fn a_way_is_listed_page_by_page() {
    let (mut wire, mut land) = home();
    for number in 0..500 {
        land.paths.insert(format!("/home/work/{number:03}").into(), Seen::Way);
    }
    let work = walk(&mut wire, &mut land, "/home/work");
    for opcode in [opcode::READDIR, opcode::READDIRPLUS] {
        let lines = listing(&mut wire, &mut land, opcode, work);
        let names: Vec<&str> = lines.iter().map(|line| line.3.as_str()).collect();
        assert_eq!((names.len(), &names[..3]), (502, &[".", "..", "000"][..]));
        assert!(names[2..].is_sorted());
        assert!(lines.iter().all(|line| line.0 != 0 && line.2 == 4));
    }
    let after_the_end = page(opcode::READDIR, work, u64::MAX, 4096);
    assert_eq!(serve(&mut wire, &mut land, &after_the_end), Ok(Vec::new()));
    let too_small = page(opcode::READDIR, work, 0, 20);
    assert_eq!(serve(&mut wire, &mut land, &too_small), Err(libc::EINVAL));
}

#[test]
fn a_listing_counts_as_lookup_of_what_is_planned() {
    let (mut wire, mut land) = home();
    land.paths.insert("/home/absent".into(), Seen::Absent(libc::ENOENT));
    land.paths.insert(format!("/home/{}", "x".repeat(256)).into(), Seen::Way);
    let home = walk(&mut wire, &mut land, "/home");
    let lines = listing(&mut wire, &mut land, opcode::READDIRPLUS, home);
    let shown: Vec<_> = lines.iter().map(|line| (line.3.as_str(), line.2, line.1 != 0)).collect();
    let expected = [
        (".", 4, false),
        ("..", 4, false),
        ("config", 8, true),
        ("link", 10, true),
        ("secret", 4, false),
        ("work", 4, true),
    ];
    assert_eq!(shown, expected);

    // The same nodes as a lookup gives, and forgotten by both counts.
    let work = lines[5].1;
    assert_eq!((lines[0].0, lines[5].0), (home, work));
    assert_eq!(walk(&mut wire, &mut land, "/home/work"), work);
    let forget = |count: u64| request(opcode::FORGET, work, &[&count.to_ne_bytes()]);
    let getattr = request(opcode::GETATTR, work, &[&[0; 16]]);
    assert_eq!(wire.serve(&forget(1), &mut land), Ok(Served::Nothing));
    assert!(serve(&mut wire, &mut land, &getattr).is_ok());
    assert_eq!(wire.serve(&forget(1), &mut land), Ok(Served::Nothing));
    assert_eq!(serve(&mut wire, &mut land, &getattr), Err(libc::ESTALE));
}

#[test]
fn listing_what_is_denied_is_an_attempt() {
    let (mut wire, mut land) = home();
    let secret = walk(&mut wire, &mut land, "/home/secret");
    for opcode in [opcode::READDIR, opcode::READDIRPLUS] {
        assert_eq!(serve(&mut wire, &mut land, &page(opcode, secret, 0, 4096)), Err(libc::EACCES));
        assert_eq!(land.told(), ["List /home/secret 77"]);
    }
    let key = walk(&mut wire, &mut land, "/home/secret/key");
    let file = page(opcode::READDIR, key, 0, 4096);
    assert_eq!(serve(&mut wire, &mut land, &file), Err(libc::ENOTDIR));
}

#[test]
fn a_link_leads_where_the_terrain_says() {
    let (mut wire, mut land) = home();
    let link = walk(&mut wire, &mut land, "/home/link");
    let readlink = request(opcode::READLINK, link, &[]);
    assert_eq!(serve(&mut wire, &mut land, &readlink), Ok(b"work/deep".to_vec()));
    land.targets.insert("/home/link".into(), "x".repeat(5000).into());
    assert_eq!(serve(&mut wire, &mut land, &readlink), Err(libc::ENAMETOOLONG));
    land.targets.clear();
    assert_eq!(serve(&mut wire, &mut land, &readlink), Err(libc::ENOENT));
    let root = request(opcode::READLINK, 1, &[]);
    assert_eq!(serve(&mut wire, &mut land, &root), Err(libc::EINVAL));
}

#[test]
fn many_are_forgotten_at_once() {
    let (mut wire, mut land) = home();
    let nodes = ["/home/work", "/home/secret"].map(|path| walk(&mut wire, &mut land, path));
    let each = nodes.map(|node| [node, 1].map(u64::to_ne_bytes).concat()).concat();
    let batch =
        |count: u32| request(opcode::BATCH_FORGET, 0, &[&count.to_ne_bytes(), &[0; 4], &each]);
    for count in [3, u32::MAX] {
        let malformed = Err(Malformed::Arguments(opcode::BATCH_FORGET));
        assert_eq!(wire.serve(&batch(count), &mut land), malformed);
    }
    assert_eq!(wire.serve(&batch(2), &mut land), Ok(Served::Nothing));
    for node in nodes {
        let getattr = request(opcode::GETATTR, node, &[&[0; 16]]);
        assert_eq!(serve(&mut wire, &mut land, &getattr), Err(libc::ESTALE));
    }
}

#[test]
fn what_does_not_matter_is_answered_without_asking() {
    const GETXATTR: u32 = 22;
    const ACCESS: u32 = 34;
    const STATX: u32 = 52;
    let (mut wire, mut land) = home();
    for opcode in [GETXATTR, ACCESS, STATX, 9999] {
        let asked = request(opcode, 1, &[&[0; 32]]);
        assert_eq!(serve(&mut wire, &mut land, &asked), Err(libc::ENOSYS), "{opcode}");
    }
    for opcode in [opcode::INTERRUPT, opcode::NOTIFY_REPLY] {
        assert_eq!(wire.serve(&request(opcode, 1, &[&[0; 8]]), &mut land), Ok(Served::Nothing));
    }
    let statfs = request(opcode::STATFS, 1, &[]);
    assert_eq!(serve(&mut wire, &mut land, &statfs).map(|reply| reply.len()), Ok(80));
    assert_eq!((land.looks.len(), land.attempts.len()), (0, 0));
}

/// Opening a directory would tell that it is there, so it is the attempt, before any name is read.
#[test]
fn opening_a_directory_is_asked_about_unless_it_leads_somewhere() {
    let (mut wire, mut land) = home();
    let way = request(opcode::OPENDIR, 1, &[&[0; 8]]);
    assert_eq!(serve(&mut wire, &mut land, &way).map(|reply| reply.len()), Ok(16));
    land.paths.insert("/home/private".into(), Seen::Directory);
    let node = walk(&mut wire, &mut land, "/home/private");
    let denied = request(opcode::OPENDIR, node, &[&[0; 8]]);
    assert_eq!(serve(&mut wire, &mut land, &denied), Err(libc::EACCES));
    assert_eq!(land.told(), ["List /home/private 77"]);
}

#[test]
fn what_is_hidden_is_asked_about_each_time() {
    let (mut wire, mut land) = home();
    land.paths.insert("/hidden".into(), Seen::Hidden);
    let lookup = request(opcode::LOOKUP, 1, &[b"hidden\0"]);
    // An error without an entry leaves nothing in the kernel's cache.
    assert_eq!(serve(&mut wire, &mut land, &lookup), Err(libc::ENOENT));
}

#[test]
fn bytes_that_no_kernel_sends_are_an_error() {
    let (mut wire, mut land) = home();
    let lookup = request(opcode::LOOKUP, 1, &[b"home\0"]);
    for length in 0..lookup.len() {
        assert!(wire.serve(&lookup[..length], &mut land).is_err(), "{length}");
    }
    let more = [&lookup[..], b"x"].concat();
    assert_eq!(wire.serve(&more, &mut land), Err(Malformed::Length { said: 45, got: 46 }));
    for name in ["\0", ".\0", "..\0", "a/b\0", "/\0"] {
        let lookup = request(opcode::LOOKUP, 1, &[name.as_bytes()]);
        assert_eq!(wire.serve(&lookup, &mut land), Err(Malformed::Name(opcode::LOOKUP)), "{name}");
    }
    let open_ended = request(opcode::LOOKUP, 1, &[b"home"]);
    assert_eq!(wire.serve(&open_ended, &mut land), Err(Malformed::Arguments(opcode::LOOKUP)));
    assert_eq!(land.looks, []);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (mut wire, mut land) = home();
        let _ = wire.serve(&bytes, &mut land);
    }

    #[test]
    fn any_requests_get_replies_that_the_kernel_takes(
        requests in proptest::collection::vec(
            (0..60_u32, 0..8_u64, proptest::collection::vec(any::<u8>(), 0..64), "[a-z/.]{0,9}"),
            1..40,
        ),
    ) {
        let (mut wire, mut land) = home();
        walk(&mut wire, &mut land, "/home/secret/key");
        for (opcode, node, body, name) in requests {
            let request = request(opcode, node, &[&body, name.as_bytes(), b"\0", b"work\0"]);
            if let Ok(Served::Reply(reply)) = wire.serve(&request, &mut land) {
                let _ = said(reply);
            }
        }
    }
}
