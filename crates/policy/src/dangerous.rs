//! [`gives_too_much`]: grants that give away more than they seem to. They are not proposed, and wait for a
//! person who confirms them.

use model::AbsPath;

use crate::protected::{holds_secrets, secret};
use crate::sockets::gives_away;

/// What a grant of a path gives away, where that is more than any grant should give by accident: as a
/// part of a sentence that begins with "it".
pub fn gives_too_much(path: &AbsPath, home: &AbsPath) -> Option<String> {
    let at = path.as_path();
    if *path == AbsPath::root() {
        return Some("is the whole file system".into());
    }
    if home.is_within(path) {
        return Some(if path == home {
            "is your whole home directory".into()
        } else {
            "contains your whole home directory".into()
        });
    }
    let name = at.file_name().unwrap_or_default().to_string_lossy();
    let folded = name.to_ascii_lowercase();
    if is_key(&folded) {
        return Some("is a private key".into());
    }
    if ends_with(&folded, &[".kdbx", ".kdb"]) {
        return Some("holds passwords".into());
    }
    let below = at.strip_prefix(home.as_path()).ok().and_then(|below| below.to_str());
    if let Some((_, what)) = below.and_then(|below| RUNS.iter().find(|(dir, _)| *dir == below)) {
        return Some((*what).into());
    }
    if let Some(what) = secret(path, home) {
        return Some(format!("holds {what}"));
    }
    if let Some(what) = holds_secrets(path, home) {
        return Some(format!("contains {what}"));
    }
    if gives_away(at).is_some() {
        return Some("is the socket of a service that acts for whoever connects".into());
    }
    if SYSTEM.contains(&at.to_str().unwrap_or_default()) {
        return Some("contains secrets of the system".into());
    }
    let other = at.starts_with("/root") || at.strip_prefix("/home").is_ok_and(|rest| rest != "");
    (other && !path.is_within(home)).then(|| "belongs to another user's home directory".into())
}

/// Whether this is what private keys are called.
fn is_key(name: &str) -> bool {
    let kinds = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"];
    let endings = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".ppk"];
    kinds.contains(&name) || ends_with(name, &endings)
}

fn ends_with(name: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| name.ends_with(ending))
}

/// Directories of the home in which programs look for what they run or for where they download from, or
/// that have credentials beside other things.
const RUNS: &[(&str, &str)] = &[
    ("bin", "has programs that you run"),
    (".local/bin", "has programs that you run"),
    (".cargo/bin", "has programs that you run"),
    (".cargo", "has programs that you run, and credentials"),
    (".gem", "has credentials"),
    (".gradle", "has scripts that every build runs, and credentials"),
    (".m2", "has credentials"),
    (".config/pip", "says where packages come from"),
    (".pip", "says where packages come from"),
];

/// Directories of the system with secrets in them.
const SYSTEM: &[&str] = &["/etc", "/home", "/proc", "/run", "/var", "/var/lib", "/var/run"];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn judged(path: &str) -> Option<String> {
        let at = |path: &str| AbsPath::lexical(Path::new(path)).unwrap();
        gives_too_much(&at(path), &at("/home/u"))
    }

    #[test]
    fn what_holds_secrets_or_everything_is_dangerous() {
        for path in [
            "/",
            "/home",
            "/home/u",
            "/home/u/.ssh",
            "/home/u/.ssh/id_ed25519",
            "/home/u/.SSH",
            "/home/u/.config",
            "/home/u/.local/share",
            "/home/u/.claude",
            "/home/u/.codex/auth.json",
            "/home/u/id_rsa",
            "/srv/app/server.key",
            "/home/u/Passwords.kdbx",
            "/home/u/bin",
            "/home/u/.gradle",
            "/home/other/app",
            "/root/x",
            "/etc",
            "/etc/shadow",
            "/var/run",
            "/run/docker.sock",
            "/home/u/.docker/run/docker.sock",
        ] {
            assert!(judged(path).is_some(), "{path}");
        }
        for path in [
            "/home/u/code/shared",
            "/home/u/.config/foo",
            "/home/u/.local/share/foo",
            "/srv/data",
            "/var/lib/postgresql",
            "/etc/foo",
            "/opt",
            "/home/u/notes.txt",
            "/home/u/.ssh2/id_rsa.pub",
            "/home/u/.cargo/registry",
        ] {
            assert_eq!(judged(path), None, "{path}");
        }
    }
}
