//! Finding entries again.

use audit::{Filter, Found};
use model::{Action, Verdict};

use crate::test_log::{TestLog, record};

/// Six records: odd ones denied, the last one by another agent with another tool.
fn ground() -> TestLog {
    let ground = TestLog::new();
    for number in 1..=6 {
        let mut record = record(number);
        if number % 2 == 1 {
            record.verdict = Verdict::Deny;
        }
        if number == 6 {
            record.agent = "codex".into();
            record.tool = "apply_patch".into();
            record.time = "2026-01-01T00:00:05.250Z".into();
            record.actions = vec![Action::Connect { target: r#"say "hi""#.into() }];
        }
        ground.log().append(&record).unwrap();
    }
    ground
}

fn found(ground: &TestLog, filter: &Filter) -> Vec<u64> {
    let Found { entries, unreadable } = ground.log().query(filter).unwrap();
    assert!(unreadable.is_empty());
    entries.iter().map(|line| line.seq).collect()
}

#[test]
fn each_part_of_a_filter_narrows() {
    let ground = ground();
    let all = Filter::default();
    for (filter, expected) in [
        (all.clone(), vec![1, 2, 3, 4, 5, 6]),
        (Filter { verdict: Some(Verdict::Deny), ..all.clone() }, vec![1, 3, 5]),
        (Filter { agent: Some("codex".into()), ..all.clone() }, vec![6]),
        (Filter { session: Some("session-2".into()), ..all.clone() }, vec![2]),
        (
            Filter { except_sessions: ["session-2".into()].into(), ..all.clone() },
            vec![1, 3, 4, 5, 6],
        ),
        (Filter { tool: Some("Bash".into()), ..all.clone() }, vec![1, 2, 3, 4, 5]),
        (Filter { text: Some("step-4".into()), ..all.clone() }, vec![4]),
        (Filter { text: Some(r#"say "hi""#.into()), ..all.clone() }, vec![6]),
        (Filter { text: Some("absent".into()), ..all.clone() }, vec![]),
        (Filter { since: Some("2026-01-01T00:00:05Z".into()), ..all.clone() }, vec![5, 6]),
        (Filter { since: Some("2026-01-01T00:00:05.1Z".into()), ..all.clone() }, vec![6]),
        (Filter { since: Some("2026-01".into()), ..all.clone() }, vec![1, 2, 3, 4, 5, 6]),
        (Filter { since: Some("2027".into()), ..all.clone() }, vec![]),
        (Filter { last: Some(2), ..all.clone() }, vec![5, 6]),
        (Filter { last: Some(0), ..all.clone() }, vec![]),
        (Filter { last: Some(2), verdict: Some(Verdict::Deny), ..all.clone() }, vec![3, 5]),
    ] {
        assert_eq!(found(&ground, &filter), expected, "{filter:?}");
    }
}

#[test]
fn lines_that_cannot_be_read_are_named() {
    let ground = TestLog::with(3);
    let lines = ground.lines();
    ground.set_log([&lines[0], "garbage\n", &lines[1], "{}\n", &lines[2], "{\"se"].concat());
    let found = ground.log().query(&Filter { last: Some(1), ..Filter::default() }).unwrap();
    assert_eq!(found.unreadable, [2, 4, 6]);
    assert_eq!(found.entries[0].seq, 3);
}

#[test]
fn a_repair_is_an_entry_without_an_agent() {
    let ground = TestLog::with(1);
    ground.set_log([&ground.log_bytes()[..], b"{\"seq\":2,"].concat());
    ground.append(2);
    assert_eq!(found(&ground, &Filter::default()), [1, 2, 3]);
    let of_agent = Filter { agent: Some("claude".into()), ..Filter::default() };
    assert_eq!(found(&ground, &of_agent), [1, 3]);
    let entries = ground.log().query(&Filter::default()).unwrap().entries;
    let text = serde_json::to_string(&entries[1]).unwrap();
    assert!(text.starts_with("{\"seq\":2,") && text.contains("\"kind\":\"repaired\""), "{text}");
}
