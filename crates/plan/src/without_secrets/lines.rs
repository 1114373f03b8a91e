//! Formats with one setting in each line.

use super::{Format, Shown, is_harmless, is_secret, is_token, without_users};

/// Goes through the lines.
pub(super) fn shown(format: Format, text: &str) -> Option<Shown> {
    // A line in a string of several lines may look like anything.
    if format == Format::Toml && (text.contains("\"\"\"") || text.contains("'''")) {
        return None;
    }
    let mut state = State::begin(format);
    for line in text.split_inclusive('\n') {
        let end = line.len() - line.trim_end_matches(['\n', '\r']).len();
        let (line, end) = line.split_at(line.len() - end);
        // Some programs take this alone for the end of a line.
        if line.contains('\r') {
            return None;
        }
        state.line(line.trim_start_matches('\u{feff}'));
        state.text.push_str(end);
    }
    Some(Shown { text: state.text, removed: state.removed })
}

struct State {
    format: Format,
    text: String,
    removed: Vec<String>,
    /// The section that the next lines are in.
    section: String,
    /// Whether all settings of this section are secrets.
    secret_section: bool,
    /// Whether the setting that the next line may continue was left out.
    leaving_out: bool,
    /// Whether the next line continues this one.
    continued: bool,
    /// Brackets that are open in a setting of several lines.
    depth: i32,
}

impl State {
    fn begin(format: Format) -> Self {
        Self {
            format,
            text: String::new(),
            removed: Vec::new(),
            section: String::new(),
            secret_section: false,
            leaving_out: false,
            continued: false,
            depth: 0,
        }
    }

    fn line(&mut self, line: &str) {
        let trimmed = line.trim();
        let continues = self.continued
            || self.depth > 0
            || (self.format == Format::Ini && line.starts_with([' ', '\t']));
        let was_left_out = self.leaving_out && (continues || trimmed.is_empty());
        self.continued = line.ends_with('\\');
        if trimmed.is_empty() {
            self.text.push_str(line);
        } else if was_left_out {
            self.count_brackets(line);
        } else if is_comment(trimmed, self.format) && self.depth == 0 {
            self.continued = false;
        } else if self.depth == 0 && trimmed.starts_with('[') && !continues {
            self.leaving_out = false;
            self.heading(line);
        } else {
            self.leaving_out = false;
            self.setting(line);
            self.count_brackets(line);
        }
    }

    /// A heading, and what follows in its line.
    fn heading(&mut self, line: &str) {
        let close = closing_bracket(line).unwrap_or(line.len());
        let (heading, rest) = line.split_at(close);
        heading.trim().trim_matches(['[', ']']).clone_into(&mut self.section);
        let first = self.section.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let first = first.to_lowercase();
        self.secret_section = ["auth", "credential", "credentials"].contains(&first.as_str())
            || (self.format == Format::Toml && heading.contains('\\'));
        match without_users(heading) {
            Some(bare) => {
                self.removed.push("the user in the name of a section".into());
                self.text.push_str(&bare);
            }
            None => self.text.push_str(heading),
        }
        let trimmed = rest.trim();
        if !trimmed.is_empty() && !is_comment(trimmed, self.format) {
            self.setting(rest);
        }
    }

    fn setting(&mut self, line: &str) {
        let (name, value) = match line.split_once('=').or_else(|| line.split_once(':')) {
            Some((name, value)) => (name.trim(), value),
            None => (line.trim(), ""),
        };
        // Without a sign between them, a name and its value are words.
        let named = is_secret(name) && !(line.contains(['=', ':']) && is_harmless(value));
        // A key of TOML can be written with escapes, and this is not the place to read them.
        let named = named || (self.format == Format::Toml && has_escaped_key(line));
        // A program that asks for credentials is none.
        let in_section = self.secret_section && name != "helper" && !is_harmless(value);
        if named || in_section || is_token(line) || names_a_secret(value) {
            self.remove(name);
            self.leaving_out = true;
            return;
        }
        let proxy = name.to_lowercase().contains("proxy") && !value.contains("://");
        let bare = match value.rfind('@') {
            Some(at) if proxy => {
                let start = value.find(|c: char| !c.is_whitespace() && c != '"').unwrap_or(0);
                let kept = line.len() - value.len() + start;
                let rest = value.get(at + 1..).unwrap_or_default();
                Some(format!("{}{rest}", line.get(..kept).unwrap_or_default()))
            }
            _ => without_users(line),
        };
        match bare {
            Some(bare) => {
                self.remove(name);
                self.text.push_str(&bare);
            }
            None => self.text.push_str(line),
        }
    }

