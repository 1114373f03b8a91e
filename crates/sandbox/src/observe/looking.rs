//! Whether a call that waits for the tripwire only asks if something is there.
//!
//! A lookup does not say what it is for. The kernel shows the call that a sleeping thread is in, in
//! `/proc/PID/syscall`.

use std::os::fd::BorrowedFd;

use libc::c_long;

use super::program::read_text;

/// Calls that look at a path and do nothing with it.
const LOOKS: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_statfs,
    libc::SYS_chdir,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_inotify_add_watch,
    libc::SYS_name_to_handle_at,
    GETXATTRAT,
    LISTXATTRAT,
    FILE_GETATTR,
    // A datagram gets no further than to a file without a socket, and would say that there is one.
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
];

/// From 424 on a call has the same number on every architecture.
const GETXATTRAT: c_long = 464;
const LISTXATTRAT: c_long = 465;
const FILE_GETATTR: c_long = 468;

/// How often to ask again. A thread is about to sleep when its request arrives.
const MOST_TRIES: u32 = 200;

/// Whether a thread only looks. If that cannot be determined, it does not: what it is shown then
/// cannot be opened, and the attempt is seen.
pub(crate) fn only_looks(view: BorrowedFd<'_>, pid: u32) -> bool {
    for _ in 0..MOST_TRIES {
        let Some(text) = read_text(view, &format!("{pid}/syscall")) else { return false };
        if text.trim() != "running" {
            return is_look(&text);
        }
        std::thread::yield_now();
    }
    false
}

/// A line has the number of the call, its six arguments, the stack pointer and the program counter.
fn is_look(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let number = words.next().and_then(|word| word.parse::<c_long>().ok());
    let arguments: Vec<u64> = words
        .filter_map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok())
        .collect();
    // A descriptor for a path allows nothing but looking.
    let names_only = |at: usize| {
        let path = u64::from(libc::O_PATH.cast_unsigned());
        arguments.get(at).is_some_and(|flags| flags & path != 0)
    };
    match number {
        #[cfg(target_arch = "x86_64")]
        Some(libc::SYS_open) => names_only(1),
        Some(libc::SYS_openat) => names_only(2),
        Some(number) => LOOKS.contains(&number),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_told_from_an_open() {
        let line =
            |number: c_long, arguments: &str| format!("{number} {arguments} 0x7ffd 0x7f00\n");
        let path = format!("0xffffff9c 0x7f 0x{:x} 0x0 0x0 0x0", libc::O_PATH | libc::O_CLOEXEC);
        for (line, expected) in [
            (line(libc::SYS_statx, "0x3 0x7f 0x0 0x0 0x0 0x0"), true),
            (line(libc::SYS_faccessat2, "0x3 0x7f 0x0 0x0 0x0 0x0"), true),
            (line(libc::SYS_openat, &path), true),
            (line(libc::SYS_openat, "0xffffff9c 0x7f 0x80000 0x0 0x0 0x0"), false),
            (line(libc::SYS_sendto, "0x3 0x7f 0x1 0x0 0x7f 0x10"), true),
            (line(libc::SYS_execve, "0x7f 0x7f 0x7f 0x0 0x0 0x0"), false),
            (line(libc::SYS_mkdirat, "0x3 0x7f 0x0 0x0 0x0 0x0"), false),
            ("running\n".into(), false),
            ("-1 0x7ffd 0x7f00\n".into(), false),
            (String::new(), false),
        ] {
            assert_eq!(is_look(&line), expected, "{line}");
        }
    }
}
