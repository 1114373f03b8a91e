# Ordinary calls, and what they return and leave. The same is printed with and without the sandbox.
import ctypes, errno, fcntl, mmap, os, pty, shutil, socket, stat, subprocess, sys, threading

libc = ctypes.CDLL(None, use_errno=True)
place = os.path.join(os.getcwd(), 'semantics')
shutil.rmtree(place, ignore_errors=True)
os.mkdir(place)
os.chdir(place)
number = 0


def tell(name, act):
    global number
    number += 1
    try:
        result = act()
    except OSError as error:
        result = errno.errorcode[error.errno]
    print(number, name, result, flush=True)


def opened(path, flags, mode=0o666, **more):
    fd = os.open(path, flags, mode, **more)
    try:
        got = fcntl.fcntl(fd, fcntl.F_GETFL) & ~0o500000
        return oct(got), fcntl.fcntl(fd, fcntl.F_GETFD), shape(fd)
    finally:
        os.close(fd)


def shape(path, follow=True):
    found = os.stat(path) if isinstance(path, int) else os.stat(path, follow_symlinks=follow)
    owner = (found.st_uid == os.geteuid(), found.st_gid == os.getegid())
    return oct(found.st_mode), found.st_nlink, owner, found.st_size if stat.S_ISREG(found.st_mode) else 0


def raw(name, *arguments):
    arguments = [ctypes.c_long(it) if isinstance(it, int) else it for it in arguments]
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)
    return 0


def fresh():
    for entry in os.listdir('.'):
        os.chmod(entry, 0o700) if not os.path.islink(entry) else None
        shutil.rmtree(entry) if os.path.isdir(entry) and not os.path.islink(entry) else os.remove(entry)
    with open('file', 'w') as file:
        file.write('text')
    os.mkdir('dir')
    os.mkdir('full')
    open('full/x', 'w').close()
    for target, link in [('file', 'to-file'), ('dir', 'to-dir'), ('gone', 'dangling'),
                         ('loop', 'loop'), ('nowhere/gone', 'deep-dangling')]:
        os.symlink(target, link)


names = ['file', 'dir', 'full', 'to-file', 'to-dir', 'dangling', 'loop', 'deep-dangling', 'none',
         'none/x', 'file/x', 'dir/x', 'to-dir/x', 'file/', 'dir/', 'to-dir/', 'none/', 'dangling/',
         '.', '..', 'dir/.', 'dir/..', 'dir/../file', 'dir/../none', 'none/../file', 'file/../x',
         './/file', place + '/file', place + '//dir//y', 'n' * 255, 'n' * 256, 'd/' * 2000 + 'x',
         'dir/../' * 600 + 'z', '']

opens = {
    'w': os.O_WRONLY, 'rw': os.O_RDWR, 'c': os.O_WRONLY | os.O_CREAT, 'rc': os.O_RDONLY | os.O_CREAT,
    'cx': os.O_RDWR | os.O_CREAT | os.O_EXCL, 'ct': os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    'a': os.O_WRONLY | os.O_APPEND | os.O_CREAT, 't': os.O_RDONLY | os.O_TRUNC,
    'nf': os.O_WRONLY | os.O_NOFOLLOW, 'cnf': os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW,
    'wd': os.O_RDWR | os.O_DIRECTORY, 'nb': os.O_RDWR | os.O_NONBLOCK,
    'tmp': os.O_RDWR | os.O_TMPFILE, 'sync': os.O_RDWR | os.O_SYNC,
}
for kind, flags in opens.items():
    for name in names:
        fresh()
        tell(f'open {kind} {name[:40]}', lambda: opened(name, flags, 0o640))

