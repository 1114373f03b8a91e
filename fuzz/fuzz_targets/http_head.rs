//! Any bytes are a request with one meaning, or none: what is passed on is read back the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Host;
use proxy::testing::{Request, Response, head_end};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(end)) = head_end(bytes, 0) else { return };
    for cut in 0..end.min(64) {
        assert_eq!(head_end(bytes, cut), Ok(Some(end)), "the end moves");
    }
    let head = &bytes[..end];
    if let Ok(request) = Request::parse(head) {
        let said = request.host.clone();
        let host = said.map_or_else(|| Host::parse("example.org").unwrap(), |said| said.host);
        let passed_on = request.bytes(&host, 80);
        assert_eq!(head_end(&passed_on, 0), Ok(Some(passed_on.len())), "a second request in it");
        if request.method != "CONNECT" {
            let again = Request::parse(&passed_on).expect("what is passed on can be read");
            assert_eq!(again.host.map(|said| said.host), Some(host));
            assert_eq!((again.body, again.method), (request.body, request.method));
        }
    }
    for method in ["GET", "HEAD"] {
        if let Ok(response) = Response::parse(head, method) {
            let passed_on = response.bytes(true);
            assert_eq!(head_end(&passed_on, 0), Ok(Some(passed_on.len())));
        }
    }
});
