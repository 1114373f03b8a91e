//! The pieces that are the same in every run: devices, processes, scratch space, a few texts.

use std::path::Path;

use model::{AbsPath, Cause, Kind, Level, Link, Plan};

use super::{Layout, Machine, git_files};
use policy::Context;

const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
pub(super) const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Which name services to use: files, and the resolver in `/etc/resolv.conf`. The password entries
/// name a service that has none, because perl asks for them with every user lookup.
const NAME_SERVICES: &str = "passwd: files\ngroup: files\nshadow: dns\nhosts: files dns\n\
    networks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n";

pub(super) fn put(layout: &mut Layout, context: &Context, machine: &Machine, level: Level) {
    let fixed = [
        ("/dev", Kind::Scratch, Cause::Devices),
        ("/dev/pts", Kind::Terminals, Cause::Devices),
        ("/dev/shm", Kind::Scratch, Cause::SharedMemory),
        ("/proc", Kind::Processes, Cause::Processes),
        ("/tmp", Kind::Scratch, Cause::Temporary),
        ("/var/tmp", Kind::Scratch, Cause::Temporary),
    ];
    for (path, kind, why) in fixed {
        layout.put(&at(path), kind, true, why);
    }
    for name in DEVICES {
        layout.put(&at("/dev").join(name.as_ref()), Kind::Device, false, Cause::Device);
    }
    for (name, target) in DEVICE_LINKS {
        let path = at("/dev").join(name.as_ref());
        layout.links.push(Link { path, target: target.into() });
    }
    if level < Level::Full {
        for (path, text) in texts(context, machine) {
            layout.put(&path, Kind::Text(text), false, Cause::Generated);
        }
    }
}

fn texts(context: &Context, machine: &Machine) -> Vec<(AbsPath, String)> {
    let user = &machine.user;
    let home = &context.home;
    // Some programs read the home directory from here, and not from the environment.
    let roots_home = if user.uid == 0 { home.to_string() } else { "/root".into() };
    let mut passwd = format!("root:x:0:0:root:{roots_home}:/bin/bash\n");
    let mut group = String::from("root:x:0:\n");
    if user.uid != 0 {
        passwd.push_str(&format!(
            "{0}:x:{1}:{2}:{0}:{home}:/bin/bash\n",
            user.name, user.uid, user.gid
        ));
    }
    if user.gid != 0 {
        group.push_str(&format!("{}:x:{}:\n", user.name, user.gid));
    }
    passwd.push_str("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
    group.push_str("tty:x:5:\nnogroup:x:65534:\n");
    let host = Plan::HOST_NAME;
    let hosts = format!("127.0.0.1 localhost {host}\n::1 localhost ip6-localhost ip6-loopback\n");
    let mut texts = vec![
        (at("/etc/passwd"), passwd),
        (at("/etc/group"), group),
        (at("/etc/hosts"), hosts),
        (at("/etc/hostname"), format!("{host}\n")),
        (at("/etc/nsswitch.conf"), NAME_SERVICES.into()),
        (at("/etc/resolv.conf"), "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n".into()),
    ];
    texts.extend(git_files::texts(context, machine));
    texts
}

fn at(path: &str) -> AbsPath {
    AbsPath::lexical(Path::new(path)).unwrap_or_else(|_| AbsPath::root())
}
