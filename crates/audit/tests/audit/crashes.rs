//! A writer that dies at any point leaves a log that the next one continues.

use std::thread;
use std::time::Duration;

use audit::{Entry, Filter};
use fixtures::eventually;
use proptest::prelude::*;

use crate::test_log::{TestLog, head, record};
use crate::writer::{FAILED, start};

#[test]
fn a_torn_line_is_cut_off_and_the_repair_is_reported() {
    let ground = TestLog::with(2);
    let whole = ground.log_bytes();
    for torn in ["{\"seq\":3,\"prev\":", "\0\0\0\0", "x\n"] {
        ground.set_log([&whole[..], torn.as_bytes()].concat());
        assert!(ground.faults()[0].1.starts_with("line 3 is "));
        let head = ground.head_bytes();

        let appended = ground.append(3);
        assert_eq!(appended.seq, 4);
        let bytes = torn.len();
        let notice = format!(
            "a writer died in the middle of a record: its {bytes} bytes were removed from the log"
        );
        assert_eq!(appended.notices, [notice]);
        ground.assert_clean(4);
        let entries = ground.log().query(&Filter::default()).unwrap().entries;
        assert_eq!(
            entries[2].entry,
            Entry::Repaired {
                time: record(3).time,
                bytes: bytes as u64,
                sha256: audit::Digest::of(torn.as_bytes())
            }
        );
        ground.set_head(head);
    }
}

#[test]
fn a_line_without_its_head_is_accepted() {
    let ground = TestLog::with(2);
    let head = ground.head_bytes();
    ground.append(3);
    ground.append(4);
    ground.set_head(head);
    ground.assert_clean(4);
    let appended = ground.append(5);
    assert_eq!((appended.seq, appended.notices.len()), (5, 0));
    ground.assert_clean(5);
}

#[test]
fn the_first_writer_may_die_at_any_point_too() {
    let first = TestLog::with(1);
    let line = first.log_bytes();
    let start = start_of_head();
    for (log, head) in [
        (None, None),
        (Some(&b""[..]), None),
        (Some(b""), Some(&b""[..])),
        (Some(b""), Some(&start)),
        (Some(&line[..10]), Some(&start)),
        (Some(&line), Some(&start)),
    ] {
        let ground = TestLog::new();
        if let Some(bytes) = log {
            ground.set_log(bytes);
        }
        if let Some(bytes) = head {
            ground.set_head(bytes);
        }
        let appended = ground.append(1);
        ground.assert_clean(appended.seq);
    }
}

/// The head of an empty log, as the first writer leaves it before its first line.
fn start_of_head() -> Vec<u8> {
    head(0, &"0".repeat(64), 0)
}

/// Where one writer dies.
#[derive(Debug, Clone)]
enum Crash {
    /// Not at all.
    Never,
    /// After it cut off what the one before had left.
    Cutting,
    /// Within its write to the log, or behind it: at this share of the bytes.
    Writing(f64),
}

fn crash() -> impl Strategy<Value = Crash> {
    prop_oneof![
        Just(Crash::Never),
        Just(Crash::Cutting),
        (0.0..=1.0).prop_map(Crash::Writing),
        Just(Crash::Writing(1.0)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_row_of_crashes_ends_in_a_clean_log(
        crashes in prop::collection::vec(crash(), 1..12)
    ) {
        let ground = TestLog::new();
        for (number, crash) in crashes.iter().enumerate() {
            let log = ground.log_bytes();
            let head = Some(ground.head_bytes()).filter(|head| !head.is_empty());
            let head = head.unwrap_or_else(start_of_head);
            ground.append(number as u64);
            let after = ground.log_bytes();
            let kept = log.iter().zip(&after).take_while(|(old, new)| old == new).count();
            // A cut goes back to the end of a line.
            let kept = if kept == log.len() {
                kept
            } else {
                log[..kept].iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1)
            };
            match crash {
                Crash::Never => {}
                Crash::Cutting => {
                    ground.set_log(&after[..kept]);
                    ground.set_head(&head);
                }
                Crash::Writing(share) => {
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss,
                        clippy::cast_precision_loss, reason = "a share of a small number")]
                    let written = ((after.len() - kept) as f64 * share) as usize;
                    ground.set_log(&after[..kept + written]);
                    ground.set_head(&head);
                }
            }
        }
        let appended = ground.append(99);
        ground.assert_clean(appended.seq);
        prop_assert!(ground.append(100).notices.is_empty());
    }
}

#[test]
fn killed_writers_leave_a_log_that_verifies() {
    let ground = TestLog::new();
    for round in 0..10 {
        let length = ground.log_bytes().len();
        let mut writers: Vec<_> = (0..3).map(|_| start(&ground, 20_000, "")).collect();
        eventually(|| (ground.log_bytes().len() > length).then_some(()));
        thread::sleep(Duration::from_millis(round));
        for writer in &mut writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        let appended = ground.append(round);
        ground.assert_clean(appended.seq);
    }
}

#[test]
fn a_line_that_finds_no_room_leaves_the_log_as_it_was() {
    let ground = TestLog::with(1);
    // A limit on the size of files stands for a full disk: a short write, then an error.
    let limits = "ulimit -f 8; trap '' XFSZ;";
    for _ in 0..2 {
        let status = start(&ground, 1_000, limits).wait().unwrap();
        assert_eq!(status.code(), Some(FAILED), "an append that cannot be written is an error");
    }
    let report = ground.verify();
    assert_eq!(report.faults, []);
    assert!(report.records > 5);
    let appended = ground.append(0);
    assert_eq!((appended.seq, appended.notices.len()), (report.records + 1, 0));
    ground.assert_clean(report.records + 1);
}
