//! The user who runs a command.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use plan::User;

/// The user's numbers, and a name that is safe in /etc/passwd.
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
    User { uid, gid, name }
}
