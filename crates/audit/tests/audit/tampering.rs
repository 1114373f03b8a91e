//! Whatever is done to the files, the verification says so, and says where.

use std::fs;

use crate::test_log::{TestLog, head, record};

/// The only fault, as `line: problem`.
#[track_caller]
fn only_fault(ground: &TestLog) -> String {
    match &ground.faults()[..] {
        [(line, problem)] => format!("{line}: {problem}"),
        faults => panic!("{faults:#?}"),
    }
}

/// The same line, linked to a line that was never there.
fn with_other_link(line: &str) -> String {
    let at = line.find("\"prev\":\"").unwrap() + "\"prev\":\"".len();
    [&line[..at], &"f".repeat(64), &line[at + 64..]].concat()
}

#[test]
fn every_flipped_bit_of_the_log_is_reported_at_its_line() {
    let ground = TestLog::with(4);
    let bytes = ground.log_bytes();
    let mut line = 1;
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            ground.set_log(&flipped);
            let faults = ground.faults();
            assert!(faults.iter().any(|(found, _)| *found == line), "byte {at}: {faults:?}");
        }
        line += usize::from(bytes[at] == b'\n');
    }
    ground.set_log(&bytes);
    ground.assert_clean(4);
}

#[test]
fn every_flipped_bit_of_the_head_is_reported() {
    let ground = TestLog::with(2);
    let bytes = ground.head_bytes();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            ground.set_head(&flipped);
            assert!(only_fault(&ground).contains("the head is unreadable"));
        }
    }
}

#[test]
fn a_changed_line_is_named() {
    let ground = TestLog::with(5);
    let lines = ground.lines();
    for changed in 1..=5 {
        let mut lines = lines.clone();
        lines[changed - 1] = lines[changed - 1].replace("make", "fake");
        ground.set_log(lines.concat());
        let expected = format!("{changed}: line {changed} was changed: ");
        let fault = only_fault(&ground);
        assert!(fault.starts_with(&expected), "{fault}");
    }
}

#[test]
fn a_changed_link_or_number_is_named() {
    let ground = TestLog::with(5);
    let lines = ground.lines();
    for changed in 1..=5 {
        let line = &lines[changed - 1];
        let number = line.replace(&format!("\"seq\":{changed},"), "\"seq\":77,");
        for forged in [with_other_link(line), number] {
            let mut lines = lines.clone();
            lines[changed - 1] = forged;
            ground.set_log(lines.concat());
            let fault = only_fault(&ground);
            assert!(
                fault.starts_with(&format!("{changed}: line {changed} was changed")),
                "{fault}"
            );
        }
    }
}

#[test]
fn every_removed_line_is_missed() {
    let ground = TestLog::with(5);
    let lines = ground.lines();
    let without = |gone: std::ops::Range<usize>| {
        let mut lines = lines.clone();
        lines.drain(gone);
        ground.set_log(lines.concat());
        only_fault(&ground)
    };
    assert_eq!(without(0..1), "1: record 1 is missing before line 1");
    assert_eq!(without(1..2), "2: record 2 is missing between line 1 and line 2");
    assert_eq!(without(3..4), "4: record 4 is missing between line 3 and line 4");
    assert_eq!(without(1..4), "2: records 2 to 4 are missing between line 1 and line 2");
    assert_eq!(without(4..5), "4: the log ends at line 4 (record 4) but the head says record 5");
    assert_eq!(without(1..5), "1: the log ends at line 1 (record 1) but the head says record 5");
    assert_eq!(without(0..5), "0: the log is empty but the head says record 5");
}

#[test]
fn every_cut_is_reported_before_and_after_the_next_append() {
    let ground = TestLog::with(3);
    let (log, old_head) = (ground.log_bytes(), ground.head_bytes());
    for length in 0..log.len() {
        ground.set_log(&log[..length]);
        ground.set_head(&old_head);
        assert_ne!(ground.faults(), [], "{length} bytes left");

        let appended = ground.append(4);
        assert_eq!(appended.seq, 4);
        assert!(appended.notices[0].starts_with("the log was cut"), "{appended:?}");
        if length == log.len() - 1 {
            // Only the last newline was gone, and the next line brought it back.
            assert!(ground.log_bytes().starts_with(&log));
            ground.assert_clean(4);
        } else {
            assert_ne!(ground.faults(), [], "{length} bytes left, then one more record");
        }
    }
}

