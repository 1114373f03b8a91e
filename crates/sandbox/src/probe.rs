//! What this machine can provide, and why it provides no more.

use std::path::Path;

use model::Plan;

use crate::available::{Attribution, Available, Enforcement, Lack, Requested};
use crate::child::landlock;
use crate::failure::{Failed, Step};

/// What is available of what is requested.
pub(crate) fn probe(requested: Requested, plan: &Plan) -> Available {
    let mut lacking = Vec::new();
    let mut enforcement = requested.enforcement;
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
    let mut attribution = requested.attribution;
    if enforcement == Enforcement::Landlock {
        // Without mounts, only intercepted calls protect names inside of what may be written.
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
    Available { enforcement, attribution, landlock, lacking: explain(lacking) }
}

/// Inside another run, every lack has the same cause, and no advice about the machine helps.
fn explain(lacking: Vec<Lack>) -> Vec<Lack> {
    match nested() {
        Some(nested) if !lacking.is_empty() => vec![nested],
        _ => lacking,
    }
}

/// Whether this process runs inside a ringwall sandbox. Every run has the variable; the kernel's
/// account of this process confirms it, because a variable alone can be left over.
fn nested() -> Option<Lack> {
    std::env::var_os("RINGWALL")?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    is_confined(&status).then(|| Lack {
        name: "nested".into(),
        what: "ringwall is already running inside a ringwall sandbox".into(),
        remedy: "start the command directly: the sandbox around it applies to it as well".into(),
    })
}

/// Whether a status of `/proc` shows the traits that every process of a run has: a seccomp filter,
/// and no way to gain privileges.
fn is_confined(status: &str) -> bool {
    let has = |field: &str, value: &str| {
        status.lines().any(|line| {
            line.split_once(':').is_some_and(|(name, rest)| name == field && rest.trim() == value)
        })
    };
    has("Seccomp", "2") && has("NoNewPrivs", "1")
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
    let denied = matches!(failed.errno, Some(libc::EPERM | libc::EACCES));
    let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN];
    let exhausted = failed.errno.is_some_and(|errno| exhausted.contains(&errno));
    match failed.step {
        Step::Processes if denied => lacking.push(Lack {
            name: "masked-proc".into(),
            what: "the kernel does not allow a new /proc to be mounted, because parts of the \
                   current one are masked, as container runtimes do"
                .into(),
            remedy: "run the container with an unmasked /proc (docker: --security-opt \
                     systempaths=unconfined)"
                .into(),
        }),
        Step::Tripwire => lacking.push(Lack {
            name: "no-fuse".into(),
            what: format!("{failed}; every open is intercepted by seccomp instead"),
            remedy: "use Linux 4.18 or newer with FUSE and a working /dev/fuse".into(),
        }),
        // A shortage says nothing about namespaces.
        Step::Namespaces if exhausted => {}
        // Any other error means that the kernel does not create them for this user.
        Step::Namespaces => lacking.extend(apparmor().or_else(|| Some(unknown_denial()))),
        Step::IdMap | Step::PrivateMounts | Step::Storage if denied => {
            lacking.extend(apparmor().or_else(|| Some(unknown_denial())));
        }
        _ => {}
    }
    explain(lacking)
}

/// The next weaker sandbox that does without the step that failed, if it is accepted. All these
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
        | Step::IdMap
        | Step::PrivateMounts
        | Step::Storage
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

/// Another program intercepts system calls, and the kernel allows only one listener.
pub(crate) fn listener_taken() -> Lack {
    nested().unwrap_or_else(|| Lack {
        name: "listener-taken".into(),
        what: "another sandbox around this one holds the seccomp listener, and the kernel allows \
               only one: changes cannot be attributed to a path"
            .into(),
        remedy: "start ringwall outside the other sandbox, or on a host instead of WSL".into(),
    })
}

