//! [`Neighbour`]: a process on the host that belongs to the same user. What it is and does stands
//! in `neighbour.py`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use fixtures::{TestEnv, eventually};

/// The neighbour, and what it told.
pub(super) struct Neighbour {
    process: Child,
    lines: Arc<Mutex<Vec<String>>>,
    asked: u32,
}

impl Neighbour {
    /// Starts it, and takes down what it tells about itself.
    pub(super) fn start(
        env: &TestEnv,
        python: &Path,
        name: &str,
        secret: &str,
        facts: &mut BTreeMap<String, String>,
    ) -> Self {
        let text = concat!(include_str!("calls.py"), include_str!("neighbour.py"));
        let mut process = env
            .command(python)
            .args(["-c", text])
            .arg(env.path("run"))
            .args([name, secret])
            .env("NEIGHBOUR_TOKEN", secret)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        for line in told.by_ref().take_while(|line| line != "ready") {
            let (name, value) = line.split_once('=').unwrap();
            facts.insert(name.into(), value.into());
        }
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        std::thread::spawn(move || told.for_each(|line| kept.lock().unwrap().push(line)));
        Self { process, lines, asked: 0 }
    }

    /// Forgets what was told so far.
    pub(super) fn forget(&self) {
        self.lines.lock().unwrap().clear();
    }

    /// Whether something was heard that holds this text.
    pub(super) fn heard(&self, text: &str) -> bool {
        let lines = self.lines.lock().unwrap();
        lines.iter().any(|line| line.starts_with("heard") && line.contains(text))
    }

    /// Waits until the neighbour has told everything that had reached it.
    pub(super) fn catch_up(&mut self) {
        // Once to accept a connection, once to read from it, once more for what ends it.
        for _ in 0..3 {
            self.asked += 1;
            let word = format!("ping {}", self.asked);
            writeln!(self.process.stdin.as_mut().unwrap(), "{word}").unwrap();
            eventually(|| self.lines.lock().unwrap().contains(&word).then_some(()));
        }
    }
}

impl Drop for Neighbour {
    /// It clears up when nobody asks any more.
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