ones = {
    'mkdir': lambda name: os.mkdir(name, 0o777), 'rmdir': os.rmdir, 'unlink': os.unlink,
    'truncate': lambda name: os.truncate(name, 2), 'grow': lambda name: os.truncate(name, 4096),
    'negative': lambda name: raw('truncate', name.encode(), -1),
    'mkfifo': lambda name: os.mkfifo(name, 0o666), 'mknod': lambda name: os.mknod(name, 0o600),
    'symlink': lambda name: os.symlink('target', name), 'empty link': lambda name: os.symlink('', name),
    'link': lambda name: os.link('file', name), 'link from': lambda name: os.link(name, 'new'),
    'link through': lambda name: raw('linkat', -100, name.encode(), -100, b'new', 0x400),
    'chmod': lambda name: os.chmod(name, 0o751), 'lchmod': lambda name: raw('syscall', 452, -100, name.encode(), 0o700, 0x100),
    'chown': lambda name: os.chown(name, os.getuid(), os.getgid()),
    'chown none': lambda name: os.chown(name, -1, -1),
    'lchown': lambda name: os.lchown(name, os.getuid(), -1),
    'utime': lambda name: (os.utime(name, (1, 2)), os.stat(name).st_mtime)[1],
    'utime now': lambda name: os.utime(name),
    'lutime': lambda name: (os.utime(name, ns=(5, 7), follow_symlinks=False), os.lstat(name).st_mtime_ns)[1],
    'setxattr': lambda name: (os.setxattr(name, 'user.x', b'value'), os.getxattr(name, 'user.x'))[1],
    'lsetxattr': lambda name: os.setxattr(name, 'user.x', b'v', follow_symlinks=False),
    'removexattr': lambda name: os.removexattr(name, 'user.none'),
    'xattr flags': lambda name: os.setxattr(name, 'user.x', b'v', os.XATTR_REPLACE),
}
for kind, act in ones.items():
    for name in names:
        fresh()
        tell(f'{kind} {name[:40]}', lambda: (act(name), shape(name, False))[0])

for old in names:
    for new in ['file', 'dir', 'full', 'to-dir', 'dangling', 'none', 'none/x', 'dir/new', 'dir/', 'none/', '.', '..', 'full/..']:
        if new in ('.', '..', 'full/..') and '/' in old or old.rstrip('.') in ('', 'dir/') and '/' in new:
            continue  # Which of two errors comes first.
        fresh()
        tell(f'rename {old[:40]} {new}', lambda: os.rename(old, new))
for flags in [1, 2, 3, 8]:
    for old, new in [('file', 'dir'), ('file', 'none'), ('dir', 'full'), ('none', 'file'), ('file', 'to-file'), ('full', 'full/x')]:
        fresh()
        tell(f'renameat2 {flags} {old} {new}', lambda: (raw('renameat2', -100, old.encode(), -100, new.encode(), flags), sorted(os.listdir('.')))[1])

fresh()
for umask in [0, 0o22, 0o77, 0o777]:
    os.umask(umask)
    for made in ['f', 'd', 'p']:
        tell(f'umask {umask:o} {made}', lambda: {
            'f': lambda: opened(f'f{umask}', os.O_WRONLY | os.O_CREAT, 0o7777 & ~0o6000),
            'd': lambda: (os.mkdir(f'd{umask}', 0o1777), shape(f'd{umask}'))[1],
            'p': lambda: (os.mkfifo(f'p{umask}', 0o666), shape(f'p{umask}'))[1]}[made]())
os.umask(0o22)
tell('set-gid directory', lambda: (os.mkdir('sg'), os.chmod('sg', 0o2755), os.mkdir('sg/in'), shape('sg/in'))[3])

