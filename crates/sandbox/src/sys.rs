//! System calls that no crate wraps. The only unsafe code outside tests, one function per call.

#![expect(unsafe_code, reason = "system calls that no crate wraps")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::unnecessary_cast,
    reason = "numbers of the kernel are small, and their types differ between C libraries"
)]

use std::ffi::CStr;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use libc::{c_int, c_long, c_ulong, c_void};

/// A child that was cloned.
pub(crate) enum Cloned {
    /// This is the child.
    Child,
    /// This is the parent, with the child's descriptor and number.
    Parent(OwnedFd, i32),
}

/// Clones this process into new namespaces, with a descriptor for the child.
///
/// The caller must have one thread only: the child goes on with a copy of its memory, and a lock
/// that another thread held would stay locked there.
pub(crate) fn clone_into(flags: u64) -> io::Result<Cloned> {
    let mut pidfd: RawFd = -1;
    // SAFETY: an all-zero `clone_args` is valid; the kernel reads it as "no flags, no pointers".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = flags | c_ulong_to_u64(libc::CLONE_PIDFD as c_ulong);
    args.pidfd = std::ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
    // SAFETY: `args` and `pidfd` outlive the call; without CLONE_VM the child gets its own copy of
    // this single-threaded process and returns here on its own stack.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            std::ptr::from_mut(&mut args),
            size_of::<libc::clone_args>(),
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Cloned::Child),
        // SAFETY: the kernel has stored a fresh descriptor that nothing else owns.
        pid => Ok(Cloned::Parent(unsafe { OwnedFd::from_raw_fd(pidfd) }, pid as i32)),
    }
}

fn c_ulong_to_u64(value: c_ulong) -> u64 {
    value
}

/// Forks. The same care as for [`clone_into`] is needed in the child.
pub(crate) fn fork() -> io::Result<Option<i32>> {
    // SAFETY: the child of a single-threaded process may go on as its parent would. Of the callers that
    // may have threads, one makes only system calls in the child; the other, `fork_supervisor`, documents
    // what its caller must not do there.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Runs `act` in a process of its own and exits with its result. Returns a pidfd of that process,
/// and its process ID. The caller must wait for it, as for any child.
///
/// For programs with several threads that start runs. A run needs a process of its own because its
/// supervisor changes what belongs to the whole process: the signal mask, the CPU affinity, the
/// subreaper flag, signal dispositions, and the children that it waits for.
///
/// The new process has only the thread that called. The `fork` of glibc (and of musl since 1.2.2)
/// leaves `malloc` usable in it, so `act` may be ordinary code. A lock that another thread held at
/// that moment stays locked for ever, so `act` must not use locks that it shares with other
/// threads. Buffered output is not flushed: `act` reports through a descriptor.
///
/// The new process is in a session of its own. So its runs do not take the terminal from the parent,
/// and Ctrl-C reaches only the parent.
///
/// The new process does not die with its parent. Instead, every run in it ends with
/// [`End::Cancelled`](crate::End::Cancelled) when the parent process ends, and when
/// [`Launch::stop`](crate::Launch::stop) becomes readable or is hung up. The parent itself is
/// watched because a hang-up may never come: the new process, and every one that is forked later,
/// inherits the parent's end of a pipe. An `eventfd` is the simplest descriptor to stop a run by.
pub fn fork_supervisor(act: impl FnOnce() -> u8) -> io::Result<(OwnedFd, i32)> {
    use rustix::process::{PidfdFlags, pidfd_open};
    let parent = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    match fork()? {
        None => {
            let _exit = ExitOnPanic;
            FORKED_FROM.store(parent.into_raw_fd(), Ordering::Relaxed);
            // It is not a process group leader, so this succeeds.
            let _ = rustix::process::setsid();
            exit_now(act().into())
        }
        Some(pid) => {
            // A child that was not waited for keeps its number, so this is that process.
            let opened = rustix::process::Pid::from_raw(pid)
                .ok_or(rustix::io::Errno::SRCH)
                .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
            match opened {
                Ok(process) => Ok((process, pid)),
                Err(error) => {
                    kill_child(pid);
                    Err(error.into())
                }
            }
        }
    }
}

/// A pidfd of the process that forked this one by [`fork_supervisor`], which is never closed. Not a
/// lock, because another thread may hold one while this process is forked.
static FORKED_FROM: AtomicI32 = AtomicI32::new(-1);

/// Readable once the process that forked this one by [`fork_supervisor`] has ended.
pub(crate) fn forked_from() -> Option<BorrowedFd<'static>> {
    let parent = FORKED_FROM.load(Ordering::Relaxed);
    // SAFETY: the number is that of a descriptor that stays open as long as the process lives.
    (parent >= 0).then(|| unsafe { BorrowedFd::borrow_raw(parent) })
}

