//! Standard output and standard error. The only place that writes to them.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Writes text to standard output. A reader that went away ends the program quietly.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(gone) if gone.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(failed) => {
            error(&format!("cannot write to standard output: {failed}"));
            std::process::exit(1);
        }
    }
}

/// Writes lines to standard error. A failure is ignored, because there is nowhere left to report it.
pub(crate) fn error_line(text: &str) {
    write_error(&plain_lines(text));
}

/// Prints `error: …` to standard error, as cargo does.
pub(crate) fn error(text: &str) {
    write_error(&labelled("error:", Paint::BoldRed, text, error_colour()));
}

/// Prints `hint: …` to standard error: what the user can do next.
pub(crate) fn hint(text: &str) {
    write_error(&labelled("hint:", Paint::BoldCyan, text, error_colour()));
}

/// Prints `warning: …` to standard error: what went wrong without ending the work.
pub(crate) fn warning(text: &str) {
    write_error(&labelled("warning:", Paint::BoldYellow, text, error_colour()));
}

/// Prints `note: …` to standard error: what the user should know, but need not act on.
pub(crate) fn note(text: &str) {
    write_error(&labelled("note:", Paint::BoldCyan, text, error_colour()));
}

/// Prints indented `label: value` lines to standard error, with the values aligned. They explain
/// the line above them.
pub(crate) fn details(rows: &[(&str, String)]) {
    write_error(&aligned(rows, error_colour()));
}

/// Writes a finished text to standard error: what [`warning_text`] made, or sequences that control the
/// terminal.
pub(crate) fn error_text(text: &str) {
    write_error(text);
}

/// A message with its lines of details, as `warning` and `details` print them.
pub(crate) fn warning_text(text: &str, rows: &[(&str, String)]) -> String {
    let colour = error_colour();
    labelled("warning:", Paint::BoldYellow, text, colour) + &aligned(rows, colour)
}

