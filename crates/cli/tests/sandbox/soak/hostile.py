# Random acts against whatever is around. The same seed gives the same acts; how they meet with what
# the host does meanwhile is left to chance.
#
#     hostile.py SEED ACTS OUTSIDE DECOY PROTECTED...
#
# Everything that it writes says EVIL, and every program that it leaves writes into OUTSIDE.
import ctypes, fcntl, os, random, resource, signal, socket, stat, struct, sys, termios, threading, time

with open('/proc/self/status') as status:
    behind_a_wall = 'NoNewPrivs:\t1' in status.read() and os.getpid() < 100
if not behind_a_wall:
    sys.exit('this program is only for the inside of a sandbox')

seed, acts, OUTSIDE, DECOY = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
PROTECTED = sys.argv[5:]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
EVIL = b'#!/bin/sh\necho EVIL > ' + OUTSIDE.encode() + b'/pwned\n'
SETTINGS = b'[core]\n\tfsmonitor = "echo EVIL > ' + OUTSIDE.encode() + b'/pwned; false"\n'
PLAIN = ['hello.txt', 'src', 'src/main.c', 'Makefile', 'package.json', 'a', 'b', 'c', 'a/b', 'a/b/c',
         'n' * 255, 'n' * 256, 'new\nline', 'ringwall: forged', '\udcff\udcfe', '-rf', 'x.git', 'd/HEAD']
FAR = ['/etc/passwd', '/etc/cron.d/x', '/proc/sysrq-trigger', '/sys/power/state', '/dev/mem', '/dev/kmsg',
       '/proc/1/mem', '/proc/self/mem', '/proc/1/root/etc/passwd', '/proc/self/root', '/run/x', '/']
NUMBERS = {'openat2': 437, 'io_uring_setup': 425, 'pidfd_open': 434, 'pidfd_getfd': 438, 'bpf': 280 if
           os.uname().machine == 'aarch64' else 321, 'memfd_secret': 447, 'open_tree': 428,
           'move_mount': 429, 'fsopen': 430, 'mount_setattr': 442, 'landlock_create_ruleset': 444}
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCONT, signal.SIGUSR1, signal.SIGPIPE,
           signal.SIGWINCH, signal.SIGCHLD, signal.SIGKILL, signal.SIGTTOU, signal.SIGTSTP]


