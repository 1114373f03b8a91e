//! The way out of a denial, written so that it can be pasted.

use std::path::Path;

use model::{AbsPath, Access, Remedy, toml_string};

use crate::Context;
use crate::dangerous::gives_too_much;
use crate::protected::secret;

/// The grant that would allow a path; a directory that does not exist yet has a slash at its end.
///
/// A secret by itself can be granted, by a person who is asked. What is only too wide is not proposed:
/// a part of it will do.
pub fn grant(context: &Context, access: Access, path: &Path) -> Remedy {
    let rule = crate::PathRule::quote(&path.display().to_string());
    let at = AbsPath::lexical(path).ok();
    let asks = at.as_ref().and_then(|at| gives_too_much(at, &context.home));
    if let (Some(what), Some(at)) = (&asks, &at)
        && secret(at, &context.home).is_none()
    {
        return Remedy::advice(format!(
            "no grant of {at} is proposed, because it {what}; grant the part of it that is needed"
        ));
    }
    let (path, file) = (path.to_path_buf(), context.grant_file.clone());
    Remedy::Grant { access, path, entry: toml_string(&rule), file, asks }
}

/// The grant that would allow connections to a socket of the host.
pub fn grant_unix(context: &Context, socket: &AbsPath) -> Remedy {
    let entry = toml_string(&crate::PathRule::quote(&socket.to_string()));
    let (path, file) = (socket.as_path().to_path_buf(), context.grant_file.clone());
    Remedy::GrantUnix { path, entry, file }
}