/// Whether this process has one thread. Only then may a run be started in it; others use
/// [`fork_supervisor`].
pub fn is_single_threaded() -> bool {
    // A directory has two links more than it has subdirectories, and each thread is one.
    rustix::fs::stat("/proc/self/task").is_ok_and(|tasks| tasks.st_nlink == 3)
}

/// Makes room for so many descriptors. When the table of a process with threads has to grow, the
/// kernel waits until no processor looks at the old one, which takes ten milliseconds.
pub(crate) fn make_room_for_descriptors(any: BorrowedFd<'_>, many: usize) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(many);
    if let Ok(last) = RawFd::try_from(many.next_power_of_two().min(most).saturating_sub(1)) {
        // Without this it is only slower.
        let _ = rustix::io::fcntl_dupfd_cloexec(any, last);
    }
}

/// Starts a process that works on this one's memory, without a copy of it, until it becomes another
/// program or ends; this one waits until then. Everything else of it is its own.
pub(crate) fn start_on_our_memory(act: impl FnOnce()) -> io::Result<i32> {
    extern "C" fn enter<F: FnOnce()>(act: *mut c_void) -> c_int {
        let _exit = ExitOnPanic;
        // SAFETY: it is what was handed over below, and taken only here.
        let act = unsafe { act.cast::<F>().read() };
        act();
        exit_now(libc::EIO)
    }
    /// The entry for a closure whose type has no name.
    fn entry<F: FnOnce()>(_: &F) -> extern "C" fn(*mut c_void) -> c_int {
        enter::<F>
    }
    let (enter, mut act) = (entry(&act), ManuallyDrop::new(act));
    let mut stack = Vec::<u128>::with_capacity(COMMAND_STACK / size_of::<u128>());
    let top = stack.spare_capacity_mut().as_mut_ptr_range().end;
    // SAFETY: the stack is the child's alone, and both live until it needs them no more, because
    // this thread waits. To all others the child is this thread: it has its thread-local memory and
    // takes the same locks.
    let pid = unsafe {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(enter, top.cast(), flags, (&raw mut act).cast())
    };
    if pid == -1 { Err(io::Error::last_os_error()) } else { Ok(pid) }
}

/// Room for what a process does before it becomes the command.
const COMMAND_STACK: usize = 1 << 20;

/// Ends the child of a fork on a panic. Held in its first frame: the frames above are its parent's,
/// and a panic that unwound into them would clean up what the parent still uses.
pub(crate) struct ExitOnPanic;

impl Drop for ExitOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            exit_now(libc::EIO);
        }
    }
}

/// Ends this process at once, without running anything on the way out.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: never returns and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Attributes of a mount.
pub(crate) const MOUNT_RDONLY: u64 = 0x1;
pub(crate) const MOUNT_NOSUID: u64 = 0x2;
pub(crate) const MOUNT_NODEV: u64 = 0x4;

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Sets attributes on a mount and everything mounted in it.
pub(crate) fn set_mount(tree: BorrowedFd<'_>, set: u64, clear: u64) -> io::Result<()> {
    set_attributes(tree, libc::AT_RECURSIVE, set, clear)
}

/// Lets nothing be written to a mount. What is mounted in it stays as it is.
pub(crate) fn freeze_mount(tree: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes(tree, 0, MOUNT_RDONLY, 0)
}

