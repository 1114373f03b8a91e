//! A small assembler: questions about a call become classic BPF.

use libc::{c_int, sock_filter};

use super::Program;

/// Questions about a call that end in answers.
#[derive(Debug, Clone)]
pub(super) enum Tree {
    /// What the program returns to the kernel.
    Answer(u32),
    /// A question, what follows when it holds, and what follows when it does not.
    Ask(Question, Box<Tree>, Box<Tree>),
}

/// The call fails with this error.
pub(super) fn answer(errno: c_int) -> Tree {
    Tree::Answer(libc::SECCOMP_RET_ERRNO | errno.cast_unsigned())
}

/// One of the 32-bit words that the kernel shows of a call, or some bits of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    offset: u32,
    mask: u32,
}

impl Word {
    pub(super) const CALL: Self = Self { offset: 0, mask: u32::MAX };
    pub(super) const ARCHITECTURE: Self = Self { offset: 4, mask: u32::MAX };

    /// The low half of an argument: all of it where the kernel takes an `int`.
    pub(super) const fn low(argument: u32) -> Self {
        Self { offset: 16 + 8 * argument, mask: u32::MAX }
    }

    /// The high half of an argument.
    pub(super) const fn high(argument: u32) -> Self {
        Self { offset: 20 + 8 * argument, mask: u32::MAX }
    }

    pub(super) const fn masked(self, mask: u32) -> Self {
        Self { mask, ..self }
    }

    pub(super) fn is(self, value: u32) -> Question {
        Question { word: self, test: libc::BPF_JEQ, value }
    }

    pub(super) fn at_least(self, value: u32) -> Question {
        Question { word: self, test: libc::BPF_JGE, value }
    }

    /// Whether one of these bits is set.
    pub(super) fn any(self, bits: u32) -> Question {
        Question { word: self, test: libc::BPF_JSET, value: bits }
    }

    /// One tree for each value, and one for all others.
    pub(super) fn switch<const N: usize>(self, cases: [(u32, Tree); N], otherwise: Tree) -> Tree {
        cases
            .into_iter()
            .rev()
            .fold(otherwise, |rest, (value, tree)| self.is(value).choose(tree, rest))
    }
}

/// A comparison of a word with a constant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    word: Word,
    test: u32,
    value: u32,
}

impl Question {
    pub(super) fn choose(self, yes: Tree, no: Tree) -> Tree {
        Tree::Ask(self, Box::new(yes), Box::new(no))
    }
}

impl Tree {
    /// Asks further wherever this tree allows.
    pub(super) fn instead_of_allow(&mut self, further: &Tree) {
        match self {
            Self::Answer(libc::SECCOMP_RET_ALLOW) => *self = further.clone(),
            Self::Answer(_) => {}
            Self::Ask(_, yes, no) => {
                yes.instead_of_allow(further);
                no.instead_of_allow(further);
            }
        }
    }

    pub(super) fn assemble(&self) -> Program {
        let mut code = Vec::new();
        self.emit(None, &mut code);
        Program(code)
    }

    /// Appends the code of this tree, to be run with `held` in the accumulator.
    fn emit(&self, held: Option<Word>, code: &mut Vec<sock_filter>) {
        let (question, yes, no) = match self {
            Self::Answer(value) => {
                code.push(instruction(libc::BPF_RET | libc::BPF_K, *value));
                return;
            }
            Self::Ask(question, yes, no) => (question, yes, no),
        };
        let word = question.word;
        if held != Some(word) {
            code.push(instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, word.offset));
            if word.mask != u32::MAX {
                code.push(instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, word.mask));
            }
        }
        let mut then = Vec::new();
        yes.emit(Some(word), &mut then);
        let jump = instruction(libc::BPF_JMP | question.test | libc::BPF_K, question.value);
        match u8::try_from(then.len()) {
            Ok(over) => code.push(sock_filter { jf: over, ..jump }),
            // A comparison jumps at most 255 instructions far, a plain jump anywhere.
            Err(_) => {
                code.push(sock_filter { jt: 1, ..jump });
                code.push(instruction(libc::BPF_JMP | libc::BPF_JA, length(&then)));
            }
        }
        code.append(&mut then);
        no.emit(Some(word), code);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the BPF opcodes are below 256")]
fn instruction(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

#[expect(clippy::cast_possible_truncation, reason = "the kernel takes 4096 instructions at most")]
fn length(code: &[sock_filter]) -> u32 {
    code.len() as u32
}
