import ctypes, fcntl, os, socket, struct, sys, time

libc = ctypes.CDLL(None, use_errno=True)
ARM = os.uname().machine == 'aarch64'
NUMBERS = {
    'open_by_handle_at': (304, 265), 'name_to_handle_at': (303, 264), 'ptrace': (101, 117),
    'process_vm_readv': (310, 270), 'process_vm_writev': (311, 271), 'pidfd_open': (434, 434),
    'pidfd_getfd': (438, 438), 'add_key': (248, 217), 'keyctl': (250, 219), 'bpf': (321, 280),
    'perf_event_open': (298, 241), 'userfaultfd': (323, 282), 'io_uring_setup': (425, 425),
    'init_module': (175, 105), 'delete_module': (176, 106), 'ioctl': (16, 29),
    'setns': (308, 268), 'fanotify_init': (300, 262), 'openat2': (437, 437),
    'fsopen': (430, 430), 'open_tree': (428, 428), 'mount': (165, 40), 'mknodat': (259, 33),
    'fchmodat2': (452, 452), 'syslog': (103, 116), 'sethostname': (170, 161),
    'clock_settime': (227, 112), 'memfd_secret': (447, 447), 'kexec_load': (246, 104),
    'inotify_init1': (294, 26), 'inotify_add_watch': (254, 27), 'swapon': (167, 224),
    'reboot': (169, 142), 'acct': (163, 89), 'personality': (135, 92),
    'kcmp': (312, 272), 'rt_sigqueueinfo': (129, 138), 'tgkill': (234, 131), 'clone3': (435, 435),
    'unshare': (272, 97), 'iopl': (172, -1), 'chroot': (161, 51), 'pidfd_send_signal': (424, 424),
}


def call(name, *arguments):
    """One system call, as the kernel takes it."""
    def word(value):
        if isinstance(value, int):
            return ctypes.c_long(value)
        return ctypes.c_char_p(value) if isinstance(value, bytes) else value
    result = libc.syscall(ctypes.c_long(NUMBERS[name][ARM]), *map(word, arguments))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


