//! What is closed where the processes of the host are not hidden: calls that change another process by its
//! number, which no Landlock rule sees, and memory, queues and semaphores that belong to no directory.
//!
//! Among these processes is the supervisor: a limit of its processor time or of its descriptors would keep
//! it from searching for what the run leaves.

use libc::{EPERM, c_int, c_long};

use super::ALLOW;
use super::tree::{Tree, Word, answer};

/// Numbers that belong to the machine, and what is left by them outlives the run. Without them programs
/// share memory by descriptors.
#[rustfmt::skip]
pub(super) const MISSING: &[c_long] = &[
    libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmctl,
    libc::SYS_semget, libc::SYS_semop, libc::SYS_semtimedop, libc::SYS_semctl,
    libc::SYS_msgget, libc::SYS_msgsnd, libc::SYS_msgrcv, libc::SYS_msgctl,
    libc::SYS_mq_open, libc::SYS_mq_unlink,
];

pub(super) fn rules() -> [(c_long, Tree); 6] {
    // Processes and process groups; 0 is the caller's own.
    let own = |which: Word, kinds: [c_int; 2]| {
        let own = Word::low(1).is(0).choose(ALLOW, answer(EPERM));
        which.switch(kinds.map(|kind| (kind.cast_unsigned(), own.clone())), answer(EPERM))
    };
    let itself = || Word::low(0).is(0).choose(ALLOW, answer(EPERM));
    [
        (libc::SYS_setpriority, own(Word::low(0), [0, 1])),
        (libc::SYS_ioprio_set, own(Word::low(0), [1, 2])),
        (libc::SYS_sched_setaffinity, itself()),
        (libc::SYS_sched_setscheduler, itself()),
        (libc::SYS_sched_setparam, itself()),
        (libc::SYS_sched_setattr, itself()),
    ]
}

/// Limits: those of another process can be read.
pub(super) fn own_limits(further: Tree) -> Tree {
    let reads = |word: Word, otherwise: Tree| word.is(0).choose(ALLOW, otherwise);
    let foreign = Word::low(2).is(0).choose(reads(Word::high(2), answer(EPERM)), answer(EPERM));
    Word::low(0).is(0).choose(further, foreign)
}
