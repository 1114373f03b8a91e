//! What no process inside may ask of the kernel, whatever the plan says.
//!
//! Mounts, Landlock and the lack of capabilities deny most of it too. Here the kernel code
//! behind it cannot be reached at all, and what the other layers do not see is denied as well:
//! `io_uring`, which goes round every program, input faked on a terminal, set-uid files.
//!
//! Tracing stays open (`ptrace`, `process_vm_readv`, `pidfd_getfd`, `kcmp`): debuggers work
//! inside, and the process namespace and Landlock keep them inside. So do `landlock_*` and
//! `seccomp`: a program may confine itself further.

use libc::{c_int, c_long};

use super::host_processes;
use super::sockets::{self, Sockets};
use super::tree::{Tree, Word, answer};
use super::{ALLOW, Program, program};
use crate::observe::syscalls::numbers;
use crate::sys::Resource;

/// What the filter has to know about the rest of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// Allow new namespaces inside. Mounting stays denied in them.
    pub user_namespaces: bool,
    /// Which sockets can be created.
    pub sockets: Sockets,
    /// Whether the processes of the host can be named, because there is no PID namespace.
    pub host_processes: bool,
}

/// The filter that denies.
pub fn closed(what: &Closed) -> Program {
    program(rules(*what))
}

pub(super) fn rules(what: Closed) -> Vec<(c_long, Tree)> {
    let mut rules = files();
    rules.push((libc::SYS_ioctl, terminal()));
    rules.extend(sockets::rules(what.sockets));
    rules.push((libc::SYS_personality, personality()));
    rules.extend(core_limit(what.host_processes));
    if what.host_processes {
        rules.extend(host_processes::rules());
        rules.extend(host_processes::MISSING.iter().map(|call| (*call, answer(libc::ENOSYS))));
    }
    if !what.user_namespaces {
        rules.extend(namespaces());
    }
    // From here on the arguments do not matter.
    rules.extend(REFUSED.iter().map(|call| (*call, answer(libc::EPERM))));
    rules.extend(MISSING.iter().map(|call| (*call, answer(libc::ENOSYS))));
    rules
}

/// Not permitted.
#[rustfmt::skip]
const REFUSED: &[c_long] = &[
    // Key rings belong to the user, not to a namespace.
    libc::SYS_add_key, libc::SYS_keyctl, libc::SYS_request_key,
    libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_fanotify_init,
    libc::SYS_kexec_load, numbers::KEXEC_FILE_LOAD, libc::SYS_reboot,
    libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module,
    libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_setns,
    libc::SYS_move_mount, libc::SYS_open_tree, numbers::OPEN_TREE_ATTR, libc::SYS_mount_setattr,
    libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick,
    libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_quotactl, libc::SYS_quotactl_fd,
    libc::SYS_acct, libc::SYS_nfsservctl, libc::SYS_lookup_dcookie,
    // Opens any file of a file system by its number, past every directory.
    libc::SYS_open_by_handle_at,
    libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_clock_adjtime, libc::SYS_adjtimex,
    libc::SYS_sethostname, libc::SYS_setdomainname, libc::SYS_syslog, libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")] libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")] libc::SYS_ioperm,
];

/// As on a kernel that was built without them, so that programs take their other way.
#[rustfmt::skip]
const MISSING: &[c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_memfd_secret,
    // What they are to do is behind a pointer, where it could change after it was judged. Programs
    // that know them take the older calls instead.
    libc::SYS_openat2,
    numbers::SETXATTRAT, numbers::REMOVEXATTRAT, numbers::FILE_SETATTR,
];

/// No file with a set-uid or set-gid bit, and no device. It would remain on the host after the run.
///
/// `mkdir` takes no such bits from its argument. What `openat2` is asked for is behind a pointer, so
/// it is closed.
fn files() -> Vec<(c_long, Tree)> {
    Vec::from([
        (libc::SYS_openat, opening(Word::low(2), Word::low(3))),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, opening(Word::low(1), Word::low(2))),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, plain_mode(Word::low(1))),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, changed_mode(Word::low(1))),
        (libc::SYS_fchmod, changed_mode(Word::low(1))),
        (libc::SYS_fchmodat, changed_mode(Word::low(2))),
        (numbers::FCHMODAT2, changed_mode(Word::low(2))),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, node(Word::low(1))),
        (libc::SYS_mknodat, node(Word::low(2))),
        // A whiteout is a device, too.
        (
            libc::SYS_renameat2,
            Word::low(4).any(libc::RENAME_WHITEOUT).choose(answer(libc::EINVAL), ALLOW),
        ),
    ])
}

