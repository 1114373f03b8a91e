//! Bash text becomes the commands it would run: words, redirections, directory, input.
//!
//! The only code that sees quote characters. It follows simple variables, `cd`, wrappers such as
//! `sudo` and `xargs`, nested `bash -c` and `eval`. What cannot be known before the text runs is a
//! [`Unknown`] with its reason; nothing is guessed, and nothing here decides what a command may do.
//!
//! The parser is `shuck`, hidden behind this interface. Its known gaps are closed here: heredoc
//! quoting is read from the delimiter, and a substitution that the tree does not show is unknown.

mod command;
mod limits;
mod literal;
mod options;
mod state;
mod walk;
mod wrapper;

pub use command::{
    Analysis, Assignment, Command, Dir, Input, Quote, Redirect, RedirectKind, Unknown, Value, Word,
};
pub use options::{GivenOption, Grammar, Parsed, parse_options};
pub use walk::{Surroundings, analyse, is_shell};

#[cfg(test)]
mod tests;
