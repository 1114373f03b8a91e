//! The tripwire behind a real mount, with real programs in front of it.
//!
//! A child makes user and mount namespaces, mounts the tripwire on `/mnt`, hands its `/dev/fuse`
//! out and becomes a shell. Where that is not allowed the tests say so and pass.

#![expect(unsafe_code, reason = "the test mounts a tripwire in a process of its own")]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::{mem, ptr, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::tests::Land;
use super::*;

/// What the sandboxed user is called inside: user 0 would hide what goes wrong for others.
const USER: u32 = 1000;

#[test]
fn programs_trip_over_it() {
    use Operation::{
        ChangeMode, ChangeOwner, ChangeTimes, Create, Execute, Link, List, MakeDirectory, MakeNode,
        Read, Remove, Rename, SymbolicLink, Write,
    };
    let cases: &[(&str, &[(Operation, &str)])] = &[
        ("cat denied/file", &[(Read, "/denied/file")]),
        ("cat denied/dir/file", &[(Read, "/denied/dir/file")]),
        ("cd denied/dir && cat ../file", &[(Read, "/denied/file")]),
        ("cat denied/file denied/file", &[(Read, "/denied/file"), (Read, "/denied/file")]),
        ("ls denied", &[(List, "/denied")]),
        ("ls -la denied; ls denied", &[(List, "/denied"), (List, "/denied")]),
        ("denied/file", &[(Execute, "/denied/file")]),
        ("echo >denied/file", &[(Write, "/denied/file")]),
        ("echo >>denied/file", &[(Write, "/denied/file")]),
        ("echo >denied/new", &[(Create, "/denied/new")]),
        ("echo >new", &[(Create, "/new")]),
        ("echo >way/new", &[(Create, "/way/new")]),
        ("mkdir new", &[(MakeDirectory, "/new")]),
        ("mkdir denied/new", &[(MakeDirectory, "/denied/new")]),
        ("mkfifo denied/new", &[(MakeNode, "/denied/new")]),
        ("ln -s /etc denied/new", &[(SymbolicLink, "/denied/new")]),
        ("ln denied/file way/new", &[(Link, "/denied/file"), (Link, "/way/new")]),
        ("mv denied/file way/new", &[(Rename, "/denied/file"), (Rename, "/way/new")]),
        ("rm -f denied/file", &[(Remove, "/denied/file")]),
        ("rmdir denied/dir", &[(Remove, "/denied/dir")]),
        ("chmod 600 denied/file", &[(ChangeMode, "/denied/file")]),
        ("chown 1000 denied/file", &[(ChangeOwner, "/denied/file")]),
        ("touch -c -h denied/file", &[(ChangeTimes, "/denied/file")]),
        ("truncate -c -s 0 denied/file", &[(Write, "/denied/file")]),
        ("stat denied denied/file; stat absent", &[]),
    ];
    for (command, expected) in cases {
        let Some((land, output)) = run(command, land()) else { return };
        let attempts = land.attempts.iter().map(|one| (one.operation, one.path.to_str().unwrap()));
        assert_eq!(attempts.collect::<Vec<_>>(), *expected, "{command}: {output:?}");
        assert!(land.attempts.iter().all(|attempt| attempt.pid > 1), "{command}");
    }
}

#[test]
fn what_is_denied_is_looked_up_each_time_and_what_is_planned_once() {
    let script = "for again in 1 2 3; do
            stat denied/file; stat way; stat -L link; cat ground-file; ls ground/bin
        done >/dev/null 2>&1";
    let Some((land, _)) = run(script, land()) else { return };
    for (path, times) in
        [("/denied/file", 3), ("/way", 1), ("/link", 1), ("/ground-file", 1), ("/ground", 1)]
    {
        let looks = land.looks.iter().filter(|(looked, _)| looked == Path::new(path)).count();
        assert_eq!(looks, times, "{path}");
    }
    assert_eq!(land.attempts, []);
}

/// The kernel caches for a moment that a name does not exist; creating it is still reported.
#[test]
fn what_was_looked_for_in_vain_cannot_be_made_in_silence() {
    for make in ["mkdir absent", "echo > absent", "ln -s x absent", "mkfifo absent"] {
        let script = format!("stat absent; {make}");
        let Some((land, _)) = run(&script, land()) else { return };
        let paths = land.attempts.iter().map(|attempt| attempt.path.as_path());
        assert_eq!(paths.collect::<Vec<_>>(), [Path::new("/absent")], "{make}");
    }
}

