//! Any bytes name a TLS server, or hide it, or are called unreadable; and no later byte changes it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proxy::testing::{Hello, client_hello};

fuzz_target!(|bytes: &[u8]| {
    if let Hello::Said(name, length) = client_hello(bytes) {
        assert!(length <= bytes.len());
        let longer = [bytes, &[0x16, 3, 1, 0, 1, 1]].concat();
        match client_hello(&longer) {
            Hello::Said(again, _) => assert_eq!(again, name),
            Hello::More => panic!("what was said is taken back"),
        }
    }
});
