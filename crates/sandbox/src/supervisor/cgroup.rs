//! Control groups: limits for the whole process tree, where this user can create one.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::Limits;

use crate::sys;

/// A control group of one run. It is removed when the run has ended.
#[derive(Debug)]
pub(crate) struct Cgroup {
    dirs: Vec<PathBuf>,
    describe: &'static str,
    janitor: Option<Janitor>,
}

/// A process that removes the group if the supervisor is killed. It waits until the other end of a
/// pipe is closed, which happens however the supervisor ends.
#[derive(Debug)]
struct Janitor {
    pid: i32,
    _pipe: OwnedFd,
}

/// A limit: the controller, and the file and value that set it.
struct Setting {
    controller: &'static str,
    unified: &'static str,
    legacy: &'static str,
    value: u64,
}

impl Cgroup {
    /// A group with the requested limits. `None` where there are none, or no group can be created;
    /// then the limits of each process apply.
    pub(crate) fn create(limits: &Limits) -> Option<Self> {
        if !limits.asked {
            return None;
        }
        let mut settings = Vec::new();
        if let Some(memory) = limits.memory {
            let files = ("memory.max", "memory.limit_in_bytes");
            let (unified, legacy) = files;
            settings.push(Setting { controller: "memory", unified, legacy, value: memory.0 });
            if let Some(processes) = limits.processes {
                let value = u64::from(processes);
                settings.push(Setting {
                    controller: "pids",
                    unified: "pids.max",
                    legacy: "pids.max",
                    value,
                });
            }
        } else if rustix::process::geteuid().is_root()
            && let Some(processes) = limits.processes
        {
            // The kernel does not count root's processes against its limit.
            let value = u64::from(processes);
            settings.push(Setting {
                controller: "pids",
                unified: "pids.max",
                legacy: "pids.max",
                value,
            });
        }
        if settings.is_empty() {
            return None;
        }
        Self::unified(&settings).or_else(|| Self::legacy(&settings))
    }

    /// One tree for all controllers.
    fn unified(settings: &[Setting]) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        if !is_control_group(root) {
            return None;
        }
        let dir = root.join(own_group("")?.trim_start_matches('/')).join(name());
        let settings = settings.iter().map(|setting| (dir.clone(), setting.unified, setting.value));
        Self::with("cgroup", vec![dir.clone()], settings)
    }

    /// A tree for each controller.
    fn legacy(settings: &[Setting]) -> Option<Self> {
        let mut dirs = Vec::new();
        for setting in settings {
            let own = own_group(setting.controller)?;
            let root = Path::new("/sys/fs/cgroup").join(setting.controller);
            if !is_control_group(&root) {
                return None;
            }
            dirs.push(root.join(own.trim_start_matches('/')).join(name()));
        }
        let settings = dirs.clone().into_iter().zip(settings);
        let settings = settings.map(|(dir, setting)| (dir, setting.legacy, setting.value));
        Self::with("cgroup v1", dirs, settings)
    }

    /// Creates directories and sets values in them.
    fn with(
        describe: &'static str,
        dirs: Vec<PathBuf>,
        settings: impl IntoIterator<Item = (PathBuf, &'static str, u64)>,
    ) -> Option<Self> {
        // It must run before there is anything to remove.
        let janitor = Janitor::start(&dirs).ok();
        // What was created is removed with the group.
        let mut group = Self { dirs: Vec::new(), describe, janitor };
        for dir in dirs {
            fs::create_dir(&dir).ok()?;
            group.dirs.push(dir);
        }
        settings.into_iter().all(|(dir, file, value)| set(&dir, file, value)).then_some(group)
    }

    /// Which kind of limit this is.
    pub(crate) fn describe(&self) -> &'static str {
        self.describe
    }

    /// Moves the calling process in. What it starts is in there too.
    pub(crate) fn enter(dirs: &[PathBuf]) -> io::Result<()> {
        dirs.iter().try_for_each(|dir| {
            // Moving a whole process waits for every processor of the machine. Moving this thread
            // does not, and every process of the run is started by it.
            let thread = dir.join("tasks");
            fs::write(if thread.exists() { thread } else { dir.join("cgroup.procs") }, "0")
        })
    }

    pub(crate) fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    /// The limits that the kernel had to enforce.
    pub(crate) fn reached(&self) -> Vec<&'static str> {
        let counted = |file: &str, what: &str| {
            self.dirs.iter().any(|dir| {
                let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
                let mut counts = text.lines().filter_map(|line| line.split_once(' '));
                counts.any(|(name, count)| name == what && count.trim() != "0")
            })
        };
        let memory =
            counted("memory.events", "oom_kill") || counted("memory.oom_control", "oom_kill");
        let processes = counted("pids.events", "max");
        let reached = [("memory", memory), ("processes", processes)];
        reached.into_iter().filter(|(_, reached)| *reached).map(|(name, _)| name).collect()
    }

    /// The process that removes the group.
    pub(crate) fn janitor(&self) -> Option<i32> {
        self.janitor.as_ref().map(|janitor| janitor.pid)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.dirs, Duration::from_secs(1));
        if let Some(janitor) = self.janitor.take() {
            sys::kill_child(janitor.pid);
        }
    }
}

impl Janitor {
    fn start(dirs: &[PathBuf]) -> io::Result<Self> {
        let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        if let Some(pid) = sys::fork()? {
            // Signals to the supervisor's process group must not reach it.
            let child = rustix::process::Pid::from_raw(pid);
            let _ = rustix::process::setpgid(child, child);
            return Ok(Self { pid, _pipe: theirs });
        }
        sys::close_all_but(&[ours.as_fd()]);
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(&ours, &mut [0u8; 1]));
        remove(dirs, Duration::from_secs(10));
        sys::exit_now(0)
    }
}

/// Removes groups. The last processes in them may need a moment to be gone.
fn remove(dirs: &[PathBuf], patience: Duration) {
    let since = Instant::now();
    for dir in dirs {
        while fs::remove_dir(dir).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
            && since.elapsed() < patience
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Sets a value in a file that is there already.
fn set(dir: &Path, file: &str, value: u64) -> bool {
    let file = fs::OpenOptions::new().write(true).open(dir.join(file));
    file.and_then(|mut file| io::Write::write_all(&mut file, value.to_string().as_bytes())).is_ok()
}

/// Whether a directory is a control group, and not just where they are mounted.
fn is_control_group(dir: &Path) -> bool {
    dir.join("cgroup.procs").exists()
}

fn name() -> String {
    format!("ringwall-{}", std::process::id())
}

/// The group of this process in the tree of a controller; of the unified tree for none.
fn own_group(controller: &str) -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let named = controllers.split(',').any(|name| name == controller);
        named.then(|| path.to_owned())
    })
}