#[test]
fn ways_are_listed_and_granted_ground_stays_mounted() {
    let mut land = land();
    for number in 0..300 {
        land.paths.insert(format!("/way/{number:03}").into(), Seen::Way);
    }
    let script = "ls -a; ls way | wc -l; ls link/ | tail -1; ls -la >/dev/null && cmp ground-file \
                  /etc/passwd && ls ground/bin/env && readlink link && stat -c '%s %Y %u' link way";
    let Some((land, output)) = run(script, land) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        ".",
        "..",
        "denied",
        "ground",
        "ground-file",
        "link",
        "way", // ls -a
        "300",
        "299",
        "ground/bin/env",
        "way",
        "3 0 1000",
        "0 0 1000",
    ];
    assert_eq!(lines, expected, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(land.attempts, []);
}

#[test]
fn a_killed_caller_never_returns() {
    let land = Land { answers: vec![Ruling::Stop], ..land() };
    let Some((land, output)) = run("cat denied/file; echo $?", land) else { return };
    assert_eq!((land.attempts.len(), &output.stdout[..]), (1, &b"137\n"[..]), "{output:?}");
}

fn land() -> Land {
    let mut land = Land::new(&[
        ("/way", Seen::Way),
        ("/link", Seen::Link),
        ("/denied", Seen::Directory),
        ("/denied/file", Seen::File),
        ("/denied/dir", Seen::Directory),
        ("/denied/dir/file", Seen::File),
        ("/ground", Seen::Way),
        ("/ground-file", Seen::MountPoint),
    ]);
    land.targets.insert("/link".into(), "way".into());
    land
}

/// Runs a shell script in `/mnt`. None when this machine does not let us.
#[expect(clippy::print_stderr, reason = "the test log must show what did not run")]
fn run(script: &str, land: Land) -> Option<(Land, Output)> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let supervisor = thread::spawn(move || supervise(ours, land));

    let mounting = Mounting::new(theirs.as_raw_fd());
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("cd /mnt\n{script}"));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).env("LC_ALL", "C");
    // SAFETY: `enter` only makes system calls on memory that was allocated before the fork.
    unsafe { shell.pre_exec(move || mounting.enter()) };
    let child = shell.spawn();
    drop(theirs);
    let output = child.map(|child| child.wait_with_output().unwrap());
    match (supervisor.join().unwrap(), output) {
        (Some(land), output) => {
            Some((land, output.expect("a mounted tripwire lets the shell run")))
        }
        (None, output) => {
            eprintln!("skipped: no tripwire can be mounted here: {:?}", output.err());
            None
        }
    }
}

/// Serves the mount until it is gone. None when there never was one.
fn supervise(socket: UnixStream, mut land: Land) -> Option<Land> {
    let mut device = File::from(receive(&socket)?);
    let mut wire = Tripwire::new(USER, USER);
    let mut buffer = vec![0; Tripwire::REQUEST_SIZE];
    let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
    loop {
        let ready = poll(&mut [PollFd::new(&device, PollFlags::IN)], Some(&patience)).unwrap();
        assert_eq!(ready, 1, "nothing more was asked: {land:?}");
        let length = match device.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Some(land),
            Err(error) => panic!("{error}"),
        };
        match wire.serve(&buffer[..length], &mut land).unwrap() {
            Served::Reply(reply) => device.write_all(reply).unwrap(),
            Served::Nothing => {}
            Served::Stop => {
                let pid = libc::pid_t::try_from(land.attempts.last().unwrap().pid).unwrap();
                // SAFETY: a signal to the blocked caller; no memory is involved.
                assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
                return Some(land);
            }
        }
    }
}

/// What the child needs to know between fork and exec, all of it made before.
struct Mounting {
    socket: RawFd,
    uid_map: Vec<u8>,
    gid_map: Vec<u8>,
    options: CString,
}

/// The number that the mount options name `/dev/fuse` by.
const DEVICE: RawFd = 200;