fn set_attributes(tree: BorrowedFd<'_>, how: c_int, set: u64, clear: u64) -> io::Result<()> {
    let attr = MountAttr { set, clear, propagation: 0, userns: 0 };
    // SAFETY: the path is an empty C string, `attr` lives through the call and its size is given.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | how,
            std::ptr::from_ref(&attr),
            size_of::<MountAttr>(),
        )
    };
    check(done)
}

/// Closes every descriptor but some. For a forked process that uses nothing else any more.
pub(crate) fn close_all_but(kept: &[BorrowedFd<'_>]) {
    let mut kept: Vec<_> = kept.iter().map(|kept| kept.as_raw_fd().cast_unsigned()).collect();
    kept.sort_unstable();
    let mut first = 0;
    for next in kept.into_iter().chain([u32::MAX]) {
        if let Some(last) = next.checked_sub(1).filter(|last| *last >= first) {
            // SAFETY: the caller uses none of these descriptors again, and never returns to code
            // that owns one.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
        first = next.saturating_add(1);
    }
}

/// Marks every descriptor from `first` on to be closed when a program is run.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    const CLOSE_RANGE_CLOEXEC: u32 = 4;
    // SAFETY: changes flags of descriptors only; it closes nothing that is in use.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, CLOSE_RANGE_CLOEXEC) };
    check(done)
}

/// Installs a seccomp program. With `listen`, the descriptor on which its notifications arrive.
pub(crate) fn install_filter(
    program: &[libc::sock_filter],
    listen: bool,
) -> io::Result<Option<OwnedFd>> {
    const WAIT_KILLABLE: c_ulong = 1 << 5;
    // Kernels before 5.16 would otherwise slow every program down against an attack on itself.
    const SPEC_ALLOW: c_ulong = 1 << 2;
    let len =
        u16::try_from(program.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let install = |flags: c_ulong| {
        // SAFETY: `program` points to `len` instructions that live through the call; the kernel
        // only reads them.
        unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                std::ptr::from_ref(&program),
            )
        }
    };
    if !listen {
        return check(install(SPEC_ALLOW)).map(|()| None);
    }
    let mut fd = install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | SPEC_ALLOW | WAIT_KILLABLE);
    if fd == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        // Kernels before 5.19 do not know the flag.
        fd = install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | SPEC_ALLOW);
    }
    check(fd)?;
    // SAFETY: the kernel returned a fresh descriptor that nothing else owns.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
}

/// Lets a call that is handed over, and its answer, go on on the processor it came from: the two
/// never work at the same time. A kernel before 6.6 does not know how.
pub(crate) fn keep_to_caller(listener: BorrowedFd<'_>) {
    const SECCOMP_IOCTL_NOTIF_SET_FLAGS: c_ulong = 0x4008_2104;
    const SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP: c_ulong = 1;
    // SAFETY: the argument is a number, and the kernel checks it.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            SECCOMP_IOCTL_NOTIF_SET_FLAGS as _,
            SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP,
        )
    };
}

/// A call that waits for an answer.
pub(crate) type Notification = libc::seccomp_notif;

/// Takes the next notification.
pub(crate) fn receive_notification(listener: BorrowedFd<'_>) -> io::Result<Notification> {
    // SAFETY: an all-zero notification is valid and is what the kernel demands.
    let mut notification: Notification = unsafe { std::mem::zeroed() };
    // SAFETY: the buffer has the size that the request's number encodes and lives through the call.
    let done = unsafe {
        libc::ioctl(listener.as_raw_fd(), SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification)
    };
    check(c_long::from(done)).map(|()| notification)
}

/// What a waiting call gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The kernel decides, as if the call had not been intercepted.
    Continue,
    /// An error.
    Errno(i32),
    /// Success, without the call.
    Done,
    /// Success, with this descriptor.
    Descriptor(i32),
}

