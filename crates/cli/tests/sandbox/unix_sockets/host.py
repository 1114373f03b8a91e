# A program on the host that serves sockets: `KIND:PATH` from the beginning, `late:KIND:PATH` once a
# run has made the file `go`. What reaches one of them is a line in the file `heard`.
import os, select, socket, sys

KINDS = {'stream': socket.SOCK_STREAM, 'packets': socket.SOCK_SEQPACKET, 'datagrams': socket.SOCK_DGRAM}
heard, served = os.open('../heard', os.O_WRONLY | os.O_CREAT | os.O_APPEND), []


def serve(kind, path):
    server = socket.socket(socket.AF_UNIX, KINDS[kind])
    server.bind(path)
    if kind != 'datagrams':
        server.listen(64)
    served.append((server, kind, path))


late = []
for argument in sys.argv[1:]:
    if argument.startswith('late:'):
        late.append(argument.split(':')[1:])
    else:
        serve(*argument.split(':'))
print('ready', flush=True)
while True:
    ready, _, _ = select.select([server for server, *_ in served], [], [], 0.002)
    if late and os.path.exists('go'):
        for argument in late:
            serve(*argument)
        late = []
        open('bound', 'x').close()
    for server, kind, path in served:
        if server not in ready:
            continue
        if kind == 'datagrams':
            os.write(heard, f'{path}: {server.recv(99)}\n'.encode())
            continue
        peer, _ = server.accept()
        os.write(heard, f'{path}: a connection\n'.encode())
        try:
            # A descriptor of a directory that no run can see.
            socket.send_fds(peer, [b'from the host'], [os.open('../outside', os.O_RDONLY)])
        except OSError:
            pass
        peer.close()