impl Mounting {
    fn new(socket: RawFd) -> Self {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let options = format!("fd={DEVICE},rootmode=40000,user_id={USER},group_id={USER}");
        Self {
            socket,
            uid_map: format!("{USER} {} 1", uid.as_raw()).into_bytes(),
            gid_map: format!("{USER} {} 1", gid.as_raw()).into_bytes(),
            options: CString::new(options).unwrap(),
        }
    }

    fn enter(&self) -> io::Result<()> {
        // SAFETY: the child has one thread, which a new user namespace asks for.
        check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) })?;
        write(c"/proc/self/setgroups", b"deny")?;
        write(c"/proc/self/uid_map", &self.uid_map)?;
        write(c"/proc/self/gid_map", &self.gid_map)?;
        mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;

        let device = open(c"/dev/fuse", libc::O_RDWR)?;
        // SAFETY: nothing else in this child uses that number.
        check(unsafe { libc::dup3(device, DEVICE, libc::O_CLOEXEC) })?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        mount(Some(c"ringwall"), c"/mnt", Some(c"fuse"), flags, Some(&self.options))?;
        send(self.socket, DEVICE)?;
        for descriptor in [device, DEVICE] {
            // SAFETY: opened above. As long as one is open here, the supervisor's death would
            // leave us waiting for ourselves.
            check(unsafe { libc::close(descriptor) })?;
        }

        // Until it is asked, the kernel takes the root for a file of user 0, who is not mapped.
        // SAFETY: a path that ends in NUL, and room for the answer.
        check(unsafe { libc::stat(c"/mnt".as_ptr(), &mut mem::zeroed()) })?;
        let bind = libc::MS_BIND | libc::MS_REC;
        mount(Some(c"/usr"), c"/mnt/ground", None, bind, None)?;
        mount(Some(c"/etc/passwd"), c"/mnt/ground-file", None, bind, None)
    }
}

fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    let (source, kind, options) = (pointer(source), pointer(kind), pointer(options));
    // SAFETY: all are null or end in NUL, and outlive the call.
    check(unsafe { libc::mount(source, target.as_ptr(), kind, flags, options.cast()) }).map(drop)
}

fn open(path: &CStr, flags: libc::c_int) -> io::Result<RawFd> {
    // SAFETY: the path ends in NUL.
    check(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) })
}

fn write(path: &CStr, text: &[u8]) -> io::Result<()> {
    let descriptor = open(path, libc::O_WRONLY)?;
    // SAFETY: just opened, and has no other owner.
    File::from(unsafe { OwnedFd::from_raw_fd(descriptor) }).write_all(text)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A control message that has room for one descriptor, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 32]);

/// Lends a message with one byte and room for a descriptor.
fn with_message<T>(call: impl FnOnce(&mut libc::msghdr) -> T) -> T {
    let (mut byte, mut control) = ([0_u8], Control([0; 32]));
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: a message header of zeros is valid: no name, no parts, no control data.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: only computes a size.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as usize;
    call(&mut message)
}

fn send(socket: RawFd, descriptor: RawFd) -> io::Result<()> {
    with_message(|message| {
        // SAFETY: the control buffer has room for one header and one descriptor.
        let sent = unsafe {
            let control = libc::CMSG_FIRSTHDR(message);
            (*control).cmsg_level = libc::SOL_SOCKET;
            (*control).cmsg_type = libc::SCM_RIGHTS;
            (*control).cmsg_len = libc::CMSG_LEN(4) as usize;
            libc::CMSG_DATA(control).cast::<RawFd>().write_unaligned(descriptor);
            libc::sendmsg(socket, message, 0)
        };
        if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
    })
}

fn receive(socket: &UnixStream) -> Option<OwnedFd> {
    with_message(|message| {
        // SAFETY: the kernel writes within the lengths that the message states.
        let got = unsafe { libc::recvmsg(socket.as_raw_fd(), message, libc::MSG_CMSG_CLOEXEC) };
        // SAFETY: reads within the control data that has just been filled.
        let control = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }.filter(|_| got == 1)?;
        assert_eq!(control.cmsg_type, libc::SCM_RIGHTS);
        // SAFETY: that kind of message holds one descriptor, which is now ours.
        Some(unsafe {
            OwnedFd::from_raw_fd(libc::CMSG_DATA(control).cast::<RawFd>().read_unaligned())
        })
    })
}