/// Answers a notification.
pub(crate) fn answer_notification(
    listener: BorrowedFd<'_>,
    id: u64,
    reply: Reply,
) -> io::Result<()> {
    let mut response = libc::seccomp_notif_resp { id, val: 0, error: 0, flags: 0 };
    match reply {
        Reply::Continue => response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        Reply::Errno(errno) => response.error = -errno,
        Reply::Done => {}
        Reply::Descriptor(number) => response.val = number.into(),
    }
    // SAFETY: as above; the kernel only reads the response.
    let done =
        unsafe { libc::ioctl(listener.as_raw_fd(), SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
    check(c_long::from(done))
}

/// Answers the notification of an open with a file of this process. Linux 5.14.
pub(crate) fn lend(
    listener: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    close_on_exec: CloseOnExec,
) -> io::Result<()> {
    // SECCOMP_ADDFD_FLAG_SEND: the call returns the new descriptor.
    add_descriptor(listener, id, file, close_on_exec, 1 << 1).map(drop)
}

/// Whether a program that the caller executes keeps a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CloseOnExec(pub(crate) bool);

/// Gives the caller of a notification a descriptor of this process's file, and its number.
pub(crate) fn give_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    close_on_exec: CloseOnExec,
) -> io::Result<i32> {
    add_descriptor(listener, id, file, close_on_exec, 0)
}

fn add_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    close_on_exec: CloseOnExec,
    flags: u32,
) -> io::Result<i32> {
    let newfd_flags = if close_on_exec.0 { libc::O_CLOEXEC.cast_unsigned() } else { 0 };
    let srcfd = file.as_raw_fd().cast_unsigned();
    let lent = libc::seccomp_notif_addfd { id, flags, srcfd, newfd: 0, newfd_flags };
    // SAFETY: the kernel only reads `lent`, whose size the request's number encodes.
    let done =
        unsafe { libc::ioctl(listener.as_raw_fd(), SECCOMP_IOCTL_NOTIF_ADDFD, &raw const lent) };
    check(c_long::from(done)).map(|()| done)
}

/// How large the files are that another process may write; `None` where that cannot be asked.
pub(crate) fn file_size_limit(pid: u32) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: no new limit is set; the old one is stored in `limit`, which lives through the call.
    let done = unsafe {
        let pid = pid.cast_signed();
        libc::prlimit(pid, libc::RLIMIT_FSIZE, std::ptr::null(), &raw mut limit)
    };
    (done == 0).then_some(limit.rlim_cur)
}

/// Connects a socket to an address, as the bytes of the call give it. A connection that does not come
/// about at once fails with EINTR instead of waiting: whether the socket waits is a flag that the
/// process can change meanwhile.
pub(crate) fn connect_briefly(socket: BorrowedFd<'_>, address: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(address.len())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    briefly(|| {
        // SAFETY: the address lives through the call, which reads `length` bytes of it.
        let done = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
        check(c_long::from(done))
    })
}

/// Does something that could wait for what the run withholds. A timer interrupts its system calls, again
/// and again until it returns.
pub(crate) fn briefly<T>(act: impl FnOnce() -> T) -> T {
    extern "C" fn interrupt(_: c_int) {}
    let often = libc::timeval { tv_sec: 0, tv_usec: 1_000 };
    let never = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: often, it_value: often };
    let none = libc::itimerval { it_interval: never, it_value: never };
    // SAFETY: the handler does nothing, so it may run at any time; all structures live through the
    // calls, which only read them. An all-zero action has no flags, so that calls are not restarted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = interrupt as extern "C" fn(c_int) as usize;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        let set = signal_set(&[libc::SIGALRM]);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    let done = act();
    // SAFETY: the structure lives through the call, which only reads it.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const none, std::ptr::null_mut()) };
    done
}

/// Whether the caller of a notification still waits: its process ID cannot have been reused then.
pub(crate) fn notification_is_valid(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the kernel reads eight bytes from `id`.
    unsafe { libc::ioctl(listener.as_raw_fd(), SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

const fn iowr(number: u64, size: usize) -> c_ulong {
    (3 << 30) | ((size as c_ulong) << 16) | ((b'!' as c_ulong) << 8) | number
}
const SECCOMP_IOCTL_NOTIF_RECV: c_ulong = iowr(0, size_of::<libc::seccomp_notif>());
const SECCOMP_IOCTL_NOTIF_SEND: c_ulong = iowr(1, size_of::<libc::seccomp_notif_resp>());
const fn iow(number: u64, size: usize) -> c_ulong {
    (1 << 30) | ((size as c_ulong) << 16) | ((b'!' as c_ulong) << 8) | number
}
const SECCOMP_IOCTL_NOTIF_ID_VALID: c_ulong = iow(2, size_of::<u64>());
const SECCOMP_IOCTL_NOTIF_ADDFD: c_ulong = iow(3, size_of::<libc::seccomp_notif_addfd>());

/// Puts the calling thread into a network namespace of its own.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: no memory is handed over, and no code here takes the network for given.
    check(c_long::from(unsafe { libc::unshare(libc::CLONE_NEWNET) }))
}

/// The network namespace that a socket is in.
pub(crate) fn network_of(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the request takes no memory and gives a new descriptor.
    let space = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS) };
    check(c_long::from(space))?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(space) })
}

