//! Sockets of well-known services, and what a connection to them gives away.

use std::path::{Path, PathBuf};

/// What a connection to a socket gives, where that is more than any grant should give by accident.
/// `None` for a socket that no row knows.
pub fn gives_away(socket: &Path) -> Option<&'static str> {
    let name = socket.file_name()?.to_str()?;
    let parent = socket.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let is = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    };
    let row = SERVICES
        .iter()
        .find(|(dir, pattern, _)| is(pattern) && (dir.is_empty() || parent == Some(*dir)));
    row.map(|(.., what)| *what)
}

/// Where the socket of an agent may be that is named without a path: `ssh-agent` or `gpg-agent`.
/// `variable` is what `SSH_AUTH_SOCK` says.
pub fn agent_sockets(
    name: &str,
    variable: Option<PathBuf>,
    (home, uid): (&Path, u32),
) -> Option<Vec<PathBuf>> {
    match name {
        "ssh-agent" => Some(variable.into_iter().collect()),
        "gpg-agent" => Some(vec![
            PathBuf::from(format!("/run/user/{uid}/gnupg/S.gpg-agent")),
            home.join(".gnupg/S.gpg-agent"),
        ]),
        _ => None,
    }
}

const CONTAINERS: &str =
    "whoever can start containers can read and write every file of the machine";
const SYSTEM: &str = "its services act for the caller outside the sandbox";
const SESSION: &str = "it can start programs of yours outside the sandbox";
const DISPLAY: &str = "it shows your screen and keyboard, and can type for you";
const KEYS: &str = "it signs and decrypts with all of your keys";

/// The name of the directory (empty: any), the name of the socket, and what it gives.
const SERVICES: &[(&str, &str, &str)] = &[
    ("", "docker.sock", CONTAINERS),
    ("", "dockerd*", CONTAINERS),
    ("", "podman.sock", CONTAINERS),
    ("", "containerd.sock*", CONTAINERS),
    ("", "buildkitd.sock", CONTAINERS),
    ("", "crio.sock", CONTAINERS),
    ("", "libvirt-sock*", CONTAINERS),
    ("", "virtqemud-sock*", CONTAINERS),
    ("lxd", "unix.socket", CONTAINERS),
    ("incus", "unix.socket", CONTAINERS),
    ("", "snapd.socket", SYSTEM),
    ("systemd", "private", SESSION),
    ("dbus", "system_bus_socket", SYSTEM),
    ("", "bus", SESSION),
    ("", "dbus-*", SESSION),
    (".X11-unix", "X*", DISPLAY),
    ("", "wayland-*", DISPLAY),
    ("", "S.gpg-agent*", KEYS),
    ("keyring", "ssh", KEYS),
    ("gcr", "ssh", KEYS),
    ("", "openssh_agent*", KEYS),
    ("keyring", "control", KEYS),
    ("", "agent.*", KEYS),
    ("", "ssh-agent*", KEYS),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_known_wherever_their_socket_is() {
        for socket in [
            "/run/docker.sock",
            "/home/u/.docker/run/docker.sock",
            "/run/user/1000/podman/podman.sock",
            "/run/containerd/containerd.sock.ttrpc",
            "/run/libvirt/libvirt-sock",
            "/run/systemd/private",
            "/run/dbus/system_bus_socket",
            "/run/user/1000/bus",
            "/tmp/.X11-unix/X0",
            "/tmp/ssh-XXXXabc/agent.42",
            "/home/u/.gnupg/S.gpg-agent.ssh",
            "/var/lib/incus/unix.socket",
        ] {
            assert!(gives_away(Path::new(socket)).is_some(), "{socket}");
        }
        for socket in
            ["/p/.s.PGSQL.5432", "/p/app.sock", "/run/private", "/p/X0", "/", "/p/unix.socket"]
        {
            assert_eq!(gives_away(Path::new(socket)), None, "{socket}");
        }
    }
}
