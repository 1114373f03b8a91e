# Tries to reach the sockets that it is given, by every name that they can have.
import os, socket, sys, time

GIVEN = sys.argv[1:]
KINDS = [socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM]


def connects(path):
    for kind in KINDS:
        try:
            with socket.socket(socket.AF_UNIX, kind) as client:
                client.settimeout(20)
                client.connect(path)
                client.send(b'x')
                print('REACHED', path, flush=True)
        except OSError:
            pass


def sends(path):
    try:
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', path)
        print('REACHED', path, flush=True)
    except OSError:
        pass


def by_every_name(path, number):
    connects(path)
    connects(os.path.relpath(path))
    os.symlink(os.path.abspath(path), f'link-{number}')
    connects(f'link-{number}')
    for name, change in ('hard', os.link), ('moved', os.rename):
        try:
            change(path, f'{name}-{number}')
            connects(f'{name}-{number}')
            path = f'{name}-{number}' if change is os.rename else path
        except OSError:
            pass
    try:
        opened = os.open(path, os.O_PATH)
        connects(f'/proc/self/fd/{opened}')
        connects(f'/proc/{os.getpid()}/fd/{opened}')
    except OSError:
        pass
    here = os.getcwd()
    os.chdir(os.path.dirname(os.path.abspath(path)))
    connects(os.path.basename(path))
    os.chdir(here)


for number, path in enumerate(path for path in GIVEN if 'late' not in path):
    sends(path)
    by_every_name(path, f'a{number}')
open('go', 'x').close()
while not os.path.exists('bound'):
    time.sleep(0.002)
for number, path in enumerate(path for path in GIVEN if 'late' in path):
    by_every_name(path, f'b{number}')
print('tried')