fresh()
dir_fd = os.open('dir', os.O_RDONLY)
tell('openat', lambda: opened('new', os.O_CREAT | os.O_WRONLY, dir_fd=dir_fd))
tell('mkdirat', lambda: os.mkdir('sub', dir_fd=dir_fd))
tell('renameat', lambda: os.rename('new', '../moved', src_dir_fd=dir_fd, dst_dir_fd=dir_fd))
tell('linkat', lambda: os.link('../moved', 'again', src_dir_fd=dir_fd, dst_dir_fd=dir_fd))
tell('symlinkat', lambda: os.symlink('../moved', 'sym', dir_fd=dir_fd))
tell('unlinkat', lambda: os.unlink('again', dir_fd=dir_fd))
tell('bad directory', lambda: os.open('x', os.O_CREAT | os.O_WRONLY, dir_fd=999))
file_fd = os.open('file', os.O_RDONLY)
tell('file as directory', lambda: os.open('x', os.O_CREAT | os.O_WRONLY, dir_fd=file_fd))
tell('empty path', lambda: raw('fchownat', file_fd, b'', os.getuid(), os.getgid(), 0x1000))
tell('no memory', lambda: raw('mkdir', ctypes.c_void_p(1), 0o700))
tell('no target', lambda: raw('symlink', ctypes.c_void_p(1), b'ptr'))
tell('no path', lambda: raw('open', ctypes.c_void_p(0), os.O_WRONLY))
tell('no times', lambda: raw('utimensat', -100, b'file', ctypes.c_void_p(1), 0))
os.mkdir('removed')
os.chdir('removed')
os.rmdir('../removed')
tell('in a removed directory', lambda: os.open('x', os.O_CREAT | os.O_WRONLY))
os.chdir(place)
os.mkdir('closed', 0o500)
if os.geteuid():
    tell('in a closed directory', lambda: os.open('closed/x', os.O_CREAT | os.O_WRONLY))
os.chmod('file', 0o400)
if os.geteuid():
    tell('a read-only file', lambda: os.open('file', os.O_WRONLY))

fresh()
fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o644)
os.write(fd, b'nameless')
tell('name for a file without one', lambda: (raw('linkat', -100, b'/proc/self/fd/%d' % fd, -100, b'named', 0x400), open('named').read())[1])
fd = os.open('.', os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o644)
tell('no name for it', lambda: raw('linkat', -100, b'/proc/self/fd/%d' % fd, -100, b'named2', 0x400))
with open('lock', 'w') as first, open('lock', 'w') as second:
    fcntl.flock(first, fcntl.LOCK_EX)
    tell('flock', lambda: fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB))
with open('lock', 'w') as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    tell('lockf', lambda: subprocess.run([sys.executable, '-c', 'import fcntl\ntry: fcntl.lockf(open("lock","w"), fcntl.LOCK_EX|fcntl.LOCK_NB)\nexcept OSError as e: print("held", flush=True)'], capture_output=True, text=True).stdout)
with open('mapped', 'w+b') as file:
    file.truncate(4096)
    with mmap.mmap(file.fileno(), 4096) as memory:
        memory[:5] = b'HELLO'
tell('mmap', lambda: open('mapped', 'rb').read(5))
os.mkfifo('pipe')
tell('fifo without a reader', lambda: os.open('pipe', os.O_WRONLY | os.O_NONBLOCK))
tell('fifo both ways', lambda: opened('pipe', os.O_RDWR))
reader = []
thread = threading.Thread(target=lambda: reader.append(open('pipe').read()))
thread.start()
with open('pipe', 'w') as file:
    file.write('through')
