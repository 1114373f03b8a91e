//! Records get a place in the chain, also when many processes write at once.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::{fs, thread};

use audit::{AppendError, Entry, Filter, Log, OpenError};
use model::{Access, Action, PathRef};

use crate::test_log::{TestLog, record};

#[test]
fn records_are_numbered_chained_and_verified() {
    let ground = TestLog::with(5);
    ground.assert_clean(5);
    let found = ground.log().query(&Filter::default()).unwrap();
    let numbers: Vec<u64> = found.entries.iter().map(|line| line.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert_eq!(found.entries[2].entry, Entry::Decision(record(3)));
    assert_eq!(found.entries[0].prev.to_string(), "0".repeat(64));
    let third = ground.lines()[2].trim_end().to_owned();
    assert_eq!(found.entries[3].prev, audit::Digest::of(third.as_bytes()));
}

#[test]
fn a_log_that_nobody_wrote_is_empty() {
    let ground = TestLog::new();
    let report = ground.verify();
    assert_eq!((report.records, report.head, report.faults.len()), (0, None, 0));
    assert_eq!(ground.log().query(&Filter::default()).unwrap(), audit::Found::default());
    assert!(!ground.directory().exists());
}

#[test]
fn only_the_owner_can_read_the_files() {
    let ground = TestLog::with(1);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(ground.directory()), 0o700);
    assert_eq!(mode(ground.log().path()), 0o600);
    assert_eq!(mode(ground.head_path()), 0o600);
}

#[test]
fn many_writers_at_once_lose_nothing() {
    const WRITERS: u64 = 16;
    const RECORDS: u64 = 50;
    let ground = TestLog::new();
    let directory = ground.directory();
    let append = |number| {
        let log = Log::at(&directory);
        loop {
            match log.append(&record(number)) {
                Ok(appended) => break appended,
                // On a loaded machine a writer may wait in vain; it must only never lose.
                Err(AppendError::Open(OpenError::Busy { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    let mut given = BTreeSet::new();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let append = &append;
                scope.spawn(move || -> Vec<_> {
                    (0..RECORDS).map(|number| append(writer * RECORDS + number)).collect()
                })
            })
            .collect();
        for writer in writers {
            for appended in writer.join().unwrap() {
                assert!(appended.notices.is_empty(), "{appended:?}");
                assert!(given.insert(appended.seq));
            }
        }
    });
    assert_eq!(given, (1..=WRITERS * RECORDS).collect());
    ground.assert_clean(WRITERS * RECORDS);
}

#[test]
fn a_lock_that_nobody_lets_go_is_an_error_not_a_hang() {
    let ground = TestLog::with(1);
    let directory = fs::File::open(ground.directory()).unwrap();
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let error = ground.log().append(&record(2)).unwrap_err();
    assert!(error.to_string().contains("is busy"), "{error}");
    assert!(ground.log().verify(None).unwrap_err().to_string().contains("is busy"));
    drop(directory);
    ground.append(2);
    ground.assert_clean(2);
}

#[test]
fn nothing_unredacted_is_written() {
    let ground = TestLog::new();
    let mut record = record(1);
    let secret = format!("ghp_{}", "a1b2c3d4e5".repeat(4));
    record.actions = vec![
        Action::Run { command: format!("git push https://x:{secret}@github.com/a/b"), field: None },
        Action::Connect { target: format!("https://example.org/?token={secret}") },
    ];
    record.notes.push(format!("the header was Authorization: Bearer {secret}"));
    record.rules.push(secret.clone());
    ground.log().append(&record).unwrap();
    let text = String::from_utf8(ground.log_bytes()).unwrap();
    assert!(!text.contains("a1b2c3"), "{text}");
    assert_eq!(text.matches("[redacted]").count(), 4);
}

#[test]
fn a_path_that_is_not_utf_8_is_still_recorded() {
    let ground = TestLog::new();
    let mut record = record(1);
    let at = PathBuf::from(std::ffi::OsString::from_vec(b"/work/\xff\n.txt".to_vec()));
    let path = PathRef { given: "x".into(), at };
    record.actions = vec![Action::Path { access: Access::Write, path, by: None }];
    ground.log().append(&record).unwrap();
    ground.assert_clean(1);
}

#[test]
fn a_giant_record_becomes_a_line_of_bounded_length() {
    let ground = TestLog::new();
    let mut record = record(1);
    let nasty = "\u{1}".repeat(10_000);
    record.actions = vec![Action::Run { command: nasty.clone(), field: None }; 3000];
    record.rules = vec![nasty.clone(); 3000];
    record.notes = vec![nasty; 3000];
    ground.log().append(&record).unwrap();
    assert!(ground.log_bytes().len() < 1 << 20);
    ground.assert_clean(1);
    let text = String::from_utf8(ground.log_bytes()).unwrap();
    assert!(text.contains("2744 more actions were cut"));
    assert!(text.contains("2744 more rules were cut"));
}

#[test]
fn the_noted_head_must_still_be_in_the_log() {
    let ground = TestLog::with(2);
    let noted = ground.verify().head.unwrap();
    ground.append(3);
    let check = |head: &str| ground.log().verify(Some(head)).unwrap().faults;
    assert_eq!(check(&noted), []);
    assert_eq!(check(&noted.to_uppercase()), []);
    for other in ["f".repeat(64), "nonsense".into(), String::new()] {
        let faults = check(&other);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].problem.contains(&format!("hash `{other}`")), "{faults:?}");
    }

    // A whole new chain with its own head is consistent in itself.
    let forged = TestLog::with(3);
    ground.set_log(forged.lines().concat().replace("make", "fake"));
    assert_ne!(ground.faults(), []);
    let other = TestLog::new();
    other.append(9);
    assert_eq!(other.log().verify(Some(&noted)).unwrap().faults.len(), 1);
}
