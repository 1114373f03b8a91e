//! Any bytes on the hook's stdin end as a refusal to decode, as silence or as one JSON object.
//!
//! An agent that cannot read the answer runs the tool, so half an answer is an open gate.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(answer) = ringwall::testing::answer(bytes)
        && !answer.is_empty()
    {
        let parsed = serde_json::from_slice::<Map<String, Value>>(&answer);
        assert!(parsed.is_ok(), "the answer is no JSON object: {}", answer.escape_ascii());
    }
});
