//! Rights that nothing inside needs, and parts of the kernel that nothing inside should reach.

use std::os::unix::fs::MetadataExt;

use super::env::EscapeEnv;
use super::row::Sign::{Host, Says};
use super::row::{Row, bash, python};

pub(super) const ROWS: &[Row] = &[
    bash(
        "programs that give rights",
        Says,
        "grep -q '^NoNewPrivs:.0$' /proc/self/status && echo OPEN",
    ),
    bash("a program that runs as its owner", Says, "./risen risen now"),
    bash(
        "rights that are left",
        Says,
        "grep -Eq '^Cap(Eff|Prm|Inh|Bnd|Amb):.*[1-9a-f]' /proc/self/status && echo OPEN",
    ),
    bash("a user namespace", Says, "unshare -U true && echo OPEN"),
    python(
        "a user namespace by a new process",
        Says,
        "
flags, stack = 0x10000000 | 17, ctypes.create_string_buffer(65536)
libc.clone.restype = ctypes.c_int
body = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0)
if libc.clone(body, ctypes.c_void_p(ctypes.addressof(stack) + 65520), flags, None) > 0:
    print('OPEN')
",
    ),
    bash("a mount", Says, "unshare -Urm mount -t tmpfs none /mnt && echo OPEN"),
    python(
        "a mount as it stands",
        Says,
        "
call('mount', b'none', b'/mnt', b'tmpfs', 0, 0)
print('OPEN')
libc.umount(b'/mnt')
",
    ),
    python("a file system in parts", Says, "call('fsopen', b'tmpfs', 0); print('OPEN')"),
    python("a detached tree", Says, "call('open_tree', -100, b'.', 1); print('OPEN')"),
    bash("another root", Says, "/usr/sbin/chroot / true && echo OPEN"),
    python(
        "another namespace",
        Says,
        "
call('setns', os.open(f'/proc/{NEIGHBOUR}/ns/ipc', os.O_RDONLY), 0)
print('OPEN')
",
    ),
    python(
        "a queue of calls",
        Says,
        "call('io_uring_setup', 1, ctypes.create_string_buffer(200)); print('OPEN')",
    ),
    python("faults handled by oneself", Says, "call('userfaultfd', 1); print('OPEN')"),
    python("secret memory", Says, "call('memfd_secret', 0); print('OPEN')"),
    python(
        "events of the processor",
        Says,
        "
ask = ctypes.create_string_buffer(128)
struct.pack_into('II', ask, 0, 1, 128)
struct.pack_into('Q', ask, 40, 0x61)
call('perf_event_open', ask, 0, -1, -1, 0)
print('OPEN')
",
    ),
    python(
        "programs in the kernel",
        Says,
        "
ask = ctypes.create_string_buffer(struct.pack('IIII', 2, 4, 4, 1) + bytes(112))
call('bpf', 0, ask, 128)
print('OPEN')
",
    ),
    python(
        "a key of one's own",
        Says,
        "
key = call('add_key', b'user', MARK.encode(), b'x', 1, -4)
print('OPEN')
call('keyctl', 9, key, -4)
",
    ),
    python("watching all files", Says, "call('fanotify_init', 0x200, 0); print('OPEN')"),
    python(
        "modules of the kernel",
        Says,
        "
try:
    call('init_module', b'no module', 9, b'')
except OSError as error:
    print('OPEN' if error.errno == 8 else error)
",
    ),
    python(
        "another kernel",
        Says,
        "
try:
    call('kexec_load', 0, 1000, 0, 0)
except OSError as error:
    print('OPEN' if error.errno == 22 else error)
",
    ),
    python(
        "settings of the kernel",
        Says,
        "
for name in ('kernel/core_pattern', 'kernel/modprobe', 'vm/overcommit_memory', 'kernel/hostname'):
    try:
        with open('/proc/sys/' + name, 'r+') as file:
            value = file.read()
            file.write(value)
            file.flush()
        print('OPEN')
    except OSError as error:
        print(error)
",
    ),
    python(
        "keys for the kernel",
        Says,
        "
for name in ('/proc/sysrq-trigger', '/sys/kernel/uevent_helper', '/sys/power/state'):
    try:
        os.open(name, os.O_WRONLY)
        print('OPEN')
    except OSError as error:
        print(error)
",
    ),
    bash(
        "control groups",
        Says,
        "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do [ -w $d/cgroup.procs ] && echo OPEN; done",
    ),
    python(
        "the machine's name",
        Says,
        "
name = os.uname().nodename.encode()
call('sethostname', name, len(name))
print('OPEN')
",
    ),
    python(
        "the machine's clock",
        Says,
        "
try:
    call('clock_settime', 0, struct.pack('qq', 0, -1))
except OSError as error:
    print('OPEN' if error.errno == 22 and os.geteuid() == 0 else error)
",
    ),
    python("ports of the machine", Says, "call('iopl', 3); print('OPEN')"),
    python(
        "a place before everybody",
        Says,
        "
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
print('OPEN')
",
    ),
    python(
        "limits beyond the highest",
        Says,
        "
import resource
most = resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]
resource.setrlimit(resource.RLIMIT_SIGPENDING, (most, most + 1))
print('OPEN')
",
    ),
    python(
        "settings of devices",
        Says,
        "
name = '/sys/kernel/mm/transparent_hugepage/khugepaged/defrag'
value = open(name).read()
open(name, 'w').write(value)
print('OPEN')
",
    ),
    python("accounts of all processes", Says, "call('acct', 0); print('OPEN')"),
    // What would wait on the host, with more rights than whoever runs it.
    bash("a set-uid file", Host(risen), "cp /bin/true f; chmod 4755 f"),
    python(
        "a set-gid file, made so",
        Host(risen),
        "os.umask(0); os.open('f', os.O_CREAT | os.O_WRONLY, 0o2755)",
    ),
    python(
        "a set-uid file, made so",
        Host(risen),
        "os.umask(0); os.open('f', os.O_CREAT | os.O_WRONLY, 0o4755)",
    ),
    python(
        "a set-uid file, made by the newest call",
        Host(risen),
        "
os.umask(0)
how = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0)
call('openat2', -100, b'f', how, len(how))
",
    ),
    python(
        "a set-uid file, changed by the newest call",
        Host(risen),
        "
open('f', 'w').close()
call('fchmodat2', -100, b'f', 0o4755, 0)
",
    ),
    python("a set-uid file, as a node", Host(risen), "call('mknodat', -100, b'f', 0o104755, 0)"),
    python(
        "a file with capabilities",
        Host(capable),
        "
open('f', 'w').close()
os.setxattr('f', 'security.capability', struct.pack('<IIIII', 0x02000001, 0x2000, 0, 0, 0))
",
    ),
    python(
        "a device",
        Host(device),
        "
import stat
os.mknod('f', 0o666 | stat.S_IFCHR, os.makedev(1, 3))
",
    ),
    python(
        "an image of memory",
        Says,
        "
import resource
most = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (most, most))
print('none' if most in (0, 1) else 'OPEN')
",
    ),
    python(
        "a page at address zero",
        Says,
        "
call('personality', 0x0100000)
print('OPEN')
",
    ),
];

fn made(escape_env: &EscapeEnv) -> Option<std::fs::Metadata> {
    escape_env.env.path("project/f").metadata().ok()
}

fn risen(escape_env: &EscapeEnv) -> bool {
    made(escape_env).is_some_and(|file| file.mode() & 0o6000 != 0)
}

fn capable(escape_env: &EscapeEnv) -> bool {
    let mut value = [0; 64];
    let path = escape_env.env.path("project/f");
    rustix::fs::getxattr(path, "security.capability", &mut value[..]).is_ok()
}

fn device(escape_env: &EscapeEnv) -> bool {
    use std::os::unix::fs::FileTypeExt;
    made(escape_env).is_some_and(|file| file.file_type().is_char_device())
}
