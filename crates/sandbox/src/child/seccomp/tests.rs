//! What the programs answer, by an interpreter here and in `laws`, by the kernel in `kernel` and
//! `ordinary`.

mod forbidden;
mod interpreter;
mod kernel;
mod laws;
mod ordinary;

use libc::{EAFNOSUPPORT, ENOSYS, EOPNOTSUPP, EPERM, EPROTONOSUPPORT, c_int};

use self::interpreter::{Data, run};
use super::*;
use crate::observe::syscalls::{self, numbers};

/// One past the highest number that a call has or will have for a while.
const CALLS: c_long = 700;

const NAMESPACES: Closed =
    Closed { user_namespaces: false, sockets: Sockets::Ordinary, host_processes: false };
const LANDLOCK: Closed =
    Closed { user_namespaces: false, sockets: Sockets::StreamsOnly, host_processes: true };
const OPEN: Closed =
    Closed { user_namespaces: true, sockets: Sockets::Ordinary, host_processes: false };

const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
const NOTIFIED: u32 = libc::SECCOMP_RET_USER_NOTIF;

fn refused(errno: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}

fn ask(program: &Program, call: c_long, args: [u64; 6]) -> u32 {
    run(program, &Data::native(call, args)).0
}

fn register(value: c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

#[test]
fn calls_are_refused_by_number() {
    for what in [NAMESPACES, LANDLOCK, OPEN] {
        let program = closed(&what);
        for (call, _, errno) in forbidden::BY_NUMBER {
            assert_eq!(ask(&program, *call, [u64::MAX; 6]), refused(*errno), "{call}");
            assert_eq!(ask(&program, *call, [0; 6]), refused(*errno), "{call}");
        }
    }
}

#[test]
fn nothing_else_is_refused() {
    let tables = [forbidden::BY_NUMBER, forbidden::BY_ARGUMENT, forbidden::STREAMS_ONLY].concat();
    for call in (0..CALLS).filter(|call| tables.iter().all(|(listed, ..)| listed != call)) {
        for args in [[0; 6], [u64::MAX; 6]] {
            assert_eq!(ask(&closed(&NAMESPACES), call, args), ALLOWED, "{call}");
            assert_eq!(ask(&closed(&LANDLOCK), call, args), ALLOWED, "{call}");
        }
    }
}

#[test]
fn namespaces_are_refused_unless_granted() {
    let new = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let thread = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND;
    let (shut, open) = (closed(&NAMESPACES), closed(&OPEN));
    for flag in new {
        for flags in [flag, flag | libc::SIGCHLD, flag | thread] {
            let args = [register(flags), 0, 0, 0, 0, 0];
            for call in [libc::SYS_clone, libc::SYS_unshare] {
                assert_eq!(ask(&shut, call, args), refused(EPERM), "{call} {flags:#x}");
                assert_eq!(ask(&open, call, args), ALLOWED, "{call} {flags:#x}");
            }
        }
    }
    let time = [0x80, 0, 0, 0, 0, 0];
    assert_eq!(ask(&shut, libc::SYS_unshare, time), refused(EPERM));
    assert_eq!(ask(&shut, libc::SYS_unshare, [1 << 40, 0, 0, 0, 0, 0]), refused(EPERM));
    assert_eq!(ask(&shut, libc::SYS_unshare, [register(thread), 0, 0, 0, 0, 0]), ALLOWED);
    assert_eq!(ask(&shut, libc::SYS_clone, [register(libc::SIGCHLD), 0, 0, 0, 0, 0]), ALLOWED);
    assert_eq!(ask(&shut, libc::SYS_clone3, [0; 6]), refused(ENOSYS));
    assert_eq!(ask(&open, libc::SYS_clone3, [0; 6]), ALLOWED);
}

#[test]
fn files_have_no_set_uid_bit_and_are_no_devices() {
    let [made, temporary, written, directory] = [
        libc::O_CREAT | libc::O_WRONLY,
        libc::O_TMPFILE | libc::O_WRONLY,
        libc::O_RDWR,
        libc::O_DIRECTORY,
    ]
    .map(register);
    for (call, args, refuses) in [
        (libc::SYS_openat, [0, 0, made, 0o4755, 0, 0], true),
        (libc::SYS_openat, [0, 0, made, 0o2755, 0, 0], true),
        (libc::SYS_openat, [0, 0, temporary, 0o4755, 0, 0], true),
        (libc::SYS_openat, [0, 0, made, 0o1777, 0, 0], false),
        // Without a file to make, the last register means nothing.
        (libc::SYS_openat, [0, 0, written, u64::MAX, 0, 0], false),
        (libc::SYS_openat, [0, 0, directory, u64::MAX, 0, 0], false),
        (libc::SYS_fchmod, [3, 0o4755, 0, 0, 0, 0], true),
        (libc::SYS_fchmod, [3, 0o1777, 0, 0, 0, 0], false),
        (libc::SYS_fchmodat, [3, 0, 0o4755, 0, 0, 0], true),
        (libc::SYS_fchmodat, [3, 0, 0o2755, 0, 0, 0], false),
        (libc::SYS_fchmodat, [3, 0, 0o755, 0, 0, 0], false),
        (numbers::FCHMODAT2, [3, 0, 0o6755, 0, 0, 0], true),
        (numbers::FCHMODAT2, [3, 0, 0o755, 0, 0, 0], false),
        (libc::SYS_mknodat, [3, 0, 0o060_600, 0, 0, 0], true),
        (libc::SYS_mknodat, [3, 0, 0o020_600, 0, 0, 0], true),
        (libc::SYS_mknodat, [3, 0, 0o104_755, 0, 0, 0], true),
        (libc::SYS_mknodat, [3, 0, 0o4755, 0, 0, 0], true),
        (libc::SYS_mknodat, [3, 0, 0o010_600, 0, 0, 0], false),
        (libc::SYS_mknodat, [3, 0, 0o140_600, 0, 0, 0], false),
        (libc::SYS_mknodat, [3, 0, 0o100_600, 0, 0, 0], false),
    ] {
        let wanted = if refuses { refused(EPERM) } else { ALLOWED };
        assert_eq!(ask(&closed(&NAMESPACES), call, args), wanted, "{call} {args:x?}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn nor_by_the_older_calls() {
    let made = register(libc::O_CREAT | libc::O_WRONLY);
    for (call, args, refuses) in [
        (libc::SYS_open, [0, made, 0o4755, 0, 0, 0], true),
        (libc::SYS_open, [0, register(libc::O_RDWR), u64::MAX, 0, 0, 0], false),
        (libc::SYS_creat, [0, 0o4755, 0, 0, 0, 0], true),
        (libc::SYS_creat, [0, 0o644, 0, 0, 0, 0], false),
        (libc::SYS_chmod, [0, 0o4755, 0, 0, 0, 0], true),
        (libc::SYS_chmod, [0, 0o755, 0, 0, 0, 0], false),
        (libc::SYS_mknod, [0, 0o060_600, 0, 0, 0, 0], true),
        (libc::SYS_mknod, [0, 0o102_755, 0, 0, 0, 0], true),
        (libc::SYS_mknod, [0, 0o010_600, 0, 0, 0, 0], false),
    ] {
        let wanted = if refuses { refused(EPERM) } else { ALLOWED };
        assert_eq!(ask(&closed(&NAMESPACES), call, args), wanted, "{call} {args:x?}");
    }
}

#[test]
fn no_names_by_requests_of_file_systems() {
    let program = closed(&NAMESPACES);
    let [made, snapshot, bcachefs] = [0x5000_940e, 0x5000_9417, 0x4010_bc10];
    for request in [made, snapshot, bcachefs, made | 0xabcd_0000_0000_0000] {
        let answer = ask(&program, libc::SYS_ioctl, [3, request, 0, 0, 0, 0]);
        assert_eq!(answer, refused(libc::ENOTTY), "{request:#x}");
    }
    // Copies that share their blocks.
    for request in [0x4004_9409, 0x4020_940d, 0xc018_9436] {
        assert_eq!(ask(&program, libc::SYS_ioctl, [3, request, 0, 0, 0, 0]), ALLOWED);
    }
}

#[test]
fn terminals_and_personalities() {
    let program = closed(&NAMESPACES);
    for request in [0x540c, 0x5412, 0x541c, 0x5423] {
        for high in [0, 1 << 32, 0xdead_beef << 32] {
            let args = [0, request | high, 0, 0, 0, 0];
            assert_eq!(ask(&program, libc::SYS_ioctl, args), refused(EPERM), "{args:x?}");
        }
        let args = [request, request << 32, request, 0, 0, 0];
        assert_eq!(ask(&program, libc::SYS_ioctl, args), ALLOWED);
    }
    for (value, wanted) in [
        (0, ALLOWED),
        (0x0008, ALLOWED),
        (0x0002_0008, ALLOWED),
        (0x0004_0000, ALLOWED),
        (0xffff_ffff, ALLOWED),
        (u64::MAX, ALLOWED),
        (0x0040_0000, refused(EPERM)),
        (0x0010_0000, refused(EPERM)),
        (0x0004_0001, refused(EPERM)),
    ] {
        let args = [value, 0, 0, 0, 0, 0];
        assert_eq!(ask(&program, libc::SYS_personality, args), wanted, "{value:#x}");
    }
}

#[test]
fn the_limit_of_core_files_stays() {
    const PRETENDED: u32 = libc::SECCOMP_RET_ERRNO;
    let program = closed(&NAMESPACES);
    let ask = |call, args| ask(&program, call, args);
    assert_eq!(ask(libc::SYS_setrlimit, [4, 0x1000, 0, 0, 0, 0]), PRETENDED);
    assert_eq!(ask(libc::SYS_setrlimit, [7, 0x1000, 0, 0, 0, 0]), ALLOWED);
    for pointer in [0x1000, 1 << 32] {
        assert_eq!(ask(libc::SYS_prlimit64, [0, 4, pointer, 0, 0, 0]), PRETENDED);
        assert_eq!(ask(libc::SYS_prlimit64, [0, 7, pointer, 0, 0, 0]), ALLOWED);
    }
    assert_eq!(ask(libc::SYS_prlimit64, [0, 4, 0, 0x1000, 0, 0]), ALLOWED);
}

#[test]
fn only_a_process_itself_is_changed_where_those_of_the_host_can_be_named() {
    let (own, hosts) = (closed(&NAMESPACES), closed(&LANDLOCK));
    for (call, args, allowed) in [
        (libc::SYS_prlimit64, [0, 7, 0x1000, 0], true),
        (libc::SYS_prlimit64, [9, 7, 0, 0x1000], true),
        (libc::SYS_prlimit64, [9, 7, 0x1000, 0], false),
        (libc::SYS_prlimit64, [9, 7, 1 << 32, 0], false),
        (libc::SYS_setpriority, [0, 0, 5, 0], true),
        (libc::SYS_setpriority, [1, 0, 5, 0], true),
        (libc::SYS_setpriority, [0, 9, 5, 0], false),
        (libc::SYS_setpriority, [2, 0, 5, 0], false),
        (libc::SYS_ioprio_set, [1, 0, 5, 0], true),
        (libc::SYS_ioprio_set, [1, 9, 5, 0], false),
        (libc::SYS_ioprio_set, [3, 0, 5, 0], false),
        (libc::SYS_sched_setaffinity, [0, 8, 0x1000, 0], true),
        (libc::SYS_sched_setaffinity, [9, 8, 0x1000, 0], false),
        (libc::SYS_sched_setattr, [9, 0x1000, 0, 0], false),
    ] {
        let [a, b, c, d] = args;
        let args = [a, b, c, d, 0, 0];
        assert_eq!(ask(&own, call, args), ALLOWED, "{call} {args:?}");
        let expected = if allowed { ALLOWED } else { refused(EPERM) };
        assert_eq!(ask(&hosts, call, args), expected, "{call} {args:?}");
    }
    for call in [libc::SYS_shmget, libc::SYS_shmat, libc::SYS_msgget, libc::SYS_mq_open] {
        assert_eq!(ask(&own, call, [0; 6]), ALLOWED);
        assert_eq!(ask(&hosts, call, [0; 6]), refused(ENOSYS));
    }
}

#[test]
fn sockets() {
    use libc::{AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_UNIX, AF_UNSPEC, AF_VSOCK};
    use libc::{
        IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_MPTCP, IPPROTO_SCTP, IPPROTO_TCP, IPPROTO_UDP,
    };
    use libc::{
        SOCK_CLOEXEC, SOCK_DCCP, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_RAW, SOCK_SEQPACKET, SOCK_STREAM,
    };
    const SOCK_PACKET: c_int = 10;
    const SMC: c_int = 256;
    const L2TP: c_int = 115;
    let (ordinary, streams) = (closed(&NAMESPACES), closed(&LANDLOCK));
    let [perm, family, protocol] = [EPERM, EAFNOSUPPORT, EPROTONOSUPPORT].map(refused);
    for (args, in_namespace, by_landlock) in [
        ([AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0], ALLOWED, ALLOWED),
        ([AF_UNIX, SOCK_SEQPACKET, 0], ALLOWED, ALLOWED),
        ([AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0], ALLOWED, perm),
        // For AF_UNIX the kernel makes a datagram socket of it.
        ([AF_UNIX, SOCK_RAW, 0], ALLOWED, perm),
        ([AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0], ALLOWED, ALLOWED),
        ([AF_INET6, SOCK_STREAM, IPPROTO_TCP], ALLOWED, ALLOWED),
        ([AF_INET, SOCK_STREAM, IPPROTO_MPTCP], protocol, protocol),
        ([AF_INET, SOCK_STREAM, IPPROTO_SCTP], protocol, protocol),
        ([AF_INET6, SOCK_STREAM, SMC], protocol, protocol),
        ([AF_INET, SOCK_DGRAM, 0], ALLOWED, perm),
        ([AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP], ALLOWED, perm),
        ([AF_INET, SOCK_DGRAM, IPPROTO_ICMP], ALLOWED, perm),
        ([AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6], ALLOWED, perm),
        ([AF_INET, SOCK_DGRAM, L2TP], protocol, perm),
        ([AF_INET, SOCK_RAW, 1], perm, perm),
        ([AF_INET6, SOCK_RAW | SOCK_CLOEXEC, 255], perm, perm),
        ([AF_INET, SOCK_PACKET, 0], perm, perm),
        ([AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP], perm, perm),
        ([AF_INET, SOCK_DCCP, 0], perm, perm),
        ([AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0], ALLOWED, ALLOWED),
        ([AF_NETLINK, SOCK_RAW, 9], family, family),
        ([AF_PACKET, SOCK_RAW, 0], family, family),
        ([AF_VSOCK, SOCK_STREAM, 0], family, family),
        ([libc::AF_ALG, SOCK_SEQPACKET, 0], family, family),
        ([AF_UNSPEC, SOCK_STREAM, 0], family, family),
        ([-1, SOCK_STREAM, 0], family, family),
    ] {
        // The kernel takes ints, so the high halves mean nothing.
        for high in [0, 0xffff_ffff << 32] {
            let [a, b, c] = args.map(|arg| register(arg) | high);
            let registers = [a, b, c, 0, 0, 0];
            assert_eq!(ask(&ordinary, libc::SYS_socket, registers), in_namespace, "{args:?}");
            assert_eq!(ask(&streams, libc::SYS_socket, registers), by_landlock, "{args:?}");
        }
    }
    for (args, in_namespace, by_landlock) in [
        ([AF_UNIX, SOCK_STREAM], ALLOWED, ALLOWED),
        ([AF_UNIX, SOCK_DGRAM], ALLOWED, perm),
        ([libc::AF_TIPC, SOCK_STREAM], family, family),
    ] {
        let [a, b] = args.map(register);
        let registers = [a, b, 0, 0x1000, 0, 0];
        assert_eq!(ask(&ordinary, libc::SYS_socketpair, registers), in_namespace, "{args:?}");
        assert_eq!(ask(&streams, libc::SYS_socketpair, registers), by_landlock, "{args:?}");
    }
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        let mut args = [0; 6];
        assert_eq!(ask(&streams, call, args), ALLOWED);
        args[flags] = register(libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL);
        assert_eq!(ask(&streams, call, args), refused(EOPNOTSUPP));
        assert_eq!(ask(&ordinary, call, args), ALLOWED);
    }
}

#[test]
fn other_architectures_are_killed_and_x32_does_not_exist() {
    let programs =
        [closed(&NAMESPACES), closed(&OPEN), watch(Watch::Changes), watch(Watch::Everything)];
    for program in &programs {
        for architecture in [0x4000_0003, 0, u32::MAX, ARCHITECTURE ^ 1] {
            let data = Data { architecture, ..Data::native(libc::SYS_getpid, [0; 6]) };
            assert_eq!(run(program, &data).0, libc::SECCOMP_RET_KILL_PROCESS);
        }
        assert_eq!(ask(program, -1, [0; 6]), ALLOWED, "a call that a tracer has skipped");
        for call in [libc::SYS_getpid, libc::SYS_openat, 512, 0x3fff_ffff] {
            assert_eq!(ask(program, call | 0x4000_0000, [0; 6]), refused(ENOSYS));
        }
    }
}

#[test]
fn only_few_calls_depend_on_their_arguments() {
    // Those the kernel cannot remember: each of them costs a run of the program every time.
    let programs = [
        (closed(&NAMESPACES), 18),
        (closed(&LANDLOCK), 27),
        (closed(&OPEN), 16),
        (watch(Watch::Changes), 4),
        (watch(Watch::Everything), 2),
        (both(&NAMESPACES, Watch::Changes), 22),
    ];
    for (program, most) in programs {
        let by_argument: Vec<c_long> = (0..CALLS)
            .filter(|call| run(&program, &Data::native(*call, [0; 6])).1.arguments)
            .collect();
        assert!(by_argument.len() <= most, "{by_argument:?}");
        assert!(program.0.len() < 500, "{}", program.0.len());
        for call in 0..CALLS {
            let taken = run(&program, &Data::native(call, [0; 6])).1.instructions;
            assert!(taken <= 25, "{call} takes {taken} instructions");
        }
        let reading = run(&program, &Data::native(libc::SYS_openat, [0; 6])).1.instructions;
        assert!(reading <= 8, "a plain open takes {reading} instructions");
    }
}

#[test]
fn what_is_watched_can_be_described() {
    let programs = [watch(Watch::Changes), watch(Watch::Everything)];
    let everything = [u64::MAX; 6];
    for call in 0..CALLS {
        let described = syscalls::describe(call, everything);
        let answer = ask(&programs[1], call, everything);
        assert_eq!(answer == NOTIFIED, described.is_some(), "{call}: {described:?}");
        let changes = ask(&programs[0], call, everything);
        let starts = matches!(described, Some(syscalls::Described::Execute { .. }));
        assert_eq!(changes == NOTIFIED, described.is_some() && !starts, "{call}");
    }
}

#[test]
fn a_path_at_any_address_is_a_path() {
    for program in [watch(Watch::Changes), watch(Watch::Everything)] {
        let times = |pointer| ask(&program, libc::SYS_utimensat, [3, pointer, 0, 0, 0, 0]);
        assert_eq!(times(0), ALLOWED);
        for pointer in [1, 1 << 31, 1 << 32, 1 << 46] {
            assert_eq!(times(pointer), NOTIFIED, "{pointer:#x}");
        }
    }
}

#[test]
fn far_jumps() {
    let long = (0..300).fold(Tree::Answer(1), |rest, value| {
        Word::CALL.is(value).choose(Tree::Answer(value), rest)
    });
    let program = Word::ARCHITECTURE.is(ARCHITECTURE).choose(long, Tree::Answer(9)).assemble();
    for call in [0, 150, 299] {
        assert_eq!(ask(&program, call, [0; 6]), number(call));
    }
    assert_eq!(ask(&program, 300, [0; 6]), 1);
    let foreign = Data { architecture: 0, ..Data::native(5, [0; 6]) };
    assert_eq!(run(&program, &foreign).0, 9);
}
