//! The words of a refusal: the way out, spelt so that it can be pasted.

use std::path::Path;

use model::{Access, shell_word};

use crate::Context;

/// The command and the line that would allow a path; a directory that is yet to be made has a slash
/// at its end.
pub fn grant(context: &Context, access: Access, path: &Path) -> String {
    let key = match access {
        Access::Read => "allow_read",
        Access::Write => "allow_write",
    };
    let rule = crate::PathRule::quote(&path.display().to_string());
    format!(
        "the user can allow it with `ringwall grant {access} {}`, which adds {} to {key} under \
         [filesystem] in {}",
        shell_word(&path.display().to_string()),
        toml_text(&rule),
        context.grant_file.display(),
    )
}

/// A text as TOML would need it.
fn toml_text(text: &str) -> String {
    let escaped: String = text.chars().flat_map(char::escape_default).collect();
    if escaped == text { format!("\"{text}\"") } else { serde_json::json!(text).to_string() }
}
