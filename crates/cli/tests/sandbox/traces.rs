//! What a run could leave behind: processes, mounts, control groups, files.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fixtures::TestEnv;

/// How long the last of a run may take to go on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// What there was before a run.
pub(crate) struct Traces<'a> {
    env: &'a TestEnv,
    mounts: BTreeSet<String>,
    files: BTreeSet<PathBuf>,
    /// Of others, whose numbers may be given again.
    scratch: BTreeSet<String>,
}

impl<'a> Traces<'a> {
    pub(crate) fn before(env: &'a TestEnv) -> Self {
        let scratch = all_scratch().collect();
        Self { env, mounts: mounts(env), files: files(env), scratch }
    }

    /// Waits until no process of the test environment is left, and fails if one stays.
    pub(crate) fn no_process(&self, what: &str) {
        wait_for_none(what, || processes(self.env));
    }

    /// Nothing of the supervisors with these numbers is left, whatever files there are.
    pub(crate) fn nothing_but_files(&self, what: &str, supervisors: &[u32]) {
        self.no_process(what);
        wait_for_none(what, || groups(supervisors));
        wait_for_none(what, || self.scratch(supervisors));
        assert_eq!(mounts(self.env), self.mounts, "{what}: mounts");
    }

    /// Nothing of the supervisors with these numbers is left, and no file but these of the project.
    pub(crate) fn nothing(&self, what: &str, supervisors: &[u32], made: &[&str]) {
        self.nothing_but_files(what, supervisors);
        let made: Vec<_> = made.iter().map(|name| self.env.project().join(name)).collect();
        let new: Vec<_> = files(self.env)
            .difference(&self.files)
            .filter(|new| !made.contains(new))
            .cloned()
            .collect();
        assert!(new.is_empty(), "{what}: {new:?}");
    }

    /// Entries of the host's scratch directories that are named after these supervisors.
    fn scratch(&self, supervisors: &[u32]) -> Vec<String> {
        let named = |name: &String| {
            supervisors.iter().any(|pid| name.contains(&format!("ringwall-{pid}-")))
        };
        all_scratch().filter(|name| named(name) && !self.scratch.contains(name)).collect()
    }
}

fn wait_for_none(what: &str, mut left: impl FnMut() -> Vec<String>) {
    let since = Instant::now();
    loop {
        let now = left();
        if now.is_empty() {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{what}: left behind: {now:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes that were started in the test environment. Every one of them has its path in its command line,
/// its environment, its program or its working directory.
pub(crate) fn processes(env: &TestEnv) -> Vec<String> {
    let place = env.path("");
    let place = place.as_os_str().as_bytes();
    let holds = |bytes: &[u8]| bytes.windows(place.len()).any(|part| part == place);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let dir = entry.path();
        if !entry.file_name().as_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let read = |name: &str| fs::read(dir.join(name)).unwrap_or_default();
        let link = |name: &str| fs::read_link(dir.join(name)).unwrap_or_default();
        let command = read("cmdline");
        let texts = [read("environ"), command.clone()];
        let links = ["exe", "cwd"].map(link);
        let ours = texts.iter().any(|text| holds(text))
            || links.iter().any(|link| holds(link.as_os_str().as_bytes()));
        if ours {
            let text = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push(format!("{} {text}", dir.display()));
        }
    }
    found
}

/// Control groups of these supervisors.
pub(crate) fn groups(supervisors: &[u32]) -> Vec<String> {
    let names: Vec<_> = supervisors.iter().map(|pid| format!("ringwall-{pid}")).collect();
    let mut found = Vec::new();
    let mut todo = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if names.iter().any(|name| entry.file_name() == name.as_str()) {
                found.push(entry.path().display().to_string());
            }
            todo.push(entry.path());
        }
    }
    found
}

/// Entries of the host's scratch directories that are named after a supervisor.
fn all_scratch() -> impl Iterator<Item = String> {
    let dirs =
        ["/tmp", "/var/tmp", "/dev/shm"].into_iter().filter_map(|dir| fs::read_dir(dir).ok());
    let names = dirs.flatten().flatten().map(|entry| entry.path().display().to_string());
    names.filter(|name| name.contains("ringwall-"))
}

/// Mounts that have to do with the test environment or with a tripwire, without their numbers.
fn mounts(env: &TestEnv) -> BTreeSet<String> {
    let place = env.path("").display().to_string();
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let ours = |line: &&str| line.contains(&place) || line.contains("fuse ringwall");
    all.lines().filter(ours).map(str::to_owned).collect()
}

/// Every file of the test environment, without what Ringwall keeps for itself.
fn files(env: &TestEnv) -> BTreeSet<PathBuf> {
    let state = env.home().join(".local/state/ringwall");
    let mut found = BTreeSet::new();
    let mut todo = vec![env.path("")];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path == state || is_above(&path, &state) || path == env.path("events.jsonl") {
                todo.extend((path != state && path.is_dir()).then_some(path));
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                todo.push(path.clone());
            }
            found.insert(path);
        }
    }
    found
}

fn is_above(path: &Path, below: &Path) -> bool {
    below.starts_with(path)
}