/// Not in `libc` (`linux/sockios.h`).
const SIOCGSKNS: c_ulong = 0x894c;

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: an all-zero request is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = (*from).cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    // SAFETY: the request lives through the call and is of the kind that the number asks for.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    check(c_long::from(done))
}

/// Gives the loopback interface of this network namespace another address. All addresses of its
/// network are local then.
pub(crate) fn loopback_address(
    label: &str,
    address: std::net::Ipv4Addr,
    mask: std::net::Ipv4Addr,
) -> io::Result<()> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    for (number, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
        // SAFETY: an all-zero request is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let room = libc::IFNAMSIZ - 1;
        for (to, from) in request.ifr_name.iter_mut().zip(label.bytes().take(room)) {
            *to = from.cast_signed();
        }
        let socket_address = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(value.octets()) },
            sin_zero: [0; 8],
        };
        // SAFETY: both are plain data of the same size, of which the request holds one as the other.
        request.ifr_ifru.ifru_addr =
            unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(socket_address) };
        // SAFETY: the request lives through the call and is of the kind that the number asks for.
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), number, &raw const request) };
        check(c_long::from(done))?;
    }
    Ok(())
}

/// Overwrites the environment this process was started with: `/proc/PID/environ` shows that memory
/// for as long as the process lives.
pub(crate) fn wipe_environment() {
    unsafe extern "C" {
        static environ: *const *mut libc::c_char;
    }
    // SAFETY: no thread of this process reads its environment any more; `environ`
    // is a NULL-terminated array of C strings, each of which is writable and its own.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let length = libc::strlen(*entry);
            std::ptr::write_bytes(*entry, 0, length);
            entry = entry.add(1);
        }
    }
}

/// Replaces a standard descriptor.
pub(crate) fn replace_standard(standard: c_int, by: BorrowedFd<'_>) {
    // SAFETY: takes numbers only; no value owns a standard descriptor.
    unsafe { libc::dup2(by.as_raw_fd(), standard) };
}

/// Whether this process has the default scheduling policy.
pub(crate) fn is_sched_other() -> bool {
    // SAFETY: takes a number only.
    unsafe { libc::sched_getscheduler(0) == libc::SCHED_OTHER }
}

/// Sets the scheduling policy of a process, zero for this one: `SCHED_BATCH` does not preempt running
/// processes when it wakes up.
pub(crate) fn set_sched_batch(pid: i32, batch: bool) {
    let policy = if batch { libc::SCHED_BATCH } else { libc::SCHED_OTHER };
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter outlives the call. A failure only costs time.
    unsafe { libc::sched_setscheduler(pid, policy, &raw const none) };
}

