//! Chance that is the same in every test run, and the names that a layout is made of.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Numbers that look like chance, all from one seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap() % end.max(1)
    }

    /// Whether something of this chance, in a hundred, happens.
    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub(super) fn name(&mut self) -> &'static OsStr {
        OsStr::from_bytes(NAMES[self.below(NAMES.len())])
    }
}

/// Names that somebody's program will trip over.
const NAMES: &[&[u8]] = &[
    b"src",
    b"with space",
    b"new\nline",
    b"\n",
    b"-rf",
    b"--help",
    b"--",
    "\u{fc}n\u{ef}-c\u{f8}d\u{e9}".as_bytes(),
    "\u{65e5}\u{672c}\u{8a9e}".as_bytes(),
    b"\xff\xfe",
    b"tab\there",
    b"quote'\"",
    b"$(touch x)",
    b"*",
    b"?",
    b"[a-z]",
    b"{a,b}",
    b"back\\slash",
    b"~",
    b"#comment",
    b"%s%n",
    b".hidden",
    b"...",
    b"end ",
    b" start",
    b"\x1b[31mred",
    b"a:b",
    b"a=b,c",
    b"\\040",
    b"node_modules",
    b"core",
    b"nul",
    &[b'a'; 255],
];

/// Names that nothing may write, and whether each is usually a directory.
pub(super) const PROTECTED: &[(&str, bool)] = &[
    (".envrc", false),
    (".mcp.json", false),
    (".claude/settings.json", false),
    (".claude/settings.local.json", false),
    (".claude/hooks", true),
    (".claude/agents", true),
    (".vscode/tasks.json", false),
    (".vscode/settings.json", false),
    (".idea", true),
    (".codex", true),
    (".gemini", true),
    (".cursor", true),
    (".cargo/config.toml", false),
    (".bashrc", false),
    (".gitconfig", false),
    ("x.code-workspace", false),
    (".devcontainer", true),
    (".devcontainer.json", false),
    (".husky/_", true),
    (".github/hooks", true),
    (".zed/settings.json", false),
    (".yarnrc.yml", false),
    (".ENVRC", false),
    (".Idea", true),
    (".direnv", true),
    (".config/git", true),
    (".exrc", false),
    (".dir-locals.el", false),
];
