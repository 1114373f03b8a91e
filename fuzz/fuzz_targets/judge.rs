//! Any command gets a decision, and a corrected command comes out clean when judged again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ringwall::testing::decide;

fuzz_target!(|command: &str| {
    let Ok(decision) = decide(command) else { return };
    let passes = decision.verdict() == ringwall::testing::ALLOW;
    if let Some(redirect) = decision.redirect().filter(|_| passes) {
        let again = decide(&redirect.value);
        let clean = again.is_ok_and(|again| {
            again.redirect().is_none() && again.verdict() == ringwall::testing::ALLOW
        });
        assert!(clean, "{:?} is corrected to {:?}", command, redirect.value);
    }
});
