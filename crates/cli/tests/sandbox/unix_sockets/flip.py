# Calls `connect` while a thread changes what the call names: the address, or the socket. The address
# that is judged is the run's own; the other one is of a socket that the host has bound meanwhile.
import ctypes, os, socket, struct, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)


def path(name):
    address = struct.pack('H', socket.AF_UNIX) + name.encode() + b'\0'
    return address.ljust(64, b'\0')


open('go', 'x').close()
while not os.path.exists('bound'):
    time.sleep(0.002)
own = socket.socket(socket.AF_UNIX)
own.bind('own.sock')
own.listen(4096)
port = socket.socket()
port.bind(('127.0.0.1', 0))
port.listen(4096)
internet = struct.pack('!HH4s8x', 0, port.getsockname()[1], bytes([127, 0, 0, 1]))
internet = struct.pack('H', socket.AF_INET) + internet[2:]
theirs = path('late.sock')
memory = ctypes.create_string_buffer(theirs, 64)
good, going = path('own.sock'), True
slot = os.open('/dev/null', os.O_RDONLY)
fresh = []


def flip():
    while going:
        ctypes.memmove(memory, theirs, 64)
        ctypes.memmove(memory, good, 64)


def flip_both():
    # Another family, and the socket that goes with it, under the same number.
    while going:
        pair = fresh[-1] if fresh else None
        if pair:
            os.dup2(pair[0].fileno(), slot)
            ctypes.memmove(memory, internet.ljust(64, b'\0'), 64)
            os.dup2(pair[1].fileno(), slot)
            ctypes.memmove(memory, theirs, 64)


def tries(count, flipper, each):
    global going
    going = True
    thread = threading.Thread(target=flipper)
    thread.start()
    for _ in range(count):
        each()
    going = False
    thread.join()


def by_path():
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        libc.connect(client.fileno(), memory, 64)


def by_family():
    fresh[:] = [(socket.socket(), socket.socket(socket.AF_UNIX))]
    for client in fresh[0]:
        client.setblocking(False)
    libc.connect(slot, memory, 16)


def empty():
    for server in own, port:
        server.setblocking(False)
        try:
            while True:
                server.accept()[0].close()
        except OSError:
            pass


for _ in range(10):
    tries(100, flip, by_path)
    empty()
if sys.argv[1] == 'both':
    theirs = path('late')[:16]
    for _ in range(10):
        tries(100, flip_both, by_family)
        empty()
print('tried')
