//! Run, stopped, granted as the message says, run again: the way that users go.

use crate::yard::{Yard, everybody};

#[test]
fn a_read_outside_stops_the_run_and_a_grant_lets_it_pass() {
    for who in everybody() {
        let yard = Yard::new(who);
        let script = format!(
            "echo made > made.txt; cat {}; echo next",
            yard.home().join(".ssh/id_ed25519").display()
        );
        let ran = yard.run(&[], &script);
        assert_eq!(ran.code, Some(77), "{ran:?}");
        assert_eq!(yard.read("project/made.txt"), "made\n");
        assert!(!ran.stdout.contains("next") && !ran.stdout.contains("SECRET"), "{ran:?}");
        let path = yard.home().join(".ssh/id_ed25519").display().to_string();
        let grant = format!("ringwall grant read {path}");
        for part in [path.as_str(), "cat", "read permission", &grant] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        let granted = yard.ringwall(&["grant", "read", &path]);
        assert!(granted.status.success(), "{granted:?}");
        let ran = yard.run(&[], &script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "SECRET-KEY\nnext\n"), "{ran:?}");
    }
}