    /// Remembers the name of a setting, in which an address can have a password as well.
    fn remove(&mut self, name: &str) {
        let known = without_users(name);
        let name = known.as_deref().unwrap_or(name).trim_matches(['"', '\'']);
        let plain = |c: char| c.is_ascii_alphanumeric() || "/:._-@".contains(c);
        let shown = match name {
            name if name.len() <= 80 && name.chars().all(plain) && !is_token(name) => name,
            _ => "a value",
        };
        let shown = match (self.format, self.section.as_str()) {
            (Format::Toml | Format::Git, section)
                if !section.is_empty() && section.chars().all(plain) =>
            {
                format!("{section}.{shown}")
            }
            _ => shown.to_owned(),
        };
        if !self.removed.contains(&shown) {
            self.removed.push(shown);
        }
    }

    /// A value in brackets may go on in the next lines.
    fn count_brackets(&mut self, line: &str) {
        if self.format != Format::Toml {
            return;
        }
        let mut quote = None;
        for c in line.chars() {
            match (quote, c) {
                (Some(open), c) if open == c => quote = None,
                (None, '"' | '\'') => quote = Some(c),
                (None, '#') => break,
                (None, '[' | '{') => self.depth += 1,
                (None, ']' | '}') => self.depth -= 1,
                _ => {}
            }
        }
        self.depth = self.depth.max(0);
    }
}

fn is_comment(trimmed: &str, format: Format) -> bool {
    let begins = |starts: &[&str]| starts.iter().any(|start| trimmed.starts_with(start));
    match format {
        Format::Toml => begins(&["#"]),
        _ => begins(&["#", ";", "!", "--"]),
    }
}

/// Whether a key in a line, also one of an inline table, is written with an escape. A string is a key
/// if `=` or a period follows it.
fn has_escaped_key(line: &str) -> bool {
    let (mut quote, mut escaped) = (None, false);
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some('"'), '\\') => {
                escaped = true;
                chars.next();
            }
            (Some(open), c) if c == open => {
                let rest = line.get(at + 1..).unwrap_or_default().trim_start();
                if escaped && rest.starts_with(['=', '.']) {
                    return true;
                }
                quote = None;
            }
            (None, '"' | '\'') => (quote, escaped) = (Some(c), false),
            (None, '#') => return false,
            _ => {}
        }
    }
    false
}

/// Where a heading ends, after its bracket.
fn closing_bracket(line: &str) -> Option<usize> {
    let mut quoted = false;
    let mut previous = ' ';
    for (at, c) in line.char_indices() {
        match c {
            '"' if previous != '\\' => quoted = !quoted,
            ']' if !quoted => {
                let twice = line.get(at + 1..).is_some_and(|rest| rest.starts_with(']'));
                return Some(at + 1 + usize::from(twice));
            }
            _ => {}
        }
        previous = c;
    }
    None
}

/// Whether a value has settings of its own, one of which is a secret: `{ token = "x" }`,
/// `--password=x`, a comment at the end of a line.
fn names_a_secret(value: &str) -> bool {
    let separators = |c: char| matches!(c, '=' | ':');
    let mut rest = value;
    while let Some(at) = rest.find(separators) {
        let (before, after) = rest.split_at(at);
        let quoted = before.trim_end_matches([' ', '\t', '"', '\'', '\\']);
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let name = quoted.rsplit(|c: char| !inside(c)).next().unwrap_or_default();
        let after = after.get(1..).unwrap_or_default();
        if is_secret(name) && !is_harmless(after) && !after.starts_with("//") {
            return true;
        }
        rest = after;
    }
    false
}
