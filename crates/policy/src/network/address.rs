//! Which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of address it is, if it is not public. Addresses that carry an IPv4
/// address inside are what that address is: a gateway would send them there.
pub(super) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    Some(match address.octets() {
        [169, 254, 169, 254] | [100, 100, 100, 200] | [168, 63, 129, 16] => {
            "a cloud metadata service"
        }
        [0, ..] => "unspecified",
        [127, ..] => "loopback",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "private",
        [169, 254, ..] => "link-local",
        [100, 64..=127, ..] => "shared address space",
        [255, 255, 255, 255] => "broadcast",
        [224..=239, ..] => "multicast",
        [192, 0, 0, _] | [198, 18..=19, ..] | [240..=255, ..] => "reserved",
        _ => return None,
    })
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        not_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    Some(match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => "unspecified",
        [0, 0, 0, 0, 0, 0, 0, 1] => "loopback",
        [0, 0, 0, 0, 0, 0, ..] => "reserved",
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254] => "a cloud metadata service",
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            return embedded(high, low);
        }
        // Teredo embeds an obfuscated IPv4 address; no public service uses it.
        [0x2001, 0, ..] => "a tunnel",
        [0xfe80..=0xfebf, ..] => "link-local",
        [0x64, 0xff9b, ..] | [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => "private",
        [0xff00..=0xffff, ..] => "multicast",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for (text, kind) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.0.1", "private"),
            ("169.254.0.1", "link-local"),
            ("169.254.169.254", "a cloud metadata service"),
            ("100.100.100.200", "a cloud metadata service"),
            ("168.63.129.16", "a cloud metadata service"),
            ("100.64.0.1", "shared address space"),
            ("100.127.255.255", "shared address space"),
            ("192.0.0.192", "reserved"),
            ("198.18.0.1", "reserved"),
            ("198.19.255.255", "reserved"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::7f00:1", "reserved"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:169.254.169.254", "a cloud metadata service"),
            ("fd00:ec2::254", "a cloud metadata service"),
            ("fc00::1", "private"),
            ("fdff::1", "private"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "private"),
            ("ff02::1", "multicast"),
            ("64:ff9b::7f00:1", "loopback"),
            ("64:ff9b::a9fe:a9fe", "a cloud metadata service"),
            ("64:ff9b:1::1", "private"),
            ("2002:7f00:1::", "loopback"),
            ("2002:a00:1::1", "private"),
            ("2001::1", "a tunnel"),
        ] {
            assert_eq!(not_public(text.parse().unwrap()), Some(kind), "{text}");
        }
        for text in [
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.0",
            "198.17.0.1",
            "198.20.0.1",
            "192.0.1.1",
            "168.63.129.17",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "::ffff:8.8.8.8",
        ] {
            assert_eq!(not_public(text.parse().unwrap()), None, "{text}");
        }
    }
}
