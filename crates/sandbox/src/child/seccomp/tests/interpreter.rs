//! Classic BPF, as far as seccomp takes it, run step by step.

use libc::{c_long, sock_filter};

use crate::child::seccomp::{ARCHITECTURE, Program, number};

/// What the kernel shows of a call.
pub(super) struct Data {
    pub(super) call: u32,
    pub(super) architecture: u32,
    pub(super) args: [u64; 6],
}

impl Data {
    pub(super) fn native(call: c_long, args: [u64; 6]) -> Self {
        Self { call: number(call), architecture: ARCHITECTURE, args }
    }

    fn word(&self, offset: u32) -> u32 {
        let instruction_pointer = 0;
        let [call, architecture] = [self.call, self.architecture].map(u32::to_le_bytes);
        let args = self.args.map(u64::to_le_bytes).concat();
        let bytes = [&call[..], &architecture, &[instruction_pointer; 8], &args].concat();
        assert!(offset.is_multiple_of(4), "no word at {offset}");
        u32::from_le_bytes(bytes[offset as usize..][..4].try_into().unwrap())
    }
}

/// What a run took.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) instructions: usize,
    /// Whether an argument was looked at: then the kernel cannot remember the answer.
    pub(super) arguments: bool,
}

/// The answer of a program, and what it took. Jumps go forward only, so every run ends.
pub(super) fn run(program: &Program, data: &Data) -> (u32, Taken) {
    assert!(program.0.len() <= 4096, "the kernel takes no longer ones");
    let mut taken = Taken::default();
    let (mut at, mut held) = (0, 0);
    loop {
        let sock_filter { code, jt, jf, k } = program.0[at];
        at += 1;
        taken.instructions += 1;
        let branch = |holds: bool| usize::from(if holds { jt } else { jf });
        match code {
            0x20 => {
                taken.arguments |= k >= 16;
                held = data.word(k);
            }
            0x54 => held &= k,
            0x05 => at += k as usize,
            0x15 => at += branch(held == k),
            0x35 => at += branch(held >= k),
            0x45 => at += branch(held & k != 0),
            0x06 => return (k, taken),
            _ => panic!("instruction {code:#x} is not one of ours"),
        }
    }
}