/// Blocks signals for this thread, and for those that it starts.
pub(crate) fn block_signals(signals: &[c_int]) -> io::Result<()> {
    let set = signal_set(signals);
    // SAFETY: the set is only read.
    match unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The same, and returns a descriptor on which they arrive.
pub(crate) fn signal_descriptor(signals: &[c_int]) -> io::Result<OwnedFd> {
    block_signals(signals)?;
    let set = signal_set(signals);
    // SAFETY: the set is only read; the descriptor is new and has no other owner.
    unsafe {
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd == -1 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

fn signal_set(signals: &[c_int]) -> libc::sigset_t {
    // SAFETY: the set is initialised before use; the calls only write it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Whether someone asked for the end of the run that this process supervises.
static END_WANTED: AtomicBool = AtomicBool::new(false);

/// Someone asked for the end of the run: nothing may be waited for any more.
pub(crate) fn want_end() {
    END_WANTED.store(true, Ordering::Relaxed);
}

/// Whether someone asked for the end of the run, or a signal that ends programs waits to be handled:
/// a run blocks them for the whole process.
pub fn end_is_wanted() -> bool {
    if END_WANTED.load(Ordering::Relaxed) {
        return true;
    }
    // SAFETY: the set is initialised before use; the calls only write and read it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigpending(&raw mut set);
        let ends = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
        ends.into_iter().any(|signal| libc::sigismember(&raw const set, signal) == 1)
    }
}

/// Sends SIGCONT to this process after some time, also while it is stopped. Until the timer is
/// dropped.
pub(crate) fn continue_after(time: std::time::Duration) -> Option<ContinueTimer> {
    // SAFETY: all structures are initialised and outlive the calls; SIGCONT has no handler.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGCONT;
        let mut timer: libc::timer_t = std::mem::zeroed();
        if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) == -1 {
            return None;
        }
        let timer = ContinueTimer(timer);
        let mut when: libc::itimerspec = std::mem::zeroed();
        when.it_value.tv_sec = time.as_secs().cast_signed();
        // Zero would be never.
        when.it_value.tv_nsec = c_long::from(time.subsec_nanos().max(1).cast_signed());
        libc::timer_settime(timer.0, 0, &raw const when, std::ptr::null_mut());
        Some(timer)
    }
}

/// A timer that continues this process.
pub(crate) struct ContinueTimer(libc::timer_t);

impl Drop for ContinueTimer {
    fn drop(&mut self) {
        // SAFETY: the timer was created here and is deleted once.
        unsafe {
            libc::timer_delete(self.0);
        }
    }
}

/// The next signal that arrived.
pub(crate) fn next_signal(fd: BorrowedFd<'_>) -> Option<(c_int, i32)> {
    let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
    let read = rustix::io::read(fd, &mut bytes).ok()?;
    if read < bytes.len() {
        return None;
    }
    // SAFETY: the kernel has filled the whole structure, which has no invalid values.
    let info: libc::signalfd_siginfo = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
    Some((info.ssi_signo.cast_signed(), info.ssi_pid.cast_signed()))
}

/// Gives signals back their usual meaning, for a program about to run.
pub(crate) fn reset_signals() {
    // SAFETY: sets dispositions and the mask of a process that is one thread; no handler is
    // left to be called.
    unsafe {
        for signal in 1..32 {
            if signal != libc::SIGKILL && signal != libc::SIGSTOP {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Ignores a signal.
pub(crate) fn ignore_signal(signal: c_int) {
    // SAFETY: sets a disposition; no handler is involved.
    unsafe {
        libc::signal(signal, libc::SIG_IGN);
    }
}

/// Takes a resource limit down to `value`, for this process and its children.
pub(crate) fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: the limit lives through the call, which only reads it.
    check(c_long::from(unsafe { libc::setrlimit(resource as _, &raw const limit) }))
}

/// What can be limited.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(crate) enum Resource {
    Core = libc::RLIMIT_CORE as u32,
    Data = libc::RLIMIT_DATA as u32,
    Descriptors = libc::RLIMIT_NOFILE as u32,
    FileSize = libc::RLIMIT_FSIZE as u32,
    PendingSignals = libc::RLIMIT_SIGPENDING as u32,
    Processes = libc::RLIMIT_NPROC as u32,
}

/// Replaces this process by a program.
pub(crate) fn execute(
    program: &CStr,
    arguments: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> io::Error {
    // SAFETY: both arrays end with NULL and point to C strings that live through the call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

fn check(done: c_long) -> io::Result<()> {
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads memory of another process.
pub(crate) fn read_memory(pid: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: into.len() };
    // SAFETY: `local` describes the buffer exactly; the remote address is only read, by the
    // kernel, in the other process.
    let read = unsafe {
        libc::process_vm_readv(pid.cast_signed(), &raw const local, 1, &raw const remote, 1, 0)
    };
    if read == -1 { Err(io::Error::last_os_error()) } else { Ok(read.unsigned_abs()) }
}

/// Makes a child die when the thread that started it does.
pub(crate) fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

/// How many descriptors one message can carry.
pub(crate) const MOST_DESCRIPTORS: usize = 64;

/// Sends one message with descriptors.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    rustix::net::sendmsg(socket, &[io::IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// A message, its descriptors, and the number of its sender where the socket asks for that.
pub(crate) type Received = (Vec<u8>, Vec<OwnedFd>, Option<i32>);

/// Receives one message. No bytes: the other side is gone.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Received> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
    let mut bytes = vec![0; 8192];
    let mut space = [MaybeUninit::uninit();
        rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS), ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::net::recvmsg(
        socket,
        &mut [io::IoSliceMut::new(&mut bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut descriptors = Vec::new();
    let mut sender = None;
    for message in control.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(received) => descriptors.extend(received),
            RecvAncillaryMessage::ScmCredentials(who) => {
                sender = Some(who.pid.as_raw_nonzero().get());
            }
            _ => {}
        }
    }
    bytes.truncate(message.bytes);
    Ok((bytes, descriptors, sender))
}

/// The version of Landlock that this kernel speaks; zero for none.
pub(crate) fn landlock_version() -> i32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel takes no attributes and only returns a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION)
    };
    i32::try_from(version).unwrap_or(0).max(0)
}

/// Waits for any child to end or stop.
pub(crate) fn wait_any() -> io::Result<(i32, i32)> {
    wait_flagged(libc::WUNTRACED)
}

/// A child that has ended or stopped already; number 0 if none has.
pub(crate) fn wait_any_now() -> io::Result<(i32, i32)> {
    wait_flagged(libc::WUNTRACED | libc::WNOHANG)
}

fn wait_flagged(flags: c_int) -> io::Result<(i32, i32)> {
    let mut status = 0;
    // SAFETY: the status lives through the call.
    match unsafe { libc::waitpid(-1, &raw mut status, flags) } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok((pid, status)),
    }
}

/// Whether a status of `wait` says that the process was stopped.
pub(crate) fn is_stopped(status: i32) -> bool {
    libc::WIFSTOPPED(status)
}

/// The signal that stopped it.
pub(crate) fn stop_signal(status: i32) -> i32 {
    libc::WSTOPSIG(status)
}

/// What a shell would show of a status of `wait`.
pub(crate) fn exit_code(status: i32) -> u8 {
    let code = if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    };
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// The signal that ended a process, by a status of `wait`.
pub(crate) fn end_signal(status: i32) -> Option<i32> {
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}

/// Takes a resource limit down to `value`, unless it is lower already.
pub(crate) fn lower_limit(resource: Resource, value: u64) -> io::Result<()> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives through the call, which fills it.
    check(c_long::from(unsafe { libc::getrlimit(resource as _, &raw mut now) }))?;
    let hard = now.rlim_max.min(value);
    let limit = libc::rlimit { rlim_cur: now.rlim_cur.min(hard), rlim_max: hard };
    // SAFETY: the limit lives through the call, which only reads it.
    check(c_long::from(unsafe { libc::setrlimit(resource as _, &raw const limit) }))
}