class Actor:
    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.open = []
        self.terminal = os.isatty(0)

    def name(self):
        dice = self.dice
        kind = dice.random()
        if kind < 0.5:
            name = dice.choice(PROTECTED)
        elif kind < 0.8:
            name = dice.choice(PLAIN)
        elif kind < 0.95:
            name = dice.choice(['../outside/victim.txt', '../outside/new', OUTSIDE + '/victim.txt',
                                '../home/.bashrc', '../home/.ssh/id_ed25519', '../events.jsonl',
                                '../canary', '../deny.toml'])
        else:
            name = dice.choice(FAR)
        how = dice.random()
        if how < 0.1:
            name = '/'.join(['.', 'a', '..', name]) if name[:1] != '/' else name
        elif how < 0.15 and name[:1] != '/':
            name = '/proc/self/cwd/' + name
        elif how < 0.2 and name[:1] != '/':
            name = os.path.dirname(name) or name
        elif how < 0.22:
            name = name.upper()
        elif how < 0.24:
            name = 'd/' * dice.choice([3, 1000, 3000]) + name
        return name

    def text(self):
        return self.dice.choice([EVIL, SETTINGS])

    def keep(self, descriptor):
        self.open.append(descriptor)
        if len(self.open) > 30:
            os.close(self.open.pop(self.dice.randrange(len(self.open))))
        return descriptor

    def write(self):
        flags = self.dice.choice([os.O_WRONLY, os.O_RDWR]) | self.dice.choice([
            os.O_CREAT, os.O_CREAT | os.O_TRUNC, os.O_CREAT | os.O_EXCL, os.O_APPEND, os.O_TRUNC, 0])
        flags |= self.dice.choice([0, os.O_NOFOLLOW, os.O_DIRECT, os.O_SYNC, os.O_ASYNC])
        file = self.keep(os.open(self.name(), flags | os.O_NONBLOCK, self.dice.choice([0o644, 0o4755, 0])))
        os.write(file, self.text())

    def read(self):
        file = self.keep(os.open(self.name(), os.O_RDONLY | os.O_NONBLOCK |
                                 self.dice.choice([0, os.O_PATH, os.O_DIRECTORY, os.O_NOATIME])))
        os.read(file, 100)

    def unnamed(self):
        file = self.keep(os.open('.', os.O_TMPFILE | os.O_RDWR, 0o755))
        os.write(file, self.text())
        libc.linkat(-100, b'/proc/self/fd/%d' % file, -100, os.fsencode(self.name()), 0x400)

    def rename(self):
        one, other = self.name(), self.name()
        flags = self.dice.choice([0, 0, 1, 2])
        libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), flags)

    def put(self):
        name = 'p%d' % self.dice.randrange(5)
        with open(name, 'wb') as file:
            file.write(self.text())
        os.chmod(name, 0o755)
        self.dice.choice([os.rename, os.link, os.replace])(name, self.name())

    def put_tree(self):
        base = 't%d' % self.dice.randrange(5)
        name = self.dice.choice(PROTECTED)
        inner = os.path.join(base, *name.split('/')[1:])
        os.makedirs(os.path.dirname(inner), exist_ok=True)
        with open(inner, 'wb') as file:
            file.write(self.text())
        os.rename(base, name.split('/')[0])

    def symlink(self):
        target = self.dice.choice([DECOY, DECOY + '/x', self.dice.choice(PLAIN), '.', '..', 'loop'])
        os.symlink(target, self.name())

    def remove(self):
        self.dice.choice([os.unlink, os.rmdir])(self.name())

    def directory(self):
        os.mkdir(self.name(), self.dice.choice([0o755, 0o000, 0o311, 0o7777]))

    def node(self):
        os.mknod(self.name(), self.dice.choice([stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFREG]) | 0o666)

    def attributes(self):
        name = self.name()
        self.dice.choice([
            lambda: os.chmod(name, self.dice.choice([0, 0o777, 0o4755])),
            lambda: os.chown(name, self.dice.choice([0, 1, 54321, -1]), -1),
            lambda: os.utime(name, (0, 0)),
            lambda: os.truncate(name, 0),
            lambda: os.setxattr(name, 'user.x', EVIL),
        ])()

    def listener(self):
        one = socket.socket(socket.AF_UNIX, self.dice.choice([socket.SOCK_STREAM, socket.SOCK_DGRAM]))
        one.bind(self.dice.choice([self.name()[:100], '\0x%d' % self.dice.randrange(9)]))
        self.keep(one.detach())

    def connect(self):
        family = self.dice.choice([socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 16, 40])
        one = socket.socket(family, self.dice.choice([1, 2, 3]))
        one.setblocking(False)
        where = {2: ('127.0.0.1', self.dice.randrange(1, 65536)), 10: ('::1', 22)}.get(family, self.name()[:100])
        self.dice.choice([lambda: one.connect(where), lambda: one.sendto(EVIL, where)])()

    def passing(self):
        one, other = socket.socketpair()
        socket.send_fds(one, [b'x'], [self.dice.choice(self.open or [0])])
        self.keep(socket.recv_fds(other, 1, 5)[1][0])

    def mount(self):
        libc.mount(self.dice.choice([b'.', b'/', b'none']), os.fsencode(self.name()),
                   self.dice.choice([b'tmpfs', b'proc', b'fuse', b'overlay', None]),
                   ctypes.c_ulong(self.dice.choice([0, 4096, 0x1000 | 0x4000, 32, 1 << 18, 1 << 13])), None)
        libc.umount2(os.fsencode(self.name()), self.dice.choice([0, 2, 8]))

    def namespace(self):
        child = os.fork()
        if child == 0:
            libc.unshare(self.dice.choice([0x10000000, 0x10020000, 0x20000000, 0x40000000, 0x7e020000]))
            libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)
            os._exit(0)
        os.waitpid(child, 0)

    def trace(self):
        target = self.dice.choice([1, 2, os.getppid(), self.dice.randrange(1, 60)])
        libc.ptrace(self.dice.choice([16, 0x4206, 0]), target, None, None)
        libc.ptrace(17, target, None, None)

    def signal(self):
        target = self.dice.choice([1, 1, 2, 0, -1, self.dice.randrange(2, 60), -self.dice.randrange(2, 60)])
        number = self.dice.choice(SIGNALS)
        # One that ends all of the others ends this run: rarely.
        if target in (0, -1) and number not in (signal.SIGCONT, signal.SIGWINCH, signal.SIGCHLD) \
                and self.dice.random() < 0.95:
            return
        os.kill(target, number)

    def daemon(self):
        if self.dice.random() < 0.8:
            return
        if os.fork() == 0:
            os.setsid()
            for number in SIGNALS:
                if number != signal.SIGKILL:
                    signal.signal(number, signal.SIG_IGN)
            if os.fork() == 0:
                deep = Actor(self.dice.random())
                while True:
                    deep.act()
                    time.sleep(0.01)
            os._exit(0)

    def crowd(self):
        children = []
        for _ in range(self.dice.choice([1, 20])):
            child = os.fork()
            if child == 0:
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)

    def flipping(self):
        """A path that another thread changes while a call looks at it."""
        good, bad = b'p-good', os.fsencode(self.dice.choice(PROTECTED))
        size = max(len(good), len(bad)) + 1
        path = ctypes.create_string_buffer(good, size)
        end = time.monotonic() + 0.02

        def flip():
            while time.monotonic() < end:
                ctypes.memmove(path, bad + b'\0', len(bad) + 1)
                ctypes.memmove(path, good + b'\0', len(good) + 1)
        other = threading.Thread(target=flip)
        other.start()
        while time.monotonic() < end:
            file = libc.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o755)
            if file >= 0:
                os.write(file, self.text())
                os.close(file)
        other.join()

    def on_terminal(self):
        file = self.dice.choice([0, 1, 2])
        dice = self.dice
        dice.choice([
            lambda: fcntl.ioctl(file, termios.TIOCSTI, b'\n'),
            lambda: fcntl.ioctl(file, 0x541C, b'\x02\x00\x00\x00'),
            lambda: fcntl.ioctl(file, termios.TIOCSCTTY, 1),
            lambda: fcntl.ioctl(file, termios.TIOCNOTTY),
            lambda: fcntl.ioctl(file, termios.TIOCSPGRP, struct.pack('i', dice.randrange(1, 60))),
            lambda: fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack('4H', 1, 1, 1, 1)),
            lambda: fcntl.ioctl(file, termios.TIOCEXCL),
            lambda: termios.tcflow(file, dice.choice([termios.TCOON, termios.TCOOFF, termios.TCIOFF, termios.TCION])),
            lambda: termios.tcflush(file, termios.TCIOFLUSH),
            lambda: termios.tcsendbreak(file, 0),
            lambda: os.setpgid(0, 0),
            lambda: os.setsid(),
            lambda: os.write(file, b'\x1b]0;ringwall: all is well\x07\x1b[c\n'),
        ])()

    def descriptor(self):
        file = self.dice.choice(self.open or [0])
        self.dice.choice([
            lambda: fcntl.fcntl(file, 1024, self.dice.choice([0, 1, 2])),
            lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB),
            lambda: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB),
            lambda: fcntl.fcntl(file, fcntl.F_SETOWN, self.dice.choice([1, -1, os.getppid()])),
            lambda: fcntl.fcntl(file, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK),
            lambda: os.fchdir(file),
            lambda: os.write(file, EVIL),
            lambda: os.ftruncate(file, 0),
            lambda: os.fchmod(file, 0o4777),
            lambda: os.open('/proc/self/fd/%d' % file, os.O_RDWR | os.O_NONBLOCK),
        ])()
        os.chdir(BASE)

    def limits(self):
        which = self.dice.choice([resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_CORE,
                                  resource.RLIMIT_FSIZE, resource.RLIMIT_AS])
        try:
            resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except (ValueError, OSError):
            os.setpriority(os.PRIO_PROCESS, 0, -20)

    def process(self):
        libc.prctl(self.dice.choice([4, 15, 22, 36, 38, 59]), self.dice.choice([0, 1, 2]), EVIL, 0, 0)

    def memory(self):
        file = self.dice.choice([lambda: os.memfd_create('EVIL'),
                                 lambda: os.open('/dev/shm/x', os.O_RDWR | os.O_CREAT)])()
        os.ftruncate(self.keep(file), 1 << 20)
        os.execv('/proc/self/fd/%d' % file, ['x']) if self.dice.random() < 0.001 else None

    def watch(self):
        file = self.keep(libc.inotify_init1(os.O_NONBLOCK))
        libc.inotify_add_watch(file, os.fsencode(self.name()), 0xfff)
        libc.fanotify_init(0, 0)

    def call(self):
        name, number = self.dice.choice(sorted(NUMBERS.items()))
        words = [ctypes.c_long(self.dice.choice([0, 1, -1, -100, 24])) for _ in range(5)]
        libc.syscall(ctypes.c_long(number), *words)

    def act(self):
        usual = [self.write, self.write, self.read, self.rename, self.put, self.put, self.put_tree,
                 self.symlink, self.remove, self.directory, self.node, self.attributes, self.unnamed]
        rare = [self.listener, self.connect, self.passing, self.mount, self.namespace, self.trace,
                self.signal, self.daemon, self.crowd, self.flipping, self.descriptor, self.limits,
                self.process, self.memory, self.watch, self.call]
        if self.terminal:
            rare.append(self.on_terminal)
        try:
            self.dice.choice(usual if self.dice.random() < 0.7 else rare)()
        except (OSError, ValueError, OverflowError, termios.error, TypeError, IndexError, RuntimeError, MemoryError):
            pass


BASE = os.getcwd()
print('UP', flush=True)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE, signal.SIGTTOU, signal.SIGTSTP):
    signal.signal(number, signal.SIG_IGN)
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        actor = Actor(seed * 10 + number)
        for _ in range(acts):
            actor.act()
        os._exit(0)
    children.append(child)
for child in children:
    try:
        os.waitpid(child, 0)
    except OSError:
        pass
os._exit(seed % 50)
