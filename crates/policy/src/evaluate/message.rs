//! The way out of a denial, written so that it can be pasted.

use std::path::Path;

use model::{AbsPath, Access, Remedy};

use crate::Context;

/// The grant that would allow a path; a directory that does not exist yet has a slash at its end.
pub fn grant(context: &Context, access: Access, path: &Path) -> Remedy {
    let rule = crate::PathRule::quote(&path.display().to_string());
    let (path, file) = (path.to_path_buf(), context.grant_file.clone());
    Remedy::Grant { access, path, entry: toml_text(&rule), file }
}

/// The grant that would allow connections to a socket of the host.
pub fn grant_unix(context: &Context, socket: &AbsPath) -> Remedy {
    let entry = toml_text(&crate::PathRule::quote(&socket.to_string()));
    let (path, file) = (socket.as_path().to_path_buf(), context.grant_file.clone());
    Remedy::GrantUnix { path, entry, file }
}

/// A text as TOML would need it.
fn toml_text(text: &str) -> String {
    let escaped: String = text.chars().flat_map(char::escape_default).collect();
    if escaped == text { format!("\"{text}\"") } else { serde_json::json!(text).to_string() }
}