/// Halves a limit.
pub(crate) fn halve_limit(resource: Resource) -> io::Result<()> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives through the call, which fills it.
    check(c_long::from(unsafe { libc::getrlimit(resource as _, &raw mut now) }))?;
    if now.rlim_cur == libc::RLIM_INFINITY { Ok(()) } else { limit(resource, now.rlim_cur / 2) }
}

/// Takes every capability out of the bounding set.
pub(crate) fn drop_bounding_set() {
    for capability in 0..64 {
        // SAFETY: both take numbers only.
        let done = unsafe {
            match libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) {
                1 => libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0),
                done => done,
            }
        };
        // Past the last capability, or nothing can be dropped because nothing is held.
        if done == -1 {
            return;
        }
    }
}

/// Waits for one child and gives its exit status.
pub(crate) fn wait_for(pid: i32) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: the status lives through the call.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } != -1 {
            return Ok(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { libc::EIO });
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Waits for one child and takes what it and its children used.
pub(crate) fn wait_with_usage(pid: i32) -> Option<crate::supervisor::usage::Usage> {
    let mut status = 0;
    // SAFETY: an all-zero usage is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: status and usage live through the call, which fills them.
        if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } != -1 {
            break;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Some(crate::supervisor::usage::Usage {
        user_seconds: seconds(usage.ru_utime),
        system_seconds: seconds(usage.ru_stime),
        peak_memory: usage.ru_maxrss.unsigned_abs() * 1024,
    })
}

/// Kills everything below this process, also what has left its parent: for walls without a
/// process namespace, whose end would do that. What is spared is left to the caller: neither
/// waited for nor killed, but what is below it is.
pub(crate) fn kill_descendants(spared: &[i32]) {
    for _ in 0..500 {
        let mut todo = crate::supervisor::usage::children(std::process::id().cast_signed());
        let mut left = false;
        while let Some(pid) = todo.pop() {
            todo.extend(crate::supervisor::usage::children(pid));
            if spared.contains(&pid) {
                continue;
            }
            left = true;
            // SAFETY: takes numbers only; the process is a descendant of this one.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG);
            }
        }
        if !left {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Makes this process the parent of every orphan below it.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(c_long::from(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }))
}

/// From now on names of hosts are looked up in `/etc/hosts` and by DNS. For anything else that
/// `/etc/nsswitch.conf` may list, the C library would load code into this process, which is linked
/// in one piece and cannot be sure that it fits.
pub fn look_up_hosts_without_loading() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn __nss_configure_lookup(
                database: *const libc::c_char,
                services: *const libc::c_char,
            ) -> c_int;
        }
        // SAFETY: both are strings that last, and the library copies what it needs of them.
        unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
    }
}

