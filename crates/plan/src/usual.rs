//! [`USUAL`]: what most plans have in common, so that it can be mounted before there is a plan.

use model::{Kind, Usual};

use super::files::DEVICE_LINKS;

/// What most plans have in common. Where a plan differs, it counts.
pub const USUAL: Usual = Usual {
    sources: &[
        "/etc/alternatives",
        "/etc/fonts",
        "/etc/ld.so.cache",
        "/etc/localtime",
        "/etc/manpath.config",
        "/etc/mime.types",
        "/etc/os-release",
        "/etc/pki/tls/certs",
        "/etc/protocols",
        "/etc/services",
        "/etc/ssl/certs",
        "/etc/ssl/openssl.cnf",
        "/etc/terminfo",
        "/etc/timezone",
        "/nix",
        "/opt",
        "/sys/devices/system",
        "/usr",
        "/var/cache/fontconfig",
        "/var/lib/dpkg",
    ],
    devices: &[
        ("/dev", Kind::Scratch),
        ("/dev/full", Kind::Device),
        ("/dev/null", Kind::Device),
        ("/dev/pts", Kind::Terminals),
        ("/dev/random", Kind::Device),
        ("/dev/shm", Kind::Scratch),
        ("/dev/tty", Kind::Device),
        ("/dev/urandom", Kind::Device),
        ("/dev/zero", Kind::Device),
    ],
    device_links: DEVICE_LINKS,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::SYSTEM;

    #[test]
    fn what_is_usual_is_in_the_tables() {
        for path in USUAL.sources {
            let is_row = |(name, _): &&(&str, _)| path.strip_prefix('/') == Some(*name);
            assert!(SYSTEM.iter().any(|row| is_row(&row)), "{path}");
        }
    }
}
