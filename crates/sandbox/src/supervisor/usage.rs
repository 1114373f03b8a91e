//! What a run used, and how long it has been idle.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::sys;

/// What a run used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time in its own code, in seconds.
    pub user_seconds: f64,
    /// Processor time in the kernel, in seconds.
    pub system_seconds: f64,
    /// The most memory that one process had, in bytes.
    pub peak_memory: u64,
}

impl Usage {
    /// Waits for the child and takes what it and all its children used.
    pub(crate) fn of_child(pid: i32) -> Self {
        sys::wait_with_usage(pid).unwrap_or_default()
    }
}

/// When something last happened.
#[derive(Debug)]
pub(crate) struct Activity {
    last: Instant,
    written: u64,
}

impl Default for Activity {
    fn default() -> Self {
        Self { last: Instant::now(), written: 0 }
    }
}

impl Activity {
    /// Something happened.
    pub(crate) fn happened(&mut self) {
        self.last = Instant::now();
    }

    /// How long nothing has happened. Output counts: the bytes that the tree has written anywhere.
    pub(crate) fn idle_for(&mut self, child: i32) -> Duration {
        let written = written_by_tree(child);
        if written != self.written {
            self.written = written;
            self.happened();
        }
        self.last.elapsed()
    }
}

fn written_by_tree(root: i32) -> u64 {
    let mut total = 0;
    let mut todo = vec![root];
    while let Some(pid) = todo.pop() {
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let written = io.lines().find_map(|line| line.strip_prefix("wchar: "));
        total += written.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0);
        todo.extend(children(pid));
    }
    total
}

/// The children of all threads of a process.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("children")).unwrap_or_default()
    };
    let lists: Vec<_> = threads.flatten().map(of_thread).collect();
    lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}