/// Does something with a descriptor that this process was started with, named by its number.
pub fn borrow_descriptor<T>(
    number: RawFd,
    act: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
) -> io::Result<T> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the descriptor is borrowed for the length of the call; if the number is not open,
    // every use of it fails with EBADF.
    act(unsafe { BorrowedFd::borrow_raw(number) })
}

/// Kills a child and takes note of its end.
pub(crate) fn kill_child(pid: i32) {
    // SAFETY: takes numbers only; a child that was not waited for keeps its number.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
    }
    let _ = wait_for(pid);
}

/// Whether a child has ended; takes note of its end.
pub(crate) fn has_ended(pid: i32) -> bool {
    // SAFETY: takes numbers only; no status is asked for.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) != 0 }
}

/// Calls that no run may make, made with arguments that change nothing if they work.
pub(crate) fn forbidden_calls() -> Vec<(&'static str, io::Result<()>)> {
    let call = |number: c_long, args: [c_long; 3]| {
        // SAFETY: every call below takes numbers and NULL pointers only; where one works, it makes
        // a descriptor or enters a namespace of this process, which is about to end.
        check(unsafe { libc::syscall(number, args[0], args[1], args[2]) })
    };
    let user = c_long::from(libc::CLONE_NEWUSER);
    vec![
        ("make a user namespace", call(libc::SYS_unshare, [user, 0, 0])),
        ("open a kernel queue that no filter sees", io_uring()),
        ("watch the machine's performance counters", call(libc::SYS_perf_event_open, [0, 0, -1])),
        ("open a kernel keyring", call(libc::SYS_keyctl, [0, -3, 1])),
        ("handle page faults of the kernel", call(libc::SYS_userfaultfd, [0, 0, 0])),
        ("open a raw socket", raw_socket()),
    ]
}

fn io_uring() -> io::Result<()> {
    let mut parameters = [0u8; 256];
    // SAFETY: the kernel reads and fills at most 120 bytes of the buffer.
    check(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) })
}

fn raw_socket() -> io::Result<()> {
    // SAFETY: takes numbers only; the descriptor ends with this process.
    check(c_long::from(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_child_ends_where_the_child_began() {
        let Some(child) = fork().unwrap() else {
            let _exit = ExitOnPanic;
            // Says nothing: the child shares the output of its parent.
            std::panic::resume_unwind(Box::new(()));
        };
        assert_eq!(wait_for(child).unwrap(), libc::EIO);
    }
}
