//! [`Screen`]: leaves the terminal clean behind a command that was killed.
//!
//! The supervisor restores the settings of the terminal. What the command made of the screen, only its
//! own sequences can undo.

use std::io::IsTerminal;

/// Undoes what full-screen programs and shells do: the cursor is saved and the alternate screen left,
/// which restores the cursor from before it; the cursor is shown, colours and line drawing end, keypad
/// and cursor keys are as usual, the mouse, focus and pasted text are no longer reported.
const CLEAN: &str = "\x1b7\x1b[?1049l\x1b[?25h\x1b[0m\x1b(B\x1b[?1l\x1b>\x1b[?1000l\x1b[?1002l\
                     \x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\r";

/// The terminal of a run, if it has one that understands such sequences.
pub(super) struct Screen {
    understands: bool,
}

impl Screen {
    pub(super) fn now() -> Self {
        let term = std::env::var("TERM").unwrap_or_default();
        let is_terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        Self { understands: is_terminal && !term.is_empty() && term != "dumb" }
    }

    pub(super) fn leave_clean(&self) {
        if self.understands {
            crate::terminal::error_text(CLEAN);
        }
    }
}
