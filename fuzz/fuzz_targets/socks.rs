//! Any bytes are a SOCKS message, the beginning of one, or none.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proxy::testing::{greeting, socks_request};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some((length, _))) = greeting(bytes) {
        assert!(length <= bytes.len());
    }
    if let Ok(Some((length, request))) = socks_request(bytes) {
        assert!(length <= bytes.len() && request.port != 0);
        assert_eq!(socks_request(&bytes[..length]), Ok(Some((length, request))));
        assert_eq!(socks_request(&bytes[..length - 1]), Ok(None));
    }
});
