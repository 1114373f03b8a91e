//! Processes, terminals, sockets and debuggers.

use super::{Expected, Scenario, leaves, prints};

pub(super) const ALL: &[Scenario] = &[
    prints(
        "jobs in the background, signals and traps",
        &[],
        "trap 'echo got usr1' USR1; (sleep 0.2; kill -USR1 $$) & wait; \
         sleep 100 & p=$!; kill $p; wait $p; echo $?; timeout -s KILL 0.2 sleep 10; echo $?; \
         sh -c 'kill -9 $$'; echo $?; nice -n 5 nice; nohup true < /dev/null; setsid -w echo session",
    ),
    Scenario {
        name: "a signal ends the command",
        needs: &[],
        setup: "",
        command: "echo before; exit 37",
        left: "",
        expected: Expected::Same(37),
    },
    prints(
        "what a process sees of itself",
        &[],
        "id -un; id -u; nproc > /dev/null && echo cpus; ulimit -c; uname -s; pwd; \
         readlink /proc/self/cwd; tr '\\0' ' ' < /proc/self/cmdline; ps -o comm= -p $$; \
         [ -r /proc/meminfo ] && [ -r /proc/cpuinfo ] && echo readable; getconf PAGESIZE; df . > /dev/null; echo $?",
    ),
    prints(
        "a pool of processes with shared memory and semaphores",
        &["python3"],
        "cat > m.py <<'E'\nfrom multiprocessing import Pool, shared_memory, Lock, Queue, Process\n\
         def f(x): return x * x\n\
         def put(q, l):\n    with l: q.put('from a process')\n\
         if __name__ == '__main__':\n    s = shared_memory.SharedMemory(create=True, size=64); s.close(); s.unlink()\n\
         \x20   q, l = Queue(), Lock(); p = Process(target=put, args=(q, l)); p.start(); print(q.get()); p.join()\n\
         \x20   print(sum(Pool(3).map(f, range(100))))\nE\npython3 m.py",
    ),
    prints(
        "asyncio with subprocesses and timers",
        &["python3"],
        "python3 -c \"
import asyncio
async def main():
    runs = [asyncio.create_subprocess_exec('sh', '-c', 'echo %d' % n, stdout=-1) for n in range(20)]
    done = [(await p.communicate())[0] for p in await asyncio.gather(*runs)]
    print(sorted(done)[:3], len(done))
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b'line\\\\n'); print(await reader.readline())
    writer.close()
async def echo(r, w):
    w.write(await r.readline()); w.close()
async def serve():
    global server
    server = await asyncio.start_server(echo, '127.0.0.1', 0)
    await main()
asyncio.run(serve())
\"",
    ),
    prints(
        "servers on every kind of address inside",
        &["python3"],
        "python3 -c \"
import socket, threading, os
def serve(family, kind, address):
    server = socket.socket(family, kind)
    try: server.bind(address)
    except OSError as error: return print(family.name, error.errno)
    if kind == socket.SOCK_STREAM:
        server.listen()
        threading.Thread(target=lambda: server.accept()[0].sendall(b'stream')).start()
        client = socket.socket(family, kind); client.connect(server.getsockname())
    else:
        client = socket.socket(family, kind)
        if family == socket.AF_UNIX: client.bind(address + '.c')
        client.sendto(b'x', server.getsockname())
        server.sendto(b'datagram', server.recvfrom(9)[1])
    print(family.name, kind.name, client.recv(99))
    client.close(); server.close()
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    serve(socket.AF_INET, kind, ('127.0.0.1', 0))
    serve(socket.AF_INET6, kind, ('::1', 0))
    for place in ('.', '/tmp'):
        serve(socket.AF_UNIX, kind, '%s/test-%d-%s' % (place, os.getpid(), kind.name))
    if kind == socket.SOCK_STREAM: serve(socket.AF_UNIX, kind, '\\\\0abstract-%d' % os.getpid())
a, b = socket.socketpair(); a.sendall(b'pair'); print(b.recv(9))
r, w = os.pipe(); socket.send_fds(a, [b'f'], [w]); _, fds, _, _ = socket.recv_fds(b, 9, 1)
os.write(fds[0], b'passed'); print(os.read(r, 9))
\"; rm -f /tmp/test-*",
    ),
    prints(
        "a terminal of its own",
        &["script"],
        "script -qec 'tty | sed s,[0-9]*$,N,; [ -t 0 ] && echo terminal; stty size > /dev/null && echo sized; \
         echo > /dev/tty; ps -o tty= -p $$ | sed s,[0-9]*$,N,' /dev/null < /dev/null | tr -d '\\r'",
    ),
    prints("no terminal", &[], "tty; echo $?; [ -t 0 ] || echo none; : < /dev/tty || echo without"),
    prints(
        "strace shows calls",
        &["strace"],
        "strace -f -o log -e trace=execve,openat sh -c 'cat /etc/hostname > /dev/null' && grep -c execve log",
    ),
    prints(
        "gdb runs a program",
        &["gdb", "gcc"],
        "printf 'int f(int a){return a*6;}\\nint main(){return f(7)!=42;}\\n' > a.c && gcc -g -o a a.c && \
         gdb -nx -q -batch -ex 'break f' -ex run -ex bt -ex finish -ex continue ./a 2> /dev/null | grep -c 'f (a=7)'",
    ),
    leaves(
        "tmux runs commands in a window",
        &["tmux"],
        "",
        "tmux -f /dev/null -L test new-session -d 'echo in-window > made; tmux -L test wait-for -S done; sleep 5' && \
         tmux -L test wait-for done && tmux -L test kill-server",
        "cat made",
    ),
    leaves(
        "vim edits by script",
        &["vim"],
        "printf 'one\\ntwo\\n' > f",
        "vim -u NONE -es -c '%s/two/zwei/' -c 'normal Go' -c 'wq' f < /dev/null; echo $?; ls -A",
        "cat f",
    ),
    prints(
        "less as a filter",
        &["less"],
        "seq 100 | less | tail -1; less -FX f 2> /dev/null; echo $?",
    ),
    prints(
        "manual pages",
        &["man"],
        "printf '.TH A 1\\n.SH NAME\\na \\\\- a page\\n' > a.1 && man -l ./a.1 | col -b | grep -c 'a page'",
    ),
    prints(
        "keys and certificates",
        &["openssl", "ssh-keygen"],
        "ssh-keygen -q -t ed25519 -N '' -C test -f key && ssh-keygen -lf key.pub | wc -w; \
         echo message > m; ssh-keygen -q -Y sign -f key -n file m && head -1 m.sig; \
         openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 2 -subj /CN=example.org 2> /dev/null; \
         openssl x509 -noout -subject -in c.pem; echo x | openssl dgst -sha256 -sign k.pem | wc -c",
    ),
    prints(
        "gpg with a keyring of the project",
        &["gpg"],
        "mkdir -m 700 g; export GNUPGHOME=$PWD/g; \
         gpg -q --batch --passphrase '' --quick-gen-key test@example.org default default never 2> /dev/null; \
         echo m > m; gpg -q --batch -s m 2> /dev/null && gpg -q --batch --verify m.gpg 2> /dev/null; echo $?; \
         gpgconf --kill all",
    ),
    prints(
        "clocks and places",
        &[],
        "TZ=Asia/Tokyo date -d @0 '+%F %T %Z'; LC_ALL=C.UTF-8 locale charmap; cal 1 2000 2> /dev/null | wc -w; \
         LC_ALL=C date -d '2001-02-03' +%A",
    ),
];
