//! Standard output and standard error. The only place that writes to them.

use std::io::{IsTerminal, Write};

/// Writes text to standard output. A reader that went away ends the program quietly.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Writes a line to standard error. There is nobody left to tell if that fails.
pub(crate) fn error_line(text: &str) {
    let _ = std::io::stderr().lock().write_all(plain_lines(text).as_bytes());
}

/// Whether somebody is there to be asked.
pub(crate) fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Asks a question; only a clear yes is one.
pub(crate) fn confirm(question: &str) -> bool {
    print(&format!("{question} [y/N] "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Whether to use colour on standard output.
pub(crate) fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Paints text where there is colour.
pub(crate) fn paint(text: &str, paint: Paint) -> String {
    if colour() { format!("\x1b[{}m{text}\x1b[0m", paint as u8) } else { text.to_owned() }
}

/// The few colours in use.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paint {
    /// Background information.
    Dim = 2,
    /// Refused or broken.
    Red = 31,
    /// Allowed or fine.
    Green = 32,
    /// Needs attention.
    Yellow = 33,
}

/// Rows with aligned columns.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<_> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A text without characters that drive the terminal, change the order of others or do not show,
/// so that what is printed is what is there.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        _ if c.is_control() => c.escape_default().to_string(),
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => c.escape_unicode().to_string(),
        _ => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// The same, with line breaks kept.
pub(crate) fn plain_lines(text: &str) -> String {
    text.lines().map(|line| plain(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_printed_drives_the_terminal_or_hides() {
        assert_eq!(plain("a\u{1b}[2K\n\u{9b}1m"), r"a\u{1b}[2K\n\u{9b}1m");
        assert_eq!(plain("x\u{202e}y\u{200b}"), r"x\u{202e}y\u{200b}");
        assert_eq!(plain("grüße 文 \u{1f600}"), "grüße 文 \u{1f600}");
        assert_eq!(plain_lines("a\n\tb"), "a\n\\tb\n");
    }
}
