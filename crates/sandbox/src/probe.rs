//! What this machine gives, and why it gives no more.

use std::path::Path;

use model::Plan;

use crate::available::{Attribution, Available, Enforcement, Lack, Requested};
use crate::child::landlock;
use crate::failure::{Failed, Step};

/// What can be had of what is asked for.
pub(crate) fn probe(asked: Requested, plan: &Plan) -> Available {
    let mut lacking = Vec::new();
    let mut enforcement = asked.enforcement;
    if enforcement == Enforcement::Namespaces
        && let Some(lack) = no_namespaces()
    {
        enforcement = Enforcement::Landlock;
        lacking.push(lack);
    }
    let landlock = landlock::version();
    if landlock < 1 {
        lacking.push(no_landlock());
    }
    let mut attribution = asked.attribution;
    if enforcement == Enforcement::Landlock {
        // Without mounts, it is the watcher that protects what lies in writable ground.
        attribution = Attribution::Notify;
    }
    let tripwire = enforcement == Enforcement::Namespaces && plan.base == model::Base::Nothing;
    if attribution == Attribution::Tripwire && !tripwire {
        attribution = Attribution::Notify;
    }
    if attribution == Attribution::Tripwire
        && let Some(lack) = no_fuse()
    {
        attribution = Attribution::Notify;
        lacking.push(lack);
    }
    Available { enforcement, attribution, landlock, lacking }
}

/// The namespaces of a run, as flags of `clone`.
pub(crate) fn namespaces() -> u64 {
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    u64::from(flags.cast_unsigned())
}

/// What a failed step says about the machine.
pub(crate) fn diagnose(failed: &Failed, available: &Available) -> Vec<Lack> {
    let mut lacking = available.lacking.clone();
    let refused = matches!(failed.errno, Some(libc::EPERM | libc::EACCES));
    let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN];
    let exhausted = failed.errno.is_some_and(|errno| exhausted.contains(&errno));
    match failed.step {
        Step::Processes if refused => lacking.push(Lack {
            name: "masked-proc",
            what: "the kernel lets no fresh /proc be mounted, because parts of the one around it \
                   are covered; this is how containers are set up"
                .into(),
            remedy: "run the container with an unmasked /proc (docker: --security-opt \
                     systempaths=unconfined)"
                .into(),
        }),
        Step::Tripwire => lacking.push(Lack {
            name: "no-fuse",
            what: format!("no FUSE file system can be mounted ({failed}): every open is watched"),
            remedy: "use Linux 4.18 or newer, with FUSE and a /dev/fuse that works".into(),
        }),
        // This says nothing about namespaces.
        Step::Namespaces if exhausted => {}
        // Whatever else the kernel says: it makes none for us.
        Step::Namespaces => lacking.extend(apparmor().or_else(|| Some(unknown_refusal()))),
        Step::Identity | Step::Private | Step::Store if refused => {
            lacking.extend(apparmor().or_else(|| Some(unknown_refusal())));
        }
        _ => {}
    }
    lacking
}

/// The next lesser wall that can do without the step that failed, if it is accepted. All these
/// steps come before the command.
pub(crate) fn less(
    available: &Available,
    minimum: Enforcement,
    failed: &Failed,
    lacking: &[Lack],
) -> Option<Available> {
    let lacking = lacking.to_vec();
    match failed.step {
        Step::Tripwire if available.attribution == Attribution::Tripwire => {
            Some(Available { attribution: Attribution::Notify, lacking, ..available.clone() })
        }
        Step::Namespaces
        | Step::Identity
        | Step::Private
        | Step::Store
        | Step::Root
        | Step::Processes
        | Step::Loopback
            if available.enforcement > minimum =>
        {
            let attribution = Attribution::Notify;
            Some(Available { enforcement: minimum, attribution, lacking, ..available.clone() })
        }
        _ => None,
    }
}

/// Another program watches calls, and there can be only one.
pub(crate) fn listener_taken() -> Lack {
    Lack {
        name: "listener-taken",
        what: "another sandbox around this one holds the one seccomp listener that there can be, \
               so changes cannot be told by path"
            .into(),
        remedy: "start ringwall outside the other sandbox, or on a host instead of WSL".into(),
    }
}

fn no_namespaces() -> Option<Lack> {
    let max = std::fs::read_to_string("/proc/sys/user/max_user_namespaces").ok();
    if max.is_some_and(|max| max.trim() == "0") {
        return Some(Lack {
            name: "user-namespaces-off",
            what: "user namespaces are switched off (user.max_user_namespaces is 0)".into(),
            remedy: "sudo sysctl user.max_user_namespaces=15000".into(),
        });
    }
    if rustix::process::geteuid().is_root() {
        return None;
    }
    let clone = std::fs::read_to_string("/proc/sys/kernel/unprivileged_userns_clone").ok();
    if clone.is_some_and(|clone| clone.trim() == "0") {
        return Some(Lack {
            name: "user-namespaces-off",
            what: "user namespaces are for root only (kernel.unprivileged_userns_clone is 0)"
                .into(),
            remedy: "sudo sysctl kernel.unprivileged_userns_clone=1".into(),
        });
    }
    apparmor()
}

/// Ubuntu lets only profiled programs use user namespaces.
fn apparmor() -> Option<Lack> {
    const SWITCH: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    let on = std::fs::read_to_string(SWITCH).is_ok_and(|value| value.trim() == "1");
    let profile = std::fs::read_to_string("/proc/self/attr/apparmor/current").unwrap_or_default();
    let ours = profile.starts_with("ringwall");
    (on && !ours && !rustix::process::geteuid().is_root()).then(|| {
        let program = std::env::current_exe().unwrap_or_default();
        Lack {
            name: "apparmor-userns",
            what: "AppArmor keeps programs without a profile of their own from using user \
                   namespaces"
                .into(),
            remedy: format!(
                "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile ringwall {} \
                 flags=(unconfined) {{ userns, }}\\n' | sudo tee /etc/apparmor.d/ringwall && sudo \
                 apparmor_parser -r /etc/apparmor.d/ringwall",
                program.display()
            ),
        }
    })
}

fn unknown_refusal() -> Lack {
    let container =
        ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists());
    let what = if container {
        "this is a container, whose own sandbox refuses namespaces inside it"
    } else {
        "the kernel or a security module refuses what an unprivileged namespace needs"
    };
    Lack {
        name: if container { "container" } else { "namespaces-refused" },
        what: what.into(),
        remedy: "allow user namespaces there, or accept a weaker wall with `confinement.minimum = \
                 \"landlock\"`"
            .into(),
    }
}

fn no_landlock() -> Lack {
    Lack {
        name: "no-landlock",
        what: "this kernel has no Landlock, or it is not switched on".into(),
        remedy: "use Linux 5.13 or newer with `landlock` in the boot option lsm=".into(),
    }
}

fn no_fuse() -> Option<Lack> {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let error = opened.err()?;
    let remedy = match error.kind() {
        std::io::ErrorKind::PermissionDenied => "sudo chmod 666 /dev/fuse",
        _ => "sudo modprobe fuse, or give the container --device /dev/fuse",
    };
    Some(Lack {
        name: "no-fuse",
        what: format!("/dev/fuse cannot be opened ({error}): every open is watched instead"),
        remedy: remedy.into(),
    })
}
