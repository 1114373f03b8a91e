//! Any text is read as shell without a panic, and a long or deep one at once.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    ringwall::testing::parse(text);
});
