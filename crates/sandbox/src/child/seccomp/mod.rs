//! The seccomp filters: BPF programs that judge every system call of a run.
//!
//! Pure construction: nothing is installed here. There are two sets of rules: [`closed`] denies by
//! errno, [`watch`] hands a call to the supervisor. [`both`] has the two in one program, which
//! every call pays for only once; where both apply it answers the errno, as the kernel does of two
//! programs. So nothing that is closed ever reaches the supervisor.
//!
//! The kernel remembers which calls a program allows whatever their arguments, and does not run
//! it for them (since Linux 5.11). For the others it runs from the top, so `openat` comes first.

mod closed;
mod host_processes;
mod sockets;
mod tree;
mod watch;

#[cfg(test)]
mod tests;

pub use closed::{Closed, closed};
pub use sockets::Sockets;
pub use watch::{Watch, watch};

use libc::c_long;
use tree::{Tree, Word, answer};

/// A seccomp program, ready to install.
#[derive(Debug, Clone)]
pub struct Program(pub Vec<libc::sock_filter>);

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_AARCH64`: machine, 64 bits, little endian.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// From here on x86-64 has the x32 calls. Other architectures have none so high.
const X32: u32 = 0x4000_0000;

/// The program that denies, and hands what it allows to the supervisor.
pub fn both(what: &Closed, watched: Watch) -> Program {
    let mut watch = watch::rules(watched);
    let mut rules = closed::rules(*what);
    for (call, tree) in &mut rules {
        if let Some(at) = watch.iter().position(|(watched, _)| watched == call) {
            tree.instead_of_allow(&watch.swap_remove(at).1);
        }
    }
    rules.append(&mut watch);
    program(rules)
}

const ALLOW: Tree = Tree::Answer(libc::SECCOMP_RET_ALLOW);

/// A program that gives these calls these answers and allows all others.
///
/// A call of another architecture has other numbers, so it kills the process: ia32 programs do
/// not run inside. x32 calls do not exist.
fn program(rules: Vec<(c_long, Tree)>) -> Program {
    let (first, mut rules): (Vec<_>, Vec<_>) =
        rules.into_iter().map(|(call, tree)| (number(call), tree)).partition(is_frequent);
    rules.sort_by_key(|(call, _)| *call);
    let calls = Word::CALL.at_least(X32).choose(
        // A tracer makes the kernel skip a call by setting its number to -1.
        Word::CALL.is(u32::MAX).choose(ALLOW, answer(libc::ENOSYS)),
        search(&rules),
    );
    let calls = one_of(&first, calls);
    let foreign = Tree::Answer(libc::SECCOMP_RET_KILL_PROCESS);
    Word::ARCHITECTURE.is(ARCHITECTURE).choose(calls, foreign).assemble()
}

fn is_frequent((call, _): &(u32, Tree)) -> bool {
    *call == number(libc::SYS_openat)
}

/// Finds a call by halves: when a program is installed the kernel tries it for every call there is.
fn search(rules: &[(u32, Tree)]) -> Tree {
    match rules.split_at(rules.len() / 2) {
        // The last few one after the other, which takes less room.
        (low, high @ [(from, _), ..]) if rules.len() > 4 => {
            Word::CALL.at_least(*from).choose(search(high), search(low))
        }
        _ => one_of(rules, ALLOW),
    }
}

fn one_of(rules: &[(u32, Tree)], otherwise: Tree) -> Tree {
    rules
        .iter()
        .rev()
        .fold(otherwise, |rest, (call, tree)| Word::CALL.is(*call).choose(tree.clone(), rest))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of calls are small and positive"
)]
fn number(call: c_long) -> u32 {
    call as u32
}