#[test]
fn a_removed_log_is_reported() {
    let ground = TestLog::with(3);
    fs::remove_file(ground.log().path()).unwrap();
    assert_eq!(only_fault(&ground), "0: the log is empty but the head says record 3");
    assert_eq!(ground.append(4).seq, 4);
    assert_eq!(only_fault(&ground), "1: records 1 to 3 are missing before line 1");
}

#[test]
fn repeated_moved_and_inserted_lines_are_reported() {
    let ground = TestLog::with(6);
    let lines = ground.lines();
    let faults_of = |order: &[usize]| {
        ground.set_log(order.iter().map(|line| &*lines[line - 1]).collect::<String>());
        ground.faults()
    };
    assert_eq!(
        faults_of(&[1, 2, 2, 3, 4, 5, 6]),
        [(3, "line 3 repeats line 2 (record 2)".to_owned())]
    );
    assert_eq!(
        faults_of(&[1, 2, 3, 4, 5, 6, 2]),
        [(
            7,
            "line 7 holds record 2 but comes after record 6: it was moved, repeated or inserted"
                .to_owned()
        )]
    );
    for first in 1..6 {
        for second in first + 1..=6 {
            let mut order = [1, 2, 3, 4, 5, 6];
            order.swap(first - 1, second - 1);
            let faults = faults_of(&order);
            assert!(faults.iter().any(|(line, _)| *line == first), "{order:?}: {faults:?}");
        }
    }

    let foreign = TestLog::with(4).lines()[3].replace("make", "fake");
    ground.set_log([&lines[..3], &[foreign], &lines[3..]].concat().concat());
    assert!(only_fault(&ground).starts_with("5: line 5 holds record 4 and so does line 4"));
}

#[test]
fn an_inserted_line_that_does_not_link_is_named() {
    let ground = TestLog::with(4);
    let lines = ground.lines();
    for inserted in [&*with_other_link(&lines[2]), "garbage\n", "\n", "{}\n", "\0\0\0\n"] {
        ground.set_log([&lines[0], &lines[1], inserted, &lines[2], &lines[3]].concat());
        let fault = only_fault(&ground);
        assert!(fault.starts_with("3: line 3 "), "{inserted}: {fault}");
    }
}

#[test]
fn each_of_several_changes_is_named() {
    let ground = TestLog::with(9);
    let mut lines = ground.lines();
    // The line that would have vouched for line 3 is gone, so it stays a suspect.
    lines[1] = lines[1].replace("make", "fake");
    lines[3] = "garbage\n".into();
    lines[5] = with_other_link(&lines[5]);
    lines.remove(7);
    ground.set_log(lines.concat());
    assert_eq!(
        ground.faults(),
        [
            (
                2,
                "line 2 or line 3 was changed: line 3 has a different hash for the line before it"
                    .to_owned()
            ),
            (4, "line 4 is not a record".to_owned()),
            (6, "line 6 was changed: what follows has a different hash for it".to_owned()),
            (8, "record 8 is missing between line 7 and line 8".to_owned()),
        ]
    );
}

#[test]
fn an_endless_line_is_a_fault_and_not_a_memory_hog() {
    let ground = TestLog::with(2);
    let lines = ground.lines();
    ground.set_log([&lines[0], &"x".repeat(3 << 20), "\n", &lines[1]].concat());
    assert_eq!(only_fault(&ground), "2: line 2 is longer than 1048576 bytes");
}

#[test]
fn a_flood_of_faults_is_counted_rather_than_listed() {
    let ground = TestLog::with(1);
    ground.set_log([&ground.lines()[0], &"\n".repeat(5000)[..]].concat());
    let faults = ground.faults();
    assert_eq!(faults.len(), 1001);
    assert_eq!(faults[1000].1, "4000 more faults are not listed");
}

