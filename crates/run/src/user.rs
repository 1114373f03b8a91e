//! Who runs: the user of the system, and the name under which they commit.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::FileText;
use plan::{Identity, User};

/// The name and address under which the user commits, from the user's own files.
pub(crate) fn identity(home: &Path) -> Option<Identity> {
    let files = [home.join(".config/git/config"), home.join(".gitconfig")];
    let (mut name, mut email) = (None, None);
    for file in files {
        let FileText::Text(text) = facts::read_small(&file) else { continue };
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(heading) = line.strip_prefix('[') {
                section = heading.trim_end_matches(']').trim().to_ascii_lowercase();
            } else if section == "user"
                && let Some((key, value)) = line.split_once('=')
            {
                let value = value.trim().trim_matches('"').to_owned();
                match key.trim().to_ascii_lowercase().as_str() {
                    "name" => name = Some(value),
                    "email" => email = Some(value),
                    _ => {}
                }
            }
        }
    }
    Some(Identity { name: name?, email: email? })
}

pub(crate) fn user(environment: &[(OsString, OsString)]) -> User {
    let uid = rustix::process::getuid().as_raw();
    let gid = rustix::process::getgid().as_raw();
    let named = environment.iter().find(|(name, _)| name == "USER" || name == "LOGNAME");
    let plain = |name: &&OsString| {
        !name.is_empty()
            && name.as_bytes().iter().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c))
    };
    let name = named.map(|(_, value)| value).filter(plain);
    let name = name.map_or_else(|| "user".into(), |name| name.to_string_lossy().into_owned());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    User { uid, gid, name, host }
}
