//! Which sockets a process of the run can create.

use libc::{c_int, c_long};

use super::ALLOW;
use super::tree::{Tree, Word, answer};

/// Which sockets can be created.
///
/// In both cases `AF_UNIX`, TCP over `AF_INET` and `AF_INET6`, and the route protocol of
/// `AF_NETLINK`, which lists the interfaces. Nothing raw, and no stream but TCP: Landlock's rules
/// for ports do not see MPTCP, SCTP and SMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    /// A network namespace and hidden paths confine them: datagrams too (UDP, and ICMP as `ping`
    /// uses it).
    Ordinary,
    /// Only Landlock confines them, so nothing that it does not see: no datagrams, and no fast
    /// open, which connects without `connect`.
    ///
    /// `AF_UNIX` streams are allowed, because too much needs them. Before ABI 9 Landlock lets them
    /// connect to any path, so their `connect` has to be intercepted. `AF_UNIX` datagrams are sent to
    /// a path without one, by either end of a pair as well, so there are none.
    StreamsOnly,
}

pub(super) fn rules(sockets: Sockets) -> Vec<(c_long, Tree)> {
    let family = Word::low(0);
    let foreign = || answer(libc::EAFNOSUPPORT);
    let families = [
        (bits(libc::AF_UNIX), unix(sockets)),
        (bits(libc::AF_INET), internet(sockets)),
        (bits(libc::AF_INET6), internet(sockets)),
        (bits(libc::AF_NETLINK), PROTOCOL.is(0).choose(ALLOW, foreign())),
    ];
    let pair = family.switch([(bits(libc::AF_UNIX), unix(sockets))], foreign());
    let mut rules =
        vec![(libc::SYS_socket, family.switch(families, foreign())), (libc::SYS_socketpair, pair)];
    if sockets == Sockets::StreamsOnly {
        rules.extend([
            (libc::SYS_sendto, slow_open(Word::low(3))),
            (libc::SYS_sendmsg, slow_open(Word::low(2))),
            (libc::SYS_sendmmsg, slow_open(Word::low(3))),
        ]);
    }
    rules
}

/// The second argument without the flags in it.
const KIND: Word = Word::low(1).masked(0xf);
const PROTOCOL: Word = Word::low(2);

fn unix(sockets: Sockets) -> Tree {
    match sockets {
        Sockets::Ordinary => ALLOW,
        Sockets::StreamsOnly => {
            let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
            KIND.switch(connected.map(|kind| (bits(kind), ALLOW)), answer(libc::EPERM))
        }
    }
}

fn internet(sockets: Sockets) -> Tree {
    let datagrams = match sockets {
        Sockets::Ordinary => {
            protocols([0, libc::IPPROTO_UDP, libc::IPPROTO_ICMP, libc::IPPROTO_ICMPV6])
        }
        Sockets::StreamsOnly => answer(libc::EPERM),
    };
    let streams = protocols([0, libc::IPPROTO_TCP]);
    let kinds = [(bits(libc::SOCK_STREAM), streams), (bits(libc::SOCK_DGRAM), datagrams)];
    KIND.switch(kinds, answer(libc::EPERM))
}

fn protocols<const N: usize>(allowed: [c_int; N]) -> Tree {
    let allowed = allowed.map(|protocol| (bits(protocol), ALLOW));
    PROTOCOL.switch(allowed, answer(libc::EPROTONOSUPPORT))
}

/// The error is that of a kernel on which fast open is switched off: senders then connect.
fn slow_open(flags: Word) -> Tree {
    flags.any(bits(libc::MSG_FASTOPEN)).choose(answer(libc::EOPNOTSUPP), ALLOW)
}

fn bits(value: c_int) -> u32 {
    value.cast_unsigned()
}
