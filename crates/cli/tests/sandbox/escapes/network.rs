//! Ways to somebody who listens on the host, or who is to come in.

use super::row::Sign::{Heard, Says, Secret};
use super::row::{Row, bash, python};

pub(super) const ROWS: &[Row] = &[
    bash("a stream", Heard, "echo $MARK > /dev/tcp/127.0.0.1/$PORT"),
    bash(
        "a stream to another loopback address",
        Heard,
        "echo $MARK > /dev/tcp/127.3.2.1/$OTHER_PORT",
    ),
    bash("a stream to no address", Heard, "echo $MARK > /dev/tcp/0.0.0.0/$PORT"),
    python(
        "a stream to a name",
        Heard,
        "socket.create_connection(('localhost', PORT), 2).sendall(MARK.encode())",
    ),
    python(
        "a stream, version 6",
        Heard,
        "socket.create_connection(('::1', PORT_6), 2).sendall(MARK.encode())",
    ),
    python(
        "a stream to a mapped address",
        Heard,
        "
stream = socket.socket(socket.AF_INET6)
stream.settimeout(2)
stream.connect(('::ffff:127.0.0.1', PORT))
stream.sendall(MARK.encode())
",
    ),
    python(
        "a stream that opens with its first bytes",
        Heard,
        "
stream = socket.socket()
stream.sendto(MARK.encode(), 0x20000000, ('127.0.0.1', PORT))
time.sleep(0.05)
",
    ),
    bash("a stream by a queue of calls", Heard, "./escape ring-send $PORT $MARK"),
    bash("a stream that was left open", Heard, "echo $MARK >&7")
        .after_outside("exec 7<>/dev/tcp/127.0.0.1/$PORT"),
    python(
        "a datagram",
        Heard,
        "socket.socket(type=socket.SOCK_DGRAM).sendto(MARK.encode(), ('127.0.0.1', DATAGRAM_PORT))",
    ),
    python(
        "a datagram to no address",
        Heard,
        "socket.socket(type=socket.SOCK_DGRAM).sendto(MARK.encode(), ('0.0.0.0', DATAGRAM_PORT))",
    ),
    python(
        "a datagram, version 6",
        Heard,
        "
datagram = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagram.connect(('::1', DATAGRAM_PORT_6))
datagram.send(MARK.encode())
",
    ),
    python(
        "a raw packet",
        Heard,
        "
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
head = struct.pack('!HHHH', 4242, DATAGRAM_PORT, 8 + len(MARK), 0)
raw.sendto(head + MARK.encode(), ('127.0.0.1', 0))
",
    ),
    python(
        "packets of others",
        Secret,
        "
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.bind(('lo', 0))
tap.settimeout(20)
packet = b''
while packet[36:38] != struct.pack('!H', SINK):
    packet = tap.recv(65535)
print(packet[42:])
",
    ),
    python(
        "somebody from the host",
        Heard,
        "
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(4)
listener.settimeout(1.0)
with open('port.new', 'w') as file:
    file.write(str(listener.getsockname()[1]))
os.rename('port.new', 'port')
guest = listener.accept()[0]
guest.sendall(MARK.encode())
guest.recv(1)
",
    ),
    bash(
        "the host's connections",
        Says,
        "grep -iq \":$(printf %04X $PORT) \" /proc/net/tcp && echo OPEN",
    ),
    // Families that no namespace or rule confines, and kernel code behind others.
    python(
        "the machine's own host",
        Says,
        "socket.socket(40, socket.SOCK_STREAM).bind((-1 & 0xffffffff, 4242)); print('OPEN')",
    ),
    python(
        "news of devices",
        Says,
        "
news = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)
news.bind((0, 1))
print('OPEN')
",
    ),
    python(
        "a list of the host's sockets",
        Says,
        "
diag = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
diag.settimeout(2)
ask = struct.pack('=BBHIII8x', 1, 0, 0, 0xffffffff, 0, 1)
diag.sendto(struct.pack('=IHHII', 16 + len(ask), 20, 0x301, 1, 0) + ask, (0, 0))
if len(diag.recv(65535)) > 16:
    print('OPEN')
",
    ),
    python(
        "the packet filter",
        Says,
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).bind((0, 0)); print('OPEN')",
    ),
    python(
        "commands to drivers",
        Says,
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16).bind((0, 0)); print('OPEN')",
    ),
    python(
        "another family",
        Says,
        "
usual = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
for family in set(range(46)) - usual:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind)
            print('OPEN')
        except OSError:
            pass
",
    ),
    python(
        "another kind of stream",
        Says,
        "
for protocol in (132, 256, 262):
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        print('OPEN')
    except OSError as error:
        print(error)
",
    ),
    bash(
        "a network of one's own",
        Says,
        "unshare -Urn bash -c 'ip link add d type dummy || ip link set lo up' && echo OPEN",
    ),
];
