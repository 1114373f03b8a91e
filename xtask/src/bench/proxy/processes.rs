//! CPU time and memory of running programs, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use super::scene::PROGRAM;
use crate::failure::{Context, Failure};

/// CPU time of a process and of all that it started.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cpu {
    /// Of the program that fetches or serves.
    pub(super) client: Duration,
    /// Of all others: the sandbox.
    pub(super) rest: Duration,
}

/// Memory of one process, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) now: f64,
    pub(super) peak: f64,
}

/// The CPU time of the tree under this process so far, without processes that have ended.
pub(super) fn cpu(root: u32) -> Cpu {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: BTreeMap<u32, Process> =
        numbers.filter_map(|id| Some((id, Process::read(id)?))).collect();
    let mut cpu = Cpu::default();
    for (id, process) in &all {
        let mut above = *id;
        while above != root {
            match all.get(&above) {
                Some(process) => above = process.parent,
                None => break,
            }
        }
        if above == root && process.name == PROGRAM {
            cpu.client += process.time;
        } else if above == root {
            cpu.rest += process.time;
        }
    }
    cpu
}

/// The memory of one process.
pub(super) fn memory(id: u32) -> Result<Memory, Failure> {
    let path = format!("/proc/{id}/status");
    let text = fs::read_to_string(&path).context(|| format!("cannot read `{path}`"))?;
    let find = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        number
            .map(|kilobytes| kilobytes * 1024.0)
            .ok_or_else(|| Failure::new(format!("`{path}` has no `{name}`")))
    };
    Ok(Memory { now: find("VmRSS:")?, peak: find("VmHWM:")? })
}

/// The load of the last minute. A download through a proxy needs three programs at once and a direct
/// one needs two, so other programs on the machine affect them differently.
pub(super) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let Some(load) = load else { return "load unknown".into() };
    // This benchmark alone keeps up to three programs busy.
    let busy = load > f64::from(u32::try_from(processors).unwrap_or(u32::MAX)) + 2.0;
    let note = if busy { " (busy: the ratios to direct mean little)" } else { "" };
    format!("load {load} on {processors} processors{note}")
}

struct Process {
    name: String,
    parent: u32,
    time: Duration,
}

impl Process {
    fn read(id: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    /// The name is in parentheses, and may contain some itself.
    fn parse(stat: &str) -> Option<Self> {
        /// What the kernel counts in, on every machine that Rust runs on.
        const TICK: Duration = Duration::from_millis(10);
        let (before, after) = stat.rsplit_once(") ")?;
        let name = before.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = after.split(' ').collect();
        let ticks = |place: usize| fields.get(place)?.parse::<u32>().ok();
        let time = TICK * (ticks(11)? + ticks(12)?);
        Some(Self { name, parent: ticks(1)?, time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_behind_its_name() {
        let stat = "42 (a) b) S 7 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 1 1 1";
        let process = Process::parse(stat).unwrap();
        assert_eq!((process.name.as_str(), process.parent), ("a) b", 7));
        assert_eq!(process.time, Duration::from_secs(2));
    }

    #[test]
    fn this_process_uses_memory() {
        let held = memory(std::process::id()).unwrap();
        assert!(held.now > 0.0 && held.peak >= held.now);
    }
}
