//! Any bytes are one question, or rejected; and an answer repeats what was asked.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proxy::testing::{Code, Question};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(question) = Question::parse(bytes) {
        let answer = question.answer(Code::Fine, Some([198, 18, 1, 0].into()));
        assert_eq!(answer[..2], bytes[..2], "another question's answer");
        assert!(answer.len() <= 12 + 255 + 4 + 16, "{} bytes", answer.len());
        assert!(Question::parse(&answer).is_err(), "an answer is no question");
    }
});
