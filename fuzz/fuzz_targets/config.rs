//! Any text in a `ringwall.toml` ends as a policy or as an error that says what is wrong.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // What is not UTF-8 never reaches the parser: it is refused where the file is read.
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Err(error) = ringwall::testing::config(text)
    {
        assert!(!error.is_empty(), "an error without words");
    }
});
