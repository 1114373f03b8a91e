//! Any target of CONNECT is a host and a port, or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proxy::testing::{Request, chunk_line, head_end, sniff};

fuzz_target!(|bytes: &[u8]| {
    let head = [b"CONNECT ", bytes, b" HTTP/1.1\r\nHost: example.org\r\n\r\n"].concat();
    if let Ok(Some(end)) = head_end(&head, 0)
        && let Ok(request) = Request::parse(&head[..end])
    {
        let shown = format!("{:?}", request.target);
        assert!(request.method != "CONNECT" || shown.starts_with("Tunnel"), "{shown}");
    }
    let _ = chunk_line(bytes);
    // What is decided stays decided, however much follows.
    for port in [22, 80, 443] {
        let decided = (0..=bytes.len()).find_map(|end| sniff(&bytes[..end], port));
        if let Some(decided) = decided {
            assert_eq!(sniff(bytes, port), Some(decided), "{}", bytes.escape_ascii());
        }
    }
});