fn write_error(text: &str) {
    if BOUNDED.load(Ordering::Relaxed) {
        write_with_patience(text);
    } else {
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

/// Whether waiting for the terminal has an end.
static BOUNDED: AtomicBool = AtomicBool::new(false);
/// Whether it has come: nothing more is written.
static GAVE_UP: AtomicBool = AtomicBool::new(false);

/// How long standard error may take no output before the rest of it is dropped.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether someone wants this process to end meanwhile.
const STEP: Duration = Duration::from_millis(50);

/// From here on, standard error is not waited for without end, and not once a signal asks for the end
/// of this process: signals are blocked after a run, and the run may have stopped the terminal.
pub(crate) fn bound_waiting() {
    BOUNDED.store(true, Ordering::Relaxed);
}

/// Writes in another thread, which is left behind if it is held. Whether a terminal takes output
/// cannot be known before, and its mode belongs to others.
fn write_with_patience(text: &str) {
    if GAVE_UP.load(Ordering::Relaxed) {
        return;
    }
    let (sender, progress) = std::sync::mpsc::channel();
    let text = text.to_owned();
    let writer = std::thread::Builder::new().spawn(move || {
        let mut error = std::io::stderr().lock();
        for part in text.as_bytes().chunks(PART) {
            let written = error.write_all(part);
            if written.is_err() || sender.send(()).is_err() {
                return;
            }
        }
    });
    let Ok(writer) = writer else { return };
    let mut since = Instant::now();
    loop {
        match progress.recv_timeout(STEP) {
            Ok(()) => since = Instant::now(),
            Err(RecvTimeoutError::Disconnected) => break drop(writer.join()),
            Err(RecvTimeoutError::Timeout) => {
                if since.elapsed() > PATIENCE || sandbox::end_is_wanted() {
                    break GAVE_UP.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

/// How much is written at once.
const PART: usize = 4096;

fn labelled(label: &str, paint: Paint, text: &str, colour: Colour) -> String {
    format!("{} {}", painted(label, paint, colour), plain_lines(text))
}

fn aligned(rows: &[(&str, String)], colour: Colour) -> String {
    let width = rows.iter().map(|(label, _)| label.len() + 1).max().unwrap_or(0);
    let row = |(label, value): &(&str, String)| {
        let label = painted(&format!("{label}:"), Paint::Bold, colour);
        format!("  {}{}\n", padded(&label, width + 1), plain(value))
    };
    rows.iter().map(row).collect()
}

/// Whether a person can be asked: both ends of the conversation are a terminal.
pub(crate) fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Asks a question. Anything but `y` or `yes` is a no.
pub(crate) fn confirm(question: &str) -> bool {
    print(&format!("{question} [y/N] "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Paints text for standard output.
pub(crate) fn paint(text: &str, paint: Paint) -> String {
    painted(text, paint, Colour::of(&std::io::stdout()))
}

fn error_colour() -> Colour {
    Colour::of(&std::io::stderr())
}

/// Whether a stream is painted: only on a terminal, and not where `NO_COLOR` is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    On,
    Off,
}

impl Colour {
    fn of(stream: &impl IsTerminal) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if stream.is_terminal() && !unwanted { Self::On } else { Self::Off }
    }
}

/// The few styles in use.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paint {
    /// Background information.
    Dim,
    /// A label.
    Bold,
    /// Denied or broken.
    Red,
    /// Allowed or fine.
    Green,
    /// Needs attention.
    Yellow,
    /// The word `error`.
    BoldRed,
    /// The words `hint` and `note`.
    BoldCyan,
    /// The label of a warning.
    BoldYellow,
}

impl Paint {
    /// The parameters of the escape sequence "select graphic rendition".
    fn code(self) -> &'static str {
        match self {
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::BoldRed => "1;31",
            Self::BoldCyan => "1;36",
            Self::BoldYellow => "1;33",
        }
    }
}

fn painted(text: &str, paint: Paint, colour: Colour) -> String {
    match colour {
        Colour::On if !text.is_empty() => format!("\x1b[{}m{text}\x1b[0m", paint.code()),
        Colour::On | Colour::Off => text.to_owned(),
    }
}

/// Rows with aligned columns. Cells may be painted.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| visible_width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<_> = cells.map(|(cell, width)| padded(cell, *width)).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Adds spaces until the visible part is `width` characters long.
fn padded(cell: &str, width: usize) -> String {
    let missing = width.saturating_sub(visible_width(cell));
    format!("{cell}{:missing$}", "")
}

/// How many characters a terminal shows: escape sequences take no room.
fn visible_width(cell: &str) -> usize {
    let mut escaped = false;
    let shown = cell.chars().filter(|c| {
        let hidden = escaped || *c == '\x1b';
        escaped = hidden && *c != 'm';
        !hidden
    });
    shown.count()
}

/// A text in which characters that control the terminal, reorder others or are invisible are
/// escaped, so that the user sees exactly what the text contains.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        _ if c.is_control() => c.escape_default().to_string(),
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{115f}'..='\u{1160}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => c.escape_unicode().to_string(),
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
    fn errors_look_as_cargo_prints_them() {
        let error = |colour| labelled("error:", Paint::BoldRed, "cannot read `a\x1b[2K`", colour);
        assert_eq!(error(Colour::Off), "error: cannot read `a\\u{1b}[2K`\n");
        let bold_red = "\x1b[1;31merror:\x1b[0m cannot read `a\\u{1b}[2K`\n";
        assert_eq!(error(Colour::On), bold_red);
    }

    #[test]
    fn details_are_aligned_with_and_without_colour() {
        let rows = [
            ("why", "outside the workspace".to_owned()),
            ("allow", "ringwall grant read a".to_owned()),
        ];
        let plain = "  why:   outside the workspace\n  allow: ringwall grant read a\n";
        assert_eq!(aligned(&rows, Colour::Off), plain);
        let bold = "  \x1b[1mwhy:\x1b[0m   outside the workspace\n  \x1b[1mallow:\x1b[0m ringwall \
                    grant read a\n";
        assert_eq!(aligned(&rows, Colour::On), bold);
    }

    #[test]
    fn painted_cells_do_not_shift_a_table() {
        let ok = painted("ok", Paint::Green, Colour::On);
        let rows = [vec![ok.clone(), "a".into()], vec!["FAIL".into(), "b".into()]];
        assert_eq!(table(&rows), format!("{ok}    a\nFAIL  b\n"));
    }

    #[test]
    fn nothing_that_is_printed_drives_the_terminal_or_hides() {
        assert_eq!(plain("a\u{1b}[2K\n\u{9b}1m"), r"a\u{1b}[2K\n\u{9b}1m");
        assert_eq!(plain("x\u{202e}y\u{200b}"), r"x\u{202e}y\u{200b}");
        assert_eq!(plain("a\u{e0041}\u{3164}"), r"a\u{e0041}\u{3164}");
        assert_eq!(plain("grüße 文 \u{1f600}"), "grüße 文 \u{1f600}");
        assert_eq!(plain_lines("a\n\tb"), "a\n\\tb\n");
    }
}