/// The mode counts only where a file can be made; otherwise its register holds anything.
fn opening(flags: Word, mode: Word) -> Tree {
    let making = libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY);
    flags.any(making.cast_unsigned()).choose(plain_mode(mode), ALLOW)
}

fn plain_mode(mode: Word) -> Tree {
    mode.any(libc::S_ISUID | libc::S_ISGID).choose(answer(libc::EPERM), ALLOW)
}

/// A directory that passes its group on has the set-gid bit, and whether something is a directory
/// cannot be seen here: so a change may keep that bit.
fn changed_mode(mode: Word) -> Tree {
    mode.any(libc::S_ISUID).choose(answer(libc::EPERM), ALLOW)
}

fn node(mode: Word) -> Tree {
    let devices = [libc::S_IFBLK, libc::S_IFCHR].map(|kind| (kind, answer(libc::EPERM)));
    mode.masked(libc::S_IFMT).switch(devices, plain_mode(mode))
}

/// No fake input on a terminal (`TIOCSTI`, `TIOCLINUX`), no other line discipline (`TIOCSETD`), and
/// no exclusive mode (`TIOCEXCL`), which would outlive the run.
///
/// The kernel takes the low half of the request, so a program that compared all of it would miss
/// the same request with other high bits (CVE-2019-10063).
fn terminal() -> Tree {
    let requests = [0x540c, 0x5412, 0x541c, 0x5423];
    Word::low(1).switch(requests.map(|request| (request, answer(libc::EPERM))), file_systems())
}

/// No requests by which btrfs and bcachefs create names in a directory that is open for reading,
/// without any call that is intercepted. Sharing and comparing blocks has the number of btrfs, and works
/// everywhere.
fn file_systems() -> Tree {
    const BTRFS: u32 = 0x9400;
    const BCACHEFS: u32 = 0xbc00;
    // FICLONE, FICLONERANGE, FIDEDUPERANGE
    let shared = [0x4004_9409, 0x4020_940d, 0xc018_9436].map(|request| (request, ALLOW));
    let others = || answer(libc::ENOTTY);
    Word::low(1)
        .masked(0xff00)
        .switch([(BTRFS, Word::low(1).switch(shared, others())), (BCACHEFS, others())], ALLOW)
}

/// The ways of running that weaken nothing: as `linux32`, as an old release, and without random
/// addresses, as debuggers do. -1 asks for the present one.
fn personality() -> Tree {
    const PER_LINUX32: u32 = 0x0008;
    const UNAME26: u32 = 0x0002_0000;
    const ADDR_NO_RANDOMIZE: u32 = 0x0004_0000;
    let others = !(PER_LINUX32 | UNAME26 | ADDR_NO_RANDOMIZE);
    let asked = Word::low(0);
    asked.is(u32::MAX).choose(ALLOW, asked.any(others).choose(answer(libc::EPERM), ALLOW))
}

/// The limit for core files stays at 1, at which the kernel starts no program for them. Programs that set
/// it to 0 are told that it worked: there is no core file either way.
fn core_limit(host_processes: bool) -> [(c_long, Tree); 2] {
    let core = Resource::Core as u32;
    let old = Word::low(0).is(core).choose(answer(0), ALLOW);
    let sets = Word::low(2).is(0).choose(Word::high(2).is(0).choose(ALLOW, answer(0)), answer(0));
    let new = Word::low(1).is(core).choose(sets, ALLOW);
    let new = if host_processes { host_processes::own_limits(new) } else { new };
    [(libc::SYS_setrlimit, old), (libc::SYS_prlimit64, new)]
}

/// No new namespaces.
fn namespaces() -> [(c_long, Tree); 3] {
    // CLONE_NEWTIME is not among them: for clone its bit belongs to the exit signal.
    let new = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    // Here what is allowed is listed, because kernels go on adding flags to unshare.
    let harmless = libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SYSVSEM
        | libc::CLONE_VM
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD;
    let flags = Word::low(0);
    let unshare = flags.any(!bits(harmless)).choose(answer(libc::EPERM), ALLOW);
    [
        (libc::SYS_clone, flags.any(bits(new)).choose(answer(libc::EPERM), ALLOW)),
        (libc::SYS_unshare, Word::high(0).is(0).choose(unshare, answer(libc::EPERM))),
        // Its flags are behind a pointer. C libraries fall back on clone.
        (libc::SYS_clone3, answer(libc::ENOSYS)),
    ]
}

fn bits(flags: c_int) -> u32 {
    flags.cast_unsigned()
}