thread.join()
tell('fifo', lambda: reader)
child = subprocess.Popen(['sh', '-c', 'echo late > pipe'])
tell('fifo, writer first', lambda: (open('pipe').read(), child.wait()))
for number_of, (read_end, write_end) in enumerate([os.pipe()]):
    tell('pipe by name', lambda: opened(f'/proc/self/fd/{write_end}', os.O_WRONLY))
    tell('pipe by /dev/fd', lambda: opened(f'/dev/fd/{write_end}', os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
    tell('other end', lambda: opened(f'/proc/self/fd/{read_end}', os.O_WRONLY))
memory_fd = os.memfd_create('memory')
tell('memfd by name', lambda: opened(f'/proc/self/fd/{memory_fd}', os.O_RDWR))
fd = os.open('file', os.O_RDONLY)
tell('file by descriptor', lambda: opened(f'/proc/self/fd/{fd}', os.O_RDWR | os.O_APPEND))
tell('by thread', lambda: opened(f'/proc/thread-self/fd/{fd}', os.O_RDWR))
tell('by number', lambda: opened(f'/proc/{os.getpid()}/fd/{fd}', os.O_RDWR))
tell('chmod by descriptor', lambda: (os.chmod(f'/proc/self/fd/{fd}', 0o600), shape('file'))[1])
tell('truncate by descriptor', lambda: (os.truncate(f'/proc/self/fd/{fd}', 1), shape('file'))[1])
os.symlink(f'/proc/self/fd/{fd}', 'to-descriptor')
tell('by a link to it', lambda: opened('to-descriptor', os.O_RDWR))
os.unlink('file')
tell('removed file by descriptor', lambda: opened(f'/proc/self/fd/{fd}', os.O_RDWR))
tell('closed descriptor', lambda: os.open('/proc/self/fd/777', os.O_WRONLY))
one, other = socket.socketpair()
tell('socket by descriptor', lambda: os.open(f'/proc/self/fd/{one.fileno()}', os.O_RDWR))
for device in ['null', 'zero', 'full', 'random', 'urandom']:
    tell(device, lambda: opened(f'/dev/{device}', os.O_RDWR)[0])
tell('dev null', lambda: opened('/dev/null', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)[0])
tell('full', lambda: os.write(os.open('/dev/full', os.O_WRONLY), b'x'))
tell('no terminal', lambda: subprocess.run([sys.executable, '-c', 'import os\nos.setsid()\ntry: os.open("/dev/tty", os.O_RDWR)\nexcept OSError as e: print(e.errno)'], capture_output=True, text=True).stdout)


def on_terminal():
    output = []
    def read(fd):
        data = os.read(fd, 1000)
        output.append(data)
        return data
    saved = os.dup(1)
    null = os.open('/dev/null', os.O_WRONLY)
    os.dup2(null, 1)
    try:
        status = pty.spawn(['sh', '-c', 'tty > /dev/tty; echo again > /dev/stdout; [ -t 0 ] && echo yes > $(tty)'], read)
    finally:
        os.dup2(saved, 1)
    return status, b''.join(output).replace(b'/dev/pts/', b'').split()[1:]


tell('pty', on_terminal)
tell('ptmx', lambda: stat.S_ISCHR(os.stat(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)).st_mode))
server = socket.socket(socket.AF_UNIX)
tell('bind', lambda: (server.bind('socket'), server.getsockname(), shape('socket'))[1:])
tell('bind again', lambda: socket.socket(socket.AF_UNIX).bind('socket'))
tell('bind nowhere', lambda: socket.socket(socket.AF_UNIX).bind('none/socket'))
server.listen()
client = socket.socket(socket.AF_UNIX)
tell('connect', lambda: client.connect(place + '/socket'))
tell('abstract', lambda: socket.socket(socket.AF_UNIX).bind('\0semantics%d' % os.getpid()))
tell('inet', lambda: (lambda it: (it.bind(('127.0.0.1', 0)), it.getsockname()[0]))(socket.socket()))
with open('program', 'w') as file:
    file.write('#!/bin/sh\necho ran\n')
os.chmod('program', 0o755)
busy = os.open('program', os.O_WRONLY)
shutil.copy('/bin/true', 'binary')
held = os.open('binary', os.O_WRONLY)
tell('busy program', lambda: subprocess.run(['./binary']).returncode)
os.close(held)


def write_and_run():
    for _ in range(300):
        shutil.copy('/bin/true', 'binary2')
        subprocess.run(['./binary2'], check=True)
        os.unlink('binary2')


tell('written and run', write_and_run)
if len(sys.argv) > 1:
    os.chdir(place)
    for depth in range(30):
        os.mkdir('d' * 200)
        os.chdir('d' * 200)
    tell('deep', lambda: opened('x', os.O_CREAT | os.O_WRONLY))
os.chdir(place)
os.chdir('..')
shutil.rmtree(place)
