//! A log of its own for every test, and hands to reach into its files.

use std::fs;
use std::path::PathBuf;

use audit::{Appended, Log, Report};
use model::{Action, Record, Verdict};
use tempfile::TempDir;

/// A fresh directory with a log that is still to be made.
pub(crate) struct TestLog {
    directory: TempDir,
}

impl TestLog {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    /// A log with so many records.
    pub(crate) fn with(records: u64) -> Self {
        let ground = Self::new();
        for number in 1..=records {
            assert_eq!(ground.append(number), Appended { seq: number, notices: vec![] });
        }
        ground
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.directory.path().join("state/audit")
    }

    pub(crate) fn log(&self) -> Log {
        Log::at(self.directory())
    }

    pub(crate) fn append(&self, number: u64) -> Appended {
        self.log().append(&record(number)).unwrap()
    }

    pub(crate) fn verify(&self) -> Report {
        self.log().verify(None).unwrap()
    }

    /// The line and the text of every fault.
    pub(crate) fn faults(&self) -> Vec<(usize, String)> {
        self.verify().faults.into_iter().map(|fault| (fault.line, fault.problem)).collect()
    }

    #[track_caller]
    pub(crate) fn assert_clean(&self, records: u64) {
        let report = self.verify();
        assert_eq!(report.faults, []);
        assert_eq!(report.records, records);
    }

    pub(crate) fn log_bytes(&self) -> Vec<u8> {
        fs::read(self.log().path()).unwrap_or_default()
    }

    pub(crate) fn head_bytes(&self) -> Vec<u8> {
        fs::read(self.head_path()).unwrap_or_default()
    }

    pub(crate) fn head_path(&self) -> PathBuf {
        self.directory().join("head")
    }

    /// Puts other bytes in place of the log.
    pub(crate) fn set_log(&self, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.directory()).unwrap();
        fs::write(self.log().path(), bytes).unwrap();
    }

    /// Puts other bytes in place of the head.
    pub(crate) fn set_head(&self, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.directory()).unwrap();
        fs::write(self.head_path(), bytes).unwrap();
    }

    /// The lines of the log, each with its newline.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.log_bytes()).unwrap();
        text.split_inclusive('\n').map(Into::into).collect()
    }
}

/// A decision that differs from the others by its number.
pub(crate) fn record(number: u64) -> Record {
    Record {
        time: format!("2026-01-01T00:00:{:02}Z", number % 60),
        agent: "claude".into(),
        session: format!("session-{number}"),
        workspace: "/work".into(),
        tool: "Bash".into(),
        actions: vec![Action::Run { command: format!("make step-{number}"), field: None }],
        verdict: Verdict::Allow,
        rules: vec!["workspace (built in)".into()],
        config: "abcdef".into(),
        micros: 120,
        notes: vec![],
    }
}

/// The bytes of a head that says this.
pub(crate) fn head(seq: u64, hash: &str, length: u64) -> Vec<u8> {
    let text = format!("{seq:020} {hash} {length:020}");
    let check = audit::Digest::of(text.as_bytes()).to_string();
    format!("{text} {}\n", &check[..16]).into_bytes()
}
