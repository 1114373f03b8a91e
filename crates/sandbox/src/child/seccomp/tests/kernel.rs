//! What this kernel makes of the programs, in children that are behind them.

#![expect(unsafe_code, reason = "the test installs filters in processes of its own")]

use std::io::{self, Write};

use super::forbidden::{ALL, BY_ARGUMENT, BY_NUMBER, PATH, STREAMS_ONLY};
use super::*;

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
    let mut put =
        |path: syscalls::PathArgument| args[usize::try_from(path.pointer).unwrap()] = PATH;
    match syscalls::describe(call, numbered)? {
        syscalls::Described::Path(call) => call.paths().for_each(&mut put),
        syscalls::Described::Execute { path, .. } => put(path),
        syscalls::Described::Connect { .. }
        | syscalls::Described::Bind { .. }
        | syscalls::Described::Listen { .. } => {}
    }
    if let Some(flags) = args.iter().position(|arg| *arg == PATH).map(|path| path + 1)
        && let Some(syscalls::Described::Path(described)) = syscalls::describe(call, [0; 6])
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

/// The errno of each call, zero for success, as a child behind these programs gets it.
fn errors(programs: &[(&Program, Install)], calls: &[(c_long, [u64; 6])]) -> Vec<c_int> {
    let size = calls.len() * size_of::<c_int>();
    // SAFETY: a new mapping, which nothing else points into. It holds a c_int for each call, and
    // is never unmapped.
    let shared = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let start = libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        std::slice::from_raw_parts_mut(start.cast::<c_int>(), calls.len())
    };
    let path = c"/nonexistent-ringwall/x".as_ptr().expose_provenance() as u64;
    let status = child(programs, || {
        for (errno, (call, args)) in shared.iter_mut().zip(calls) {
            let [a0, a1, a2, a3, a4, a5] = args.map(|arg| if arg == PATH { path } else { arg });
            // SAFETY: the tables hold no call that touches the memory of this process, and
            // none that does harm where it is not refused.
            *errno = unsafe {
                match libc::syscall(*call, a0, a1, a2, a3, a4, a5) {
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
            if !programs.iter().all(|(program, how)| install(program, *how)) {
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
pub(super) enum Install {
    Plain,
    /// With a listener, which is closed at once.
    Listener,
}

/// Whether it could be installed. Makes system calls only.
pub(super) fn install(program: &Program, how: Install) -> bool {
    let len = u16::try_from(program.0.len()).unwrap();
    let code = libc::sock_fprog { len, filter: program.0.as_ptr().cast_mut() };
    let flags = match how {
        Install::Plain => 0,
        Install::Listener => libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
    };
    // SAFETY: the kernel copies the program, which outlives the call; the listener is nobody
    // else's.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return false;
        }
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        let done = libc::syscall(libc::SYS_seccomp, mode, flags, &raw const code);
        match how {
            Install::Plain => done == 0,
            Install::Listener => done >= 0 && libc::syscall(libc::SYS_close, done) == 0,
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
pub(super) fn skipped(why: &str) {
    let _ = writeln!(io::stderr(), "skipped: {why}");
}
