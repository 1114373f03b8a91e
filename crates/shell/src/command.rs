//! What an analysis gives back.

use std::ops::Range;
use std::path::PathBuf;

/// Every command of a text, in the order of the text, and what cannot be known.
#[derive(Debug, Clone, Default)]
pub struct Analysis {
    /// The commands, innermost of a wrapper only.
    pub commands: Vec<Command>,
    /// Parts that only exist once the text runs.
    pub unknown: Vec<Unknown>,
}

/// One simple command, with its wrappers taken off.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// The wrappers that were taken off, outermost first.
    pub wrappers: Vec<String>,
    /// Variables that are set for this command, or were exported before it.
    pub assignments: Vec<Assignment>,
    /// Its redirections, those of enclosing groups included.
    pub redirects: Vec<Redirect>,
    /// The directory it runs in.
    pub dir: Dir,
    /// What it reads from standard input.
    pub input: Input,
    /// Commands whose output is part of its words or of its input text, by way of variables too.
    pub inner: Vec<usize>,
    /// Its place in the text.
    pub span: Range<usize>,
    /// Whether its words can be edited in the text: a nested literal maps byte for byte.
    pub editable: bool,
}

impl Command {
    /// The program's name without directories, where it is known.
    pub fn program(&self) -> Option<&str> {
        let text = self.words.first()?.value.known()?;
        Some(text.rsplit('/').next().unwrap_or(text))
    }

    /// The arguments behind the program.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// A word and what it expands to.
#[derive(Debug, Clone)]
pub struct Word {
    /// Its value.
    pub value: Value,
    /// Its place in the text.
    pub span: Range<usize>,
    /// How it is quoted, so that an edit can keep that.
    pub quote: Quote,
    /// Commands inside its substitutions.
    pub inner: Vec<usize>,
}

/// What a word expands to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Exactly this text. `tilde`: it begins with an unquoted `~`.
    Known {
        /// The text.
        text: String,
        /// Whether a leading `~` means home.
        tilde: bool,
    },
    /// A pattern of file names: some paths that begin with `prefix`.
    Pattern {
        /// The text up to the first wildcard.
        prefix: String,
        /// Whether a leading `~` means home.
        tilde: bool,
    },
    /// Cannot be known.
    Unknown {
        /// The text up to the part that is not known.
        prefix: String,
        /// Why not.
        why: &'static str,
    },
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Known { text: text.into(), tilde: false }
    }

    /// The text, where it is known.
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Known { text, .. } => Some(text),
            Self::Pattern { .. } | Self::Unknown { .. } => None,
        }
    }
}

/// How a word is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    /// Not at all.
    None,
    /// As a whole in single quotes.
    Single,
    /// As a whole in double quotes.
    Double,
    /// In parts, or with backslashes.
    Mixed,
}

/// A variable's new value.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Its place in the text.
    pub span: Range<usize>,
}

/// A redirection to or from a file.
#[derive(Debug, Clone)]
pub struct Redirect {
    /// Which way.
    pub kind: RedirectKind,
    /// The descriptor, where one is written.
    pub fd: Option<i32>,
    /// The file.
    pub target: Word,
}

/// Which way a redirection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// From the file.
    Read,
    /// To the file.
    Write,
    /// Both.
    ReadWrite,
}

/// A directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dir {
    /// This one. May hold `..`: only the file system knows what that reaches.
    Known(PathBuf),
    /// Cannot be known, and why.
    Unknown(&'static str),
}

/// What a command reads from standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Whatever the shell has.
    Inherited,
    /// The output of these commands.
    Pipe(Vec<usize>),
    /// This text.
    Text(String),
    /// A text that only exists once the command runs.
    UnknownText,
}

/// A part that only exists once the text runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its place in the text.
    pub span: Range<usize>,
    /// Why it cannot be known.
    pub why: &'static str,
}
