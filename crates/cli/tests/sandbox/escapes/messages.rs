//! Ways to another process that go round files and the network.

use super::row::Sign::{Heard, Says, Secret};
use super::row::{Row, bash, python};

pub(super) const ROWS: &[Row] = &[
    python(
        "a socket",
        Heard,
        "
stream = socket.socket(socket.AF_UNIX)
stream.connect(RUN + '/service.sock')
stream.sendall(MARK.encode())
",
    ),
    python(
        "a socket in the directory it is in",
        Heard,
        "
os.chdir(RUN)
stream = socket.socket(socket.AF_UNIX)
stream.connect('service.sock')
stream.sendall(MARK.encode())
",
    ),
    python(
        "a socket behind a link of the repository",
        Heard,
        "
stream = socket.socket(socket.AF_UNIX)
stream.connect('planted-socket')
stream.sendall(MARK.encode())
",
    ),
    python(
        "a socket behind a process",
        Heard,
        "
stream = socket.socket(socket.AF_UNIX)
stream.connect(f'/proc/{NEIGHBOUR}/cwd/service.sock')
stream.sendall(MARK.encode())
",
    ),
    python(
        "a socket that was left open",
        Heard,
        "
stream = socket.socket(socket.AF_UNIX)
stream.connect('/proc/self/fd/7/service.sock')
stream.sendall(MARK.encode())
",
    )
    .after_outside("exec 7<$RUN"),
    python(
        "a socket of the host in a directory that is granted",
        Heard,
        "
stream = socket.socket(socket.AF_UNIX)
stream.connect(YARD + '/ground/service.sock')
stream.sendall(MARK.encode())
",
    ),
    python(
        "a socket of the host in a directory that is granted, renamed",
        Heard,
        "
try:
    os.rename(YARD + '/ground/service.sock', YARD + '/ground/renamed.sock')
    name = YARD + '/ground/renamed.sock'
except OSError:
    name = YARD + '/ground/service.sock'
try:
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(name)
    stream.sendall(MARK.encode())
finally:
    os.rename(name, YARD + '/ground/service.sock')
",
    ),
    python(
        "a socket of the host in a directory that is granted, by another name",
        Heard,
        "
os.link(YARD + '/ground/service.sock', YARD + '/ground/linked.sock')
stream = socket.socket(socket.AF_UNIX)
try:
    stream.connect(YARD + '/ground/linked.sock')
    stream.sendall(MARK.encode())
finally:
    os.unlink(YARD + '/ground/linked.sock')
",
    ),
    python(
        "a socket of the host in a directory that is granted, by a descriptor",
        Heard,
        "
opened = os.open(YARD + '/ground/service.sock', os.O_PATH)
stream = socket.socket(socket.AF_UNIX)
stream.connect(f'/proc/self/fd/{opened}')
stream.sendall(MARK.encode())
",
    ),
    python(
        "a socket of the host in a directory that is granted, for datagrams",
        Heard,
        "
datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
datagram.sendto(MARK.encode(), YARD + '/ground/notes.sock')
",
    ),
    python(
        "a socket of the host in a directory that is granted, by a message with an address",
        Heard,
        "
pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
pair[0].sendmsg([MARK.encode()], [], 0, YARD + '/ground/notes.sock')
",
    ),
    python(
        "a socket for datagrams",
        Heard,
        "
datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
datagram.sendto(MARK.encode(), RUN + '/notes.sock')
",
    ),
    python(
        "one end of a pair, sent elsewhere",
        Heard,
        "
pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
pair[0].sendto(MARK.encode(), RUN + '/notes.sock')
",
    ),
    python(
        "one end of a pair, connected elsewhere",
        Heard,
        "
pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
pair[0].connect(RUN + '/notes.sock')
pair[0].send(MARK.encode())
",
    ),
    python(
        "an abstract socket",
        Heard,
        "
stream = socket.socket(socket.AF_UNIX)
stream.connect('\\0' + ABSTRACT)
stream.sendall(MARK.encode())
",
    ),
    python(
        "an abstract socket for datagrams",
        Heard,
        "
datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
datagram.sendto(MARK.encode(), '\\0' + ABSTRACT + '-notes')
",
    ),
    bash("a socket by a queue of calls", Heard, "./escape ring-tell $RUN/service.sock $MARK"),
    bash("a pipe", Heard, "echo $MARK > $RUN/pipe"),
    python(
        "memory shared by a key",
        Secret,
        "
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
segment = libc.shmget(SHARED, 0, 0)
if segment >= 0:
    print(ctypes.string_at(libc.shmat(segment, None, 0o10000)))
",
    ),
    python(
        "a queue of messages",
        Secret,
        "
queue = libc.mq_open(f'/{QUEUE}'.encode(), os.O_RDWR | os.O_NONBLOCK)
text = ctypes.create_string_buffer(8192)
if queue >= 0 and libc.mq_receive(queue, text, 8192, None) > 0:
    print(text.value)
    libc.mq_send(queue, text.value, len(text.value), 0)
",
    ),
    python(
        "a key ring",
        Secret,
        "
text = ctypes.create_string_buffer(200)
call('keyctl', 11, RING, text, 200)
print(text.value)
",
    ),
    python(
        "a key ring, by name",
        Secret,
        "
key = call('keyctl', 10, -4, b'user', NAME.encode(), 0)
text = ctypes.create_string_buffer(200)
call('keyctl', 11, key, text, 200)
print(text.value)
",
    ),
    // A terminal, on which the shell outside reads what was typed.
    python(
        "typing on the terminal",
        Says,
        "
for letter in b'typed\\n':
    call('ioctl', 0, 0x5412, ctypes.create_string_buffer(bytes([letter])))
",
    )
    .on_terminal(TYPED),
    python(
        "typing with more bits than the kernel looks at",
        Says,
        "
for letter in b'typed\\n':
    call('ioctl', 0, 0x100005412, ctypes.create_string_buffer(bytes([letter])))
",
    )
    .on_terminal(TYPED),
    python(
        "typing on the terminal by its other name",
        Says,
        "
terminal = os.open('/dev/tty', os.O_RDWR)
for letter in b'typed\\n':
    call('ioctl', terminal, 0x5412, ctypes.create_string_buffer(bytes([letter])))
",
    )
    .on_terminal(TYPED),
    python(
        "a selection on the console",
        Says,
        "
console = os.open('/dev/tty1', os.O_RDWR | os.O_NOCTTY)
call('ioctl', console, 0x541c, ctypes.create_string_buffer(b'\\x06'))
print('OPEN')
",
    ),
];

const TYPED: &str = "read -r -t 0.3 line; [ \"$line\" = typed ] && echo && echo OPEN";