#[test]
fn a_missing_head_is_reported_and_remembered() {
    for garbage in [None, Some(""), Some("garbage"), Some(&*"0".repeat(5000))] {
        let ground = TestLog::with(3);
        match garbage {
            None => fs::remove_file(ground.head_path()).unwrap(),
            Some(bytes) => ground.set_head(bytes),
        }
        let fault = only_fault(&ground);
        assert!(fault.contains("nothing shows whether records after line 3 were cut"), "{fault}");

        let appended = ground.append(4);
        assert_eq!(appended.seq, 5);
        assert!(appended.notices[0].contains("records may have been cut off"), "{appended:?}");
        let remembered = "4: the head was lost before record 4: older records may have been cut";
        assert_eq!(only_fault(&ground), remembered);
        assert!(ground.append(6).notices.is_empty());
        assert_eq!(only_fault(&ground), remembered);
    }
}

#[test]
fn a_cut_that_removes_the_head_too_does_not_go_unseen() {
    let ground = TestLog::with(5);
    ground.set_log(ground.lines()[..3].concat());
    fs::remove_file(ground.head_path()).unwrap();
    ground.append(6);
    assert!(only_fault(&ground).contains("the head was lost before record 4"));
}

#[test]
fn lines_behind_the_head_that_do_not_chain_stay_and_are_reported() {
    for foreign in [
        "{\"seq\":3,\"prev\":\"\"}\n",
        "{\"valid\":\"json\"}\n",
        "garbage\nmore garbage\n",
        "{\"valid\":\"json\"}\ntorn",
    ] {
        let ground = TestLog::with(2);
        ground.set_log([ground.log_bytes(), foreign.into()].concat());
        assert_ne!(ground.faults(), []);
        let appended = ground.append(3);
        assert_eq!(appended.seq, 3);
        assert!(appended.notices[0].contains("do not continue the chain"), "{appended:?}");
        let text = String::from_utf8(ground.log_bytes()).unwrap();
        assert!(text.contains(foreign), "{text}");
        let faults = ground.faults();
        assert!(faults.iter().all(|(line, _)| (3..5).contains(line)), "{faults:?}");
        assert_ne!(faults, []);
        assert!(ground.append(4).notices.is_empty());
        assert_eq!(ground.faults(), faults);
    }
}

#[test]
fn a_forged_head_does_not_fit_the_log() {
    let ground = TestLog::with(3);
    let longer = TestLog::with(4);
    let mut other = TestLog::with(2);
    other.log().append(&record(99)).unwrap();
    ground.set_head(other.head_bytes());
    assert_eq!(
        only_fault(&ground),
        "3: line 3 was changed: what follows has a different hash for it"
    );
    ground.set_head(longer.head_bytes());
    assert!(only_fault(&ground).ends_with("(record 3) but the head says record 4"));
    other = TestLog::new();
    other.append(99);
    ground.set_head(other.head_bytes());
    assert_eq!(only_fault(&ground), "3: the head says record 1, which is not in the log");

    // The right record with the wrong length, and a check that fits.
    let hash = ground.verify().head.unwrap();
    ground.set_head(head(3, &hash, 5));
    assert!(only_fault(&ground).contains("the head says 5 bytes, but record 3 ends at"));
}

#[test]
fn a_log_blown_up_behind_its_head_is_not_read_through_and_shows() {
    let ground = TestLog::with(2);
    let log = fs::OpenOptions::new().write(true).open(ground.log().path()).unwrap();
    // A sparse file: reading it would take minutes, writing behind it takes nothing.
    log.set_len(64 << 30).unwrap();
    let appended = ground.append(3);
    assert_eq!(appended.seq, 3);
    assert!(appended.notices[0].contains("after its head (record 2)"), "{appended:?}");
    // The next one finds its head where it should be.
    assert_eq!(ground.append(4).notices, [""; 0]);
}

#[test]
fn more_behind_the_head_than_a_crash_leaves_is_reported() {
    let ground = TestLog::with(2);
    ground.set_log([ground.log_bytes(), vec![0; 5 << 20]].concat());
    let appended = ground.append(3);
    assert!(appended.notices[0].contains("more than a crash leaves"), "{appended:?}");
    let fault = only_fault(&ground);
    assert!(fault.starts_with("3: line 3 is longer than"), "{fault}");
}
