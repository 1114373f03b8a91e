//! Calls that are refused, with arguments that do no harm where they are not.

use libc::{EAFNOSUPPORT, EINVAL, ENOSYS, EOPNOTSUPP, EPERM, EPROTONOSUPPORT, c_int, c_long};

use crate::observe::syscalls::numbers;

/// A call, its arguments, and the error it gets.
pub(super) type Forbidden = (c_long, [u64; 6], c_int);

/// An address at which no process has anything.
const BAD: u64 = 1;
/// Stands for a pointer to the path of a file in a directory that does not exist.
pub(super) const PATH: u64 = u64::from_le_bytes(*b"pathpath");
/// Flags that no kernel knows, and a descriptor that is not open.
pub(super) const ALL: u64 = 0xffff_ffff;

/// What is refused whatever the arguments, with arguments that do nothing where it is not.
#[rustfmt::skip]
pub(super) const BY_NUMBER: &[Forbidden] = &[
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
    (libc::SYS_openat2, [ALL, 0, 0, 0, 0, 0], ENOSYS),
    (numbers::SETXATTRAT, [ALL, 0, 0, 0, 0, 0], ENOSYS),
    (numbers::REMOVEXATTRAT, [ALL, 0, 0, 0, 0, 0], ENOSYS),
    (numbers::FILE_SETATTR, [ALL, 0, 0, 0, 0, 0], ENOSYS),
];

/// What is refused because of its arguments.
#[rustfmt::skip]
pub(super) const BY_ARGUMENT: &[Forbidden] = &[
    // A thread without shared handlers is refused by the kernel itself, before anything is made.
    (libc::SYS_clone, [0x1001_0000, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_clone, [0x4001_0000, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_clone, [0x0003_0000, 0, 0, 0, 0, 0], EPERM),
    (libc::SYS_renameat2, [ALL, BAD, ALL, BAD, 4, 0], EINVAL),
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
    (libc::SYS_fchmodat, [ALL, PATH, 0o4755, 0, 0, 0], EPERM),
    (numbers::FCHMODAT2, [ALL, PATH, 0o4755, 0, 0, 0], EPERM),
    (libc::SYS_mknodat, [ALL, PATH, 0o060_600, 0, 0, 0], EPERM),
    (libc::SYS_mknodat, [ALL, PATH, 0o104_755, 0, 0, 0], EPERM),
    #[cfg(target_arch = "x86_64")] (libc::SYS_open, [PATH, 0o101, 0o4755, 0, 0, 0], EPERM),
    #[cfg(target_arch = "x86_64")] (libc::SYS_creat, [PATH, 0o4755, 0, 0, 0, 0], EPERM),
    #[cfg(target_arch = "x86_64")] (libc::SYS_chmod, [PATH, 0o4755, 0, 0, 0, 0], EPERM),
    #[cfg(target_arch = "x86_64")] (libc::SYS_mknod, [PATH, 0o020_600, 0, 0, 0, 0], EPERM),
    // Virtual machine sockets, packets, news of devices, raw, MPTCP.
    (libc::SYS_socket, [40, 1, 0, 0, 0, 0], EAFNOSUPPORT),
    (libc::SYS_socket, [17, 3, 0, 0, 0, 0], EAFNOSUPPORT),
    (libc::SYS_socket, [16, 3, 15, 0, 0, 0], EAFNOSUPPORT),
    (libc::SYS_socket, [2, 3, 1, 0, 0, 0], EPERM),
    (libc::SYS_socket, [10, 1, 262, 0, 0, 0], EPROTONOSUPPORT),
    (libc::SYS_socketpair, [2, 1, 0, BAD, 0, 0], EAFNOSUPPORT),
    #[cfg(target_arch = "x86_64")] (libc::SYS_getpid | 0x4000_0000, [0; 6], ENOSYS),
];

/// What is refused where only Landlock confines sockets.
pub(super) const STREAMS_ONLY: &[Forbidden] = &[
    (libc::SYS_socket, [1, 2, 0, 0, 0, 0], EPERM),
    (libc::SYS_socket, [2, 2, 0, 0, 0, 0], EPERM),
    (libc::SYS_socket, [10, 2, 17, 0, 0, 0], EPERM),
    (libc::SYS_socketpair, [1, 2, 0, BAD, 0, 0], EPERM),
    (libc::SYS_sendto, [ALL, BAD, 0, 0x2000_0000, 0, 0], EOPNOTSUPP),
    (libc::SYS_sendmsg, [ALL, BAD, 0x2000_0000, 0, 0, 0], EOPNOTSUPP),
    (libc::SYS_sendmmsg, [ALL, BAD, 1, 0x2000_0000, 0, 0], EOPNOTSUPP),
    (libc::SYS_shmget, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_shmat, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_shmctl, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_semget, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_semop, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_semtimedop, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_semctl, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_msgget, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_msgsnd, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_msgrcv, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_msgctl, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_mq_open, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_mq_unlink, [BAD, BAD, 0, 0, 0, 0], ENOSYS),
    (libc::SYS_setpriority, [0, 1, 0, 0, 0, 0], EPERM),
    (libc::SYS_ioprio_set, [1, 1, 0, 0, 0, 0], EPERM),
    (libc::SYS_sched_setaffinity, [1, 8, BAD, 0, 0, 0], EPERM),
    (libc::SYS_sched_setscheduler, [1, 0, BAD, 0, 0, 0], EPERM),
    (libc::SYS_sched_setparam, [1, BAD, 0, 0, 0, 0], EPERM),
    (libc::SYS_sched_setattr, [1, BAD, 0, 0, 0, 0], EPERM),
    (libc::SYS_prlimit64, [1, 7, BAD, 0, 0, 0], EPERM),
];
