//! Any text is a host in one spelling, or none.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Host;

fuzz_target!(|text: &str| {
    if let Ok(host) = Host::parse(text) {
        let shown = host.to_string();
        assert_eq!(Host::parse(&shown), Ok(host), "{text:?} is {shown:?} and then something else");
        assert!(shown.is_ascii() && shown == shown.to_ascii_lowercase(), "{text:?} is {shown:?}");
    }
    if let Ok((host, Some(port))) = Host::parse_authority(text) {
        assert_eq!(Host::parse_authority(&host.with_port(port)), Ok((host, Some(port))));
    }
});
