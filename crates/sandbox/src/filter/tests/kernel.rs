//! The programs in this kernel: what they refuse, what they hand over, and what still works.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use super::*;

/// An address at which no process has anything.
const BAD: u64 = 1;
/// Stands for a pointer to the path of a file in a directory that does not exist.
const PATH: u64 = u64::from_le_bytes(*b"pathpath");
/// Flags that no kernel knows, and a descriptor that is not open.
const ALL: u64 = 0xffff_ffff;

/// What is refused whatever the arguments, with arguments that do nothing where it is not.
#[rustfmt::skip]
pub(super) const BY_NUMBER: &[(c_long, [u64; 6], c_int)] = &[
    (libc::SYS_add_key, [BAD; 6], EPERM),
    (libc::SYS_keyctl, [9999, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_request_key, [BAD; 6], EPERM),
    (libc::SYS_bpf, [9999, BAD, 0, 0, 0, 0], EPERM),
    (libc::SYS_perf_event_open, [BAD, 0, 0, 0, ALL, 0], EPERM),
    (libc::SYS_userfaultfd, [ALL, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_fanotify_init, [ALL, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_kexec_load, [0, ALL, BAD, ALL, 0, 0], EPERM),
    (numbers::KEXEC_FILE_LOAD, [ALL, ALL, 0, BAD, ALL, 0], EPERM),
    (libc::SYS_reboot, [0; 6], EPERM),
    (libc::SYS_init_module, [BAD, 0, BAD, 0, 0, 0], EPERM),
    (libc::SYS_finit_module, [ALL, BAD, ALL, 0, 0, 0], EPERM),
    (libc::SYS_delete_module, [BAD, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_mount, [BAD; 6], EPERM),
    (libc::SYS_umount2, [BAD, ALL, 0, 0, 0, 0], EPERM),
    (libc::SYS_pivot_root, [BAD; 6], EPERM),
    (libc::SYS_chroot, [BAD; 6], EPERM),
    (libc::SYS_setns, [ALL, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_move_mount, [ALL, BAD, ALL, BAD, ALL, 0], EPERM),
    (libc::SYS_open_tree, [ALL, BAD, ALL, 0, 0, 0], EPERM),
    (numbers::OPEN_TREE_ATTR, [ALL, BAD, ALL, 0, 0, 0], EPERM),
    (libc::SYS_mount_setattr, [ALL, BAD, ALL, BAD, 0, 0], EPERM),
    (libc::SYS_fsopen, [BAD, ALL, 0, 0, 0, 0], EPERM),
    (libc::SYS_fsconfig, [ALL, 9999, 0, 0, 0, 0], EPERM),
    (libc::SYS_fsmount, [ALL; 6], EPERM),
    (libc::SYS_fspick, [ALL, BAD, ALL, 0, 0, 0], EPERM),
    (libc::SYS_swapon, [BAD, ALL, 0, 0, 0, 0], EPERM),
    (libc::SYS_swapoff, [BAD, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_quotactl, [ALL, BAD, 0, 0, 0, 0], EPERM),
    (libc::SYS_quotactl_fd, [ALL, ALL, 0, 0, 0, 0], EPERM),
    (libc::SYS_acct, [BAD; 6], EPERM),
    (libc::SYS_nfsservctl, [ALL; 6], EPERM),
    (libc::SYS_lookup_dcookie, [0, BAD, 0, 0, 0, 0], EPERM),
    (libc::SYS_open_by_handle_at, [ALL, BAD, 0, 0, 0, 0], EPERM),
    (libc::SYS_settimeofday, [BAD, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_clock_settime, [9999, BAD, 0, 0, 0, 0], EPERM),
    (libc::SYS_clock_adjtime, [9999, BAD, 0, 0, 0, 0], EPERM),
    (libc::SYS_adjtimex, [BAD; 6], EPERM),
    (libc::SYS_sethostname, [BAD, ALL, 0, 0, 0, 0], EPERM),
    (libc::SYS_setdomainname, [BAD, ALL, 0, 0, 0, 0], EPERM),
    (libc::SYS_syslog, [9999, 0, 0, 0, 0, 0], EPERM),
    // Does nothing, because the child has no terminal.
    (libc::SYS_vhangup, [0; 6], EPERM),
    #[cfg(target_arch = "x86_64")] (libc::SYS_iopl, [9999, 0, 0, 0, 0, 0], EPERM),
    #[cfg(target_arch = "x86_64")] (libc::SYS_ioperm, [u64::MAX, u64::MAX, 0, 0, 0, 0], EPERM),
    (libc::SYS_io_uring_setup, [0, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_io_uring_enter, [ALL; 6], ENOSYS),
    (libc::SYS_io_uring_register, [ALL; 6], ENOSYS),
    (libc::SYS_memfd_secret, [ALL, 0, 0, 0, 0, 0], ENOSYS),
];

/// What is refused because of its arguments. Nobody needs a privilege to get past that point.
#[rustfmt::skip]
const BY_ARGUMENT: &[(c_long, [u64; 6], c_int)] = &[
    // A thread without shared handlers is refused by the kernel itself, before anything is made.
    (libc::SYS_clone, [0x1001_0000, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_clone, [0x4001_0000, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_clone, [0x0003_0000, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_clone3, [BAD, 0, 0, 0, 0, 0], ENOSYS),
    // So is an unknown flag beside the known one.
    (libc::SYS_unshare, [0x1000_0001, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_unshare, [0x0002_0001, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_unshare, [0x0000_0081, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_ioctl, [ALL, 0x5412, BAD, 0, 0, 0], EPERM),
    (libc::SYS_ioctl, [ALL, 0x1_0000_541c, BAD, 0, 0, 0], EPERM),
    (libc::SYS_ioctl, [ALL, 0xabcd_0000_5423, BAD, 0, 0, 0], EPERM),
    (libc::SYS_personality, [0x0040_0000, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_openat, [ALL, PATH, 0o101, 0o4755, 0, 0], EPERM),
    (libc::SYS_fchmod, [ALL, 0o4755, 0, 0, 0, 0], EPERM),
    (libc::SYS_fchmodat, [ALL, PATH, 0o2755, 0, 0, 0], EPERM),
    (numbers::FCHMODAT2, [ALL, PATH, 0o4755, 0, 0, 0], EPERM),
    (libc::SYS_mknodat, [ALL, PATH, 0o060_600, 0, 0, 0], EPERM),
    (libc::SYS_mknodat, [ALL, PATH, 0o104_755, 0, 0, 0], EPERM),
    #[cfg(target_arch = "x86_64")] (libc::SYS_open, [PATH, 0o101, 0o4755, 0, 0, 0], EPERM),
    #[cfg(target_arch = "x86_64")] (libc::SYS_creat, [PATH, 0o4755, 0, 0, 0, 0], EPERM),
    #[cfg(target_arch = "x86_64")] (libc::SYS_chmod, [PATH, 0o4755, 0, 0, 0, 0], EPERM),
    #[cfg(target_arch = "x86_64")] (libc::SYS_mknod, [PATH, 0o020_600, 0, 0, 0, 0], EPERM),
    // Types that do not exist, but for the family that comes first.
    (libc::SYS_socket, [40, 7, 0, 0, 0, 0], EAFNOSUPPORT),
    (libc::SYS_socket, [16, 3, 15, 0, 0, 0], EAFNOSUPPORT),
    (libc::SYS_socket, [2, 6, 0, 0, 0, 0], EPERM),
    (libc::SYS_socket, [10, 1, 262, 0, 0, 0], EPROTONOSUPPORT),
    (libc::SYS_socketpair, [2, 1, 0, BAD, 0, 0], EAFNOSUPPORT),
    #[cfg(target_arch = "x86_64")] (libc::SYS_getpid | 0x4000_0000, [0; 6], ENOSYS),
];

/// What is refused where only Landlock confines sockets.
const STREAMS_ONLY: &[(c_long, [u64; 6], c_int)] = &[
    (libc::SYS_socket, [1, 2, 0, 0, 0, 0], EPERM),
    (libc::SYS_socket, [2, 2, 0, 0, 0, 0], EPERM),
    (libc::SYS_socket, [10, 2, 17, 0, 0, 0], EPERM),
    (libc::SYS_socketpair, [1, 2, 0, BAD, 0, 0], EPERM),
    (libc::SYS_sendto, [ALL, BAD, 0, 0x2000_0000, 0, 0], EOPNOTSUPP),
    (libc::SYS_sendmsg, [ALL, BAD, 0x2000_0000, 0, 0, 0], EOPNOTSUPP),
    (libc::SYS_sendmmsg, [ALL, BAD, 1, 0x2000_0000, 0, 0], EOPNOTSUPP),
];

/// Added to an errno to tell the program's own from the kernel's.
const MARK: c_int = 2000;

#[test]
fn each_forbidden_call_is_refused_by_the_program_and_not_by_the_kernel() {
    let both = [BY_NUMBER, BY_ARGUMENT].concat();
    let landlock = [&both, STREAMS_ONLY].concat();
    for (what, rows) in [(NAMESPACES, both), (LANDLOCK, landlock)] {
        let program = closed(&what);
        let calls: Vec<_> = rows.iter().map(|(call, args, _)| (*call, *args)).collect();
        let bare = errors(&[], &calls);
        let plain = errors(&[(&program, Install::Plain)], &calls);
        let told = errors(&[(&marked(&program), Install::Plain)], &calls);
        for (row, (_, _, errno)) in rows.iter().enumerate() {
            assert_eq!(plain[row], *errno, "{:x?}", rows[row]);
            assert_eq!(told[row], *errno + MARK, "{:x?}", rows[row]);
            assert!(bare[row] < MARK, "{:x?}", rows[row]);
        }
    }
}

/// Without the listener's owner the kernel answers `ENOSYS` to what is handed over.
#[test]
fn watched_calls_are_handed_over_and_others_are_not() {
    let watched: Vec<_> = (0..CALLS).filter_map(with_paths).collect();
    let bare = errors(&[], &watched);
    for how in [Watch::Changes, Watch::Everything] {
        let seen = errors(&[(&watch(how), Install::Listener)], &watched);
        for (row, (call, args)) in watched.iter().enumerate() {
            if bare[row] == ENOSYS {
                skipped(&format!("this kernel has no call {call}"));
                continue;
            }
            let starts = [libc::SYS_execve, libc::SYS_execveat].contains(call);
            let handed = how == Watch::Everything || !starts;
            let wanted = if handed { ENOSYS } else { bare[row] };
            assert_eq!(seen[row], wanted, "{call} {args:x?} {how:?}");
        }
    }
    let reads = [(libc::SYS_openat, [ALL, PATH, 0, 0, 0, 0]), (libc::SYS_getpid, [0; 6])];
    let seen = errors(&[(&watch(Watch::Changes), Install::Listener)], &reads);
    assert_eq!(seen, [libc::ENOENT, 0]);
    let seen = errors(&[(&watch(Watch::Everything), Install::Listener)], &reads);
    assert_eq!(seen, [ENOSYS, 0]);
}

#[test]
fn what_is_closed_is_not_handed_over() {
    let device = [(libc::SYS_mknodat, [ALL, PATH, 0o060_600, 0, 0, 0])];
    let (closed, watch) = (closed(&NAMESPACES), watch(Watch::Everything));
    let (closed, watch) = ((&closed, Install::Plain), (&watch, Install::Listener));
    assert_eq!(errors(&[closed, watch], &device), [EPERM]);
    assert_eq!(errors(&[watch, closed], &device), [EPERM]);
}

/// A watched call with its paths in place, for writing if it opens.
fn with_paths(call: c_long) -> Option<(c_long, [u64; 6])> {
    let numbered = [0, 1, 2, 3, 4, 5];
    let mut args = [0; 6];
    let mut put = |path: calls::PathArgument| args[usize::try_from(path.pointer).unwrap()] = PATH;
    match calls::describe(call, numbered)? {
        calls::Described::Path(call) => call.paths().for_each(&mut put),
        calls::Described::Execute { path, .. } => put(path),
        calls::Described::OpenHow { .. } | calls::Described::Connect { .. } => {}
    }
    if let Some(flags) = args.iter().position(|arg| *arg == PATH).map(|path| path + 1)
        && let Some(calls::Described::Path(described)) = calls::describe(call, [0; 6])
        && described.operation == crate::Operation::Read
    {
        args[flags] = 1;
    }
    Some((call, args))
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_of_another_architecture_kills() {
    let getpid = || {
        // SAFETY: getpid takes no arguments and touches no memory; the registers that the 32-bit
        // entry may clear are declared.
        unsafe {
            std::arch::asm!("int 0x80", inlateout("eax") 20 => _, out("r8") _, out("r9") _,
                out("r10") _, out("r11") _);
        }
    };
    if child(&[], getpid) != 0 {
        skipped("this kernel has no 32-bit calls");
        return;
    }
    let status = child(&[(&closed(&NAMESPACES), Install::Plain)], getpid);
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS, "{status:#x}");
}

/// Scripts that have to say the same with the program as without it.
#[rustfmt::skip]
const ORDINARY: &[(&str, &str)] = &[
    ("bash", "for i in 3 1 2; do (echo $i) & done | sort; cat <(echo sub); cat <<< here; wait
        mkdir -p a/b; mkfifo a/f; chmod 1777 a; touch a/x; ln -s x a/y; cp -a a c; mv c d
        find d | sort; tar cf - d | tar tf - | wc -l; rm -r a d; setarch -R echo set"),
    ("git", "export GIT_CONFIG_GLOBAL=/dev/null; git init -q r && cd r && echo a > a && git add a
        git -c user.name=n -c user.email=n@example.org commit -qm m && echo b > b
        git status --short && git log --format=%s && git gc -q && git fsck 2>&1 | tail -1"),
    ("python3", "timeout 60 python3 -B $ORDINARY/ordinary.py"),
    ("node", "timeout 60 node $ORDINARY/ordinary.js"),
    ("gcc", "echo 'int main(void) { return 0; }' > p.c; gcc -O1 -pthread p.c && ./a.out && echo ran"),
    ("strace", "strace -f -o log sh -c 'true; ls > ls' && grep -c 'exited with 0' log"),
    ("gdb", "gdb -nx --batch -ex run --args $(command -v true) 2>&1 | grep -o 'exited normally'"),
    ("ip", "ip -brief address show dev lo"),
];

#[test]
fn ordinary_programs_work_inside() {
    for (program, script) in ORDINARY {
        let bare = bash(script, None);
        if !bare.status.success() {
            skipped(&format!("{program} does not work here: {bare:?}"));
            continue;
        }
        for what in [NAMESPACES, LANDLOCK, OPEN] {
            let inside = bash(script, Some(closed(&what)));
            assert_eq!(inside.stdout, bare.stdout, "{program} {what:?} {inside:?}");
            assert!(inside.status.success(), "{program} {what:?} {inside:?}");
        }
    }
}

#[test]
fn user_namespaces_are_for_those_who_have_them() {
    let make = "unshare --user --map-root-user true";
    if !bash(make, None).status.success() {
        return skipped("there are no user namespaces here");
    }
    assert!(!bash(make, Some(closed(&NAMESPACES))).status.success());
    assert!(bash(make, Some(closed(&OPEN))).status.success());
}

/// Runs a script in a directory of its own, behind a program.
fn bash(script: &str, program: Option<Program>) -> Output {
    static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let run = RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("ringwall-filter-{}-{run}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir(&directory).unwrap();
    let mut command = Command::new("bash");
    let ordinary = concat!(env!("CARGO_MANIFEST_DIR"), "/src/filter/tests/ordinary");
    command.args(["-c", script]).current_dir(&directory).env("ORDINARY", ordinary);
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe {
        command.pre_exec(move || match &program {
            Some(program) if install(program, Install::Plain) != 0 => {
                Err(io::Error::last_os_error())
            }
            _ => Ok(()),
        });
    }
    let output = command.output();
    std::fs::remove_dir_all(&directory).unwrap();
    output.unwrap()
}

/// The errno of each call, zero for success, as a child behind these programs gets it.
fn errors(programs: &[(&Program, Install)], calls: &[(c_long, [u64; 6])]) -> Vec<c_int> {
    let size = calls.len() * size_of::<c_int>();
    // SAFETY: a new mapping, which nothing else points into. It holds a c_int for each call, and
    // stays until the end of the test.
    let shared = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let start = libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        std::slice::from_raw_parts_mut(start.cast::<c_int>(), calls.len())
    };
    let path = c"/nonexistent-ringwall/x".as_ptr() as u64;
    let status = child(programs, || {
        for (errno, (call, args)) in shared.iter_mut().zip(calls) {
            let [a, b, c, d, e, f] = args.map(|arg| if arg == PATH { path } else { arg });
            // SAFETY: the tables above hold no call that touches the memory of this process, and
            // none that does harm where it is not refused.
            *errno = unsafe {
                match libc::syscall(*call, a, b, c, d, e, f) {
                    -1 => *libc::__errno_location(),
                    _ => 0,
                }
            };
        }
    });
    assert_eq!(status, 0, "the child did not end well");
    shared.to_vec()
}

/// Runs the body in a child that has no terminal and is behind these programs.
fn child(programs: &[(&Program, Install)], body: impl FnOnce()) -> c_int {
    let mut status = 0;
    // SAFETY: the child of a process with threads may only make system calls, and does: what it
    // needs was allocated before. It ends by _exit.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::setsid();
            if programs.iter().any(|(program, how)| install(program, *how) != 0) {
                libc::_exit(1);
            }
            body();
            libc::_exit(0);
        }
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
    }
    status
}

/// How a program is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Install {
    Plain,
    /// With a listener, which is closed at once.
    Listener,
}

/// Makes system calls only. Zero for success.
fn install(program: &Program, how: Install) -> c_int {
    let length = program.0.len() as u16;
    let code = libc::sock_fprog { len: length, filter: program.0.as_ptr().cast_mut() };
    let flags = match how {
        Install::Plain => 0,
        Install::Listener => libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
    };
    // SAFETY: the kernel copies the program, which outlives the call.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return -1;
        }
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        match (how, libc::syscall(libc::SYS_seccomp, mode, flags, &raw const code)) {
            (Install::Plain, done) => done as c_int,
            (Install::Listener, -1) => -1,
            (Install::Listener, listener) => libc::close(listener as c_int),
        }
    }
}

/// The same program with errors that no kernel gives.
fn marked(program: &Program) -> Program {
    let mut program = program.clone();
    for instruction in &mut program.0 {
        if instruction.code == 0x06 && instruction.k & 0xffff_0000 == libc::SECCOMP_RET_ERRNO {
            instruction.k += MARK.cast_unsigned();
        }
    }
    program
}

/// Says so past the capture of the test's output.
fn skipped(why: &str) {
    use io::Write;
    let _ = writeln!(io::stderr(), "skipped: {why}");
}
