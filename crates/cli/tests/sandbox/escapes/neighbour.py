# A process on the host that belongs to the same user: it keeps a secret in every way that a process
# can, and listens wherever something could come out. It tells what it hears, one line each, and
# answers a line on its input when it has told everything.
import select, signal

directory, name, secret = sys.argv[1:4]
os.chdir(directory)
facts = {}

# In memory, in an open file that has no name, in the command line, in the environment.
memory = ctypes.create_string_buffer(secret.encode())
facts['NEIGHBOUR'] = os.getpid()
facts['ADDRESS'] = ctypes.addressof(memory)
with open('unnamed', 'w') as file:
    file.write(secret)
facts['DESCRIPTOR'] = os.open('unnamed', os.O_RDONLY)
os.unlink('unnamed')

# In memory that is shared by key, in a queue, in a key ring.
KEY = os.getpid() | 0x5e000000
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
segment = libc.shmget(KEY, 4096, 0o1600)
ctypes.memmove(libc.shmat(segment, None, 0), secret.encode(), len(secret))
facts['SHARED'] = KEY
queue = libc.mq_open(f'/{name}'.encode(), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600, None)
libc.mq_send(queue, secret.encode(), len(secret), 0)
facts['QUEUE'] = name
try:
    key = call('add_key', b'user', name.encode(), secret.encode(), len(secret), -4)
    call('keyctl', 5, key, 0x3f3f0000)
except OSError:
    key = 0
facts['RING'] = key

# By the number of a file, which needs no path.
handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
call('name_to_handle_at', -100, b'secret.txt', handle, ctypes.byref(ctypes.c_int()), 0)
facts['HANDLE'] = handle.raw[: 8 + struct.unpack('I', handle.raw[:4])[0]].hex()

listeners, streams = {}, []


def listen(fact, family, kind, address):
    listener = socket.socket(family, kind)
    listener.bind(address)
    if kind == socket.SOCK_STREAM:
        listener.listen(16)
    listeners[listener] = kind
    facts[fact] = listener.getsockname()[1] if family != socket.AF_UNIX else ''
    return listener


listen('PORT', socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', 0))
listen('OTHER_PORT', socket.AF_INET, socket.SOCK_STREAM, ('127.3.2.1', 0))
listen('DATAGRAM_PORT', socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', 0))
try:
    listen('PORT_6', socket.AF_INET6, socket.SOCK_STREAM, ('::1', 0))
    listen('DATAGRAM_PORT_6', socket.AF_INET6, socket.SOCK_DGRAM, ('::1', 0))
except OSError:
    facts['PORT_6'] = facts['DATAGRAM_PORT_6'] = 0
listen('_', socket.AF_UNIX, socket.SOCK_STREAM, 'service.sock')
listen('_', socket.AF_UNIX, socket.SOCK_DGRAM, 'notes.sock')
listen('_', socket.AF_UNIX, socket.SOCK_STREAM, '../ground/service.sock')
listen('_', socket.AF_UNIX, socket.SOCK_DGRAM, '../ground/notes.sock')
listen('_', socket.AF_UNIX, socket.SOCK_STREAM, f'\0{name}')
listen('_', socket.AF_UNIX, socket.SOCK_DGRAM, f'\0{name}-notes')
facts['ABSTRACT'] = name
os.mkfifo('pipe')
pipe = os.open('pipe', os.O_RDWR | os.O_NONBLOCK)


def tell(*words):
    # In one call: a signal may come while another one is told.
    os.write(1, (' '.join(words) + '\n').encode())


def visit():
    """Connects to whatever a run says that it listens on."""
    try:
        with open('../project/port') as file:
            with socket.create_connection(('127.0.0.1', int(file.read())), 1) as guest:
                guest.settimeout(1)
                tell('heard', guest.recv(200).decode(errors='replace'))
    except (OSError, ValueError):
        pass


traffic, sink = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
sink.bind(('127.0.0.1', 0))
facts['SINK'] = sink.getsockname()[1]
signal.signal(signal.SIGUSR1, lambda *_: tell('heard', 'a signal'))
for fact, value in facts.items():
    if fact != '_':
        tell(f'{fact}={value}')
tell('ready')
try:
    asked = b''
    while asked is not None:
        ready, _, _ = select.select([*listeners, *streams, pipe, 0], [], [], 0.05)
        for source in ready:
            if source == pipe:
                tell('heard', os.read(pipe, 4096).decode(errors='replace').strip())
            elif listeners.get(source) == socket.SOCK_STREAM:
                streams.append(source.accept()[0])
            elif source != 0:
                try:
                    text = source.recv(4096).decode(errors='replace')
                except OSError:
                    text = ''
                tell('heard', text.strip())
                if source in streams and not text:
                    streams.remove(source)
                    source.close()
        visit()
        # Something to see, and something to overhear.
        with open('tick', 'w') as file:
            file.write('tick')
        traffic.sendto(secret.encode(), sink.getsockname())
        if 0 in ready:
            asked = os.read(0, 100) or None
            tell((asked or b'end').decode().strip())
finally:
    libc.shmctl(segment, 0, None)
    libc.mq_unlink(f'/{name}'.encode())
    if key:
        call('keyctl', 21, key)
