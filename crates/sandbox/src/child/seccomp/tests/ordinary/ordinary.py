"""What Python programs do every day: processes, sockets, threads, memory."""

import asyncio
import mmap
import multiprocessing
import os
import pty
import socket
import subprocess
import tempfile
import threading


def double(number):
    return number * 2


def processes():
    for method in ("fork", "forkserver", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(double, range(5)))
    print(subprocess.run(["echo", "sub"], capture_output=True).stdout)
    thread = threading.Thread(target=print, args=("thread",))
    thread.start()
    thread.join()


async def echo(reader, writer):
    writer.write(await reader.read(9))
    writer.close()


async def streams():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"tcp")
    writer.write_eof()
    print(await reader.read())


def sockets():
    asyncio.run(streams())
    one, two = socket.socketpair()
    one.sendall(b"pair")
    print(two.recv(9))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket")
    listener.listen()
    socket.socket(socket.AF_UNIX).connect("socket")
    print([name for _, name in socket.if_nameindex()])
    print(socket.getaddrinfo("127.0.0.1", 80)[0][4])


def files():
    os.mkdir("directory", 0o755)
    os.chmod("directory", 0o1777)
    tempfile.TemporaryFile().write(b"x")
    os.close(os.memfd_create("memory"))
    mmap.mmap(-1, 4096)
    pty.openpty()


if __name__ == "__main__":
    processes()
    sockets()
    files()
