//! Standard output and standard error. The only place that writes to them.

use std::io::{IsTerminal, Write};

/// Writes text to standard output. A reader that went away ends the program quietly.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Writes one line to standard error. There is nobody left to tell if that fails.
pub(crate) fn error_line(text: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{text}\n").as_bytes());
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

/// A text without control characters, so that nothing printed can drive the terminal.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| {
        if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
    };
    text.chars().map(shown).collect()
}