fn no_namespaces() -> Option<Lack> {
    let max = std::fs::read_to_string("/proc/sys/user/max_user_namespaces").ok();
    if max.is_some_and(|max| max.trim() == "0") {
        return Some(Lack {
            name: "user-namespaces-off".into(),
            what: "user namespaces are disabled (user.max_user_namespaces is 0)".into(),
            remedy: "sudo sysctl user.max_user_namespaces=15000".into(),
        });
    }
    if rustix::process::geteuid().is_root() {
        return None;
    }
    let clone = std::fs::read_to_string("/proc/sys/kernel/unprivileged_userns_clone").ok();
    if clone.is_some_and(|clone| clone.trim() == "0") {
        return Some(Lack {
            name: "user-namespaces-off".into(),
            what: "only root may create user namespaces (kernel.unprivileged_userns_clone is 0)"
                .into(),
            remedy: "sudo sysctl kernel.unprivileged_userns_clone=1".into(),
        });
    }
    apparmor()
}

/// Ubuntu allows user namespaces only to programs that `AppArmor` has a profile for.
fn apparmor() -> Option<Lack> {
    const SWITCH: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    let on = std::fs::read_to_string(SWITCH).is_ok_and(|value| value.trim() == "1");
    let profile = std::fs::read_to_string("/proc/self/attr/apparmor/current").unwrap_or_default();
    let ours = profile.starts_with("ringwall");
    (on && !ours && !rustix::process::geteuid().is_root()).then(|| {
        let program = std::env::current_exe().unwrap_or_default();
        Lack {
            name: "apparmor-userns".into(),
            what: "AppArmor denies user namespaces to programs that have no profile".into(),
            remedy: format!(
                "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile ringwall {} \
                 flags=(unconfined) {{ userns, }}\\n' | sudo tee /etc/apparmor.d/ringwall && sudo \
                 apparmor_parser -r /etc/apparmor.d/ringwall",
                program.display()
            ),
        }
    })
}

fn unknown_denial() -> Lack {
    let container =
        ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists());
    let what = if container {
        "this is a container, and its own sandbox denies user namespaces"
    } else {
        "the kernel or a security module denies unprivileged user namespaces"
    };
    Lack {
        name: if container { "container" } else { "namespaces-refused" }.into(),
        what: what.into(),
        remedy: "allow user namespaces, or accept a weaker sandbox with `confinement.minimum = \
                 \"landlock\"`"
            .into(),
    }
}

fn no_landlock() -> Lack {
    Lack {
        name: "no-landlock".into(),
        what: "this kernel has no Landlock, or Landlock is disabled".into(),
        remedy: "use Linux 5.13 or newer, with `landlock` in the boot parameter `lsm=`".into(),
    }
}

fn no_fuse() -> Option<Lack> {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let error = opened.err()?;
    let remedy = match error.kind() {
        std::io::ErrorKind::PermissionDenied => "sudo chmod 666 /dev/fuse",
        _ => "sudo modprobe fuse, or start the container with --device /dev/fuse",
    };
    Some(Lack {
        name: "no-fuse".into(),
        what: format!(
            "/dev/fuse cannot be opened ({error}); every open is intercepted by seccomp instead"
        ),
        remedy: remedy.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_a_run_is_known_by_its_status() {
        let status = "Name:\tbash\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        assert!(is_confined(status));
        // A plain process, and one in a container of docker.
        assert!(!is_confined("NoNewPrivs:\t0\nSeccomp:\t0\n"));
        assert!(!is_confined("NoNewPrivs:\t0\nSeccomp:\t2\n"));
    }

    #[test]
    fn a_weaker_sandbox_is_used_only_if_it_is_accepted() {
        use Attribution::{Notify, Tripwire};
        use Enforcement::{Landlock, Namespaces};
        let best = Available {
            enforcement: Namespaces,
            attribution: Tripwire,
            landlock: 6,
            lacking: Vec::new(),
        };
        let table = [
            (Step::Tripwire, Namespaces, Some((Namespaces, Notify))),
            (Step::Namespaces, Landlock, Some((Landlock, Notify))),
            (Step::Namespaces, Namespaces, None),
            (Step::Processes, Landlock, Some((Landlock, Notify))),
            (Step::Workspace, Landlock, None),
            (Step::Landlock, Landlock, None),
        ];
        for (step, minimum, expected) in table {
            let failed = Failed { step, errno: Some(libc::EPERM), about: String::new() };
            let less = less(&best, minimum, &failed, &[]);
            let less = less.map(|less| (less.enforcement, less.attribution));
            assert_eq!(less, expected, "{step:?}, at least {minimum}");
        }
    }
}
