//! The made-up addresses and the names they stand for.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use model::Host;

/// The addresses that were given out. They do not change while the proxy runs.
#[derive(Debug, Default)]
pub(crate) struct Book {
    addresses: HashMap<Host, Ipv4Addr>,
    hosts: Vec<Host>,
}

/// 198.18.0.0/15 is reserved for benchmarks of network devices, so no real server has such an address.
const FIRST: u32 = Ipv4Addr::new(198, 18, 1, 0).to_bits();
/// Further names get no address.
const CAPACITY: usize = 65_536;

/// Whether an address is in the range of made-up addresses.
pub(crate) fn is_made_up(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if matches!(address.octets(), [198, 18 | 19, ..]))
}

impl Book {
    /// The address of a name: a new one on first use, none if the book is full.
    pub(crate) fn address(&mut self, host: &Host) -> Option<Ipv4Addr> {
        if let Some(address) = self.addresses.get(host) {
            return Some(*address);
        }
        let next = u32::try_from(self.hosts.len()).ok()?;
        if self.hosts.len() >= CAPACITY {
            return None;
        }
        let address = Ipv4Addr::from_bits(FIRST + next);
        self.addresses.insert(host.clone(), address);
        self.hosts.push(host.clone());
        Some(address)
    }

    /// The name that an address was given out for.
    pub(crate) fn host(&self, address: IpAddr) -> Option<Host> {
        let IpAddr::V4(address) = address else { return None };
        let index = address.to_bits().checked_sub(FIRST)?;
        self.hosts.get(usize::try_from(index).ok()?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_address_until_the_book_is_full() {
        let mut book = Book::default();
        for index in 0..CAPACITY {
            let host = Host::parse(&format!("n{index}.example")).unwrap();
            let address = book.address(&host).unwrap();
            assert!(is_made_up(address.into()), "{address}");
            assert_eq!(book.host(address.into()), Some(host));
        }
        let known = Host::parse("n7.example").unwrap();
        assert_eq!(book.address(&known), Some(Ipv4Addr::new(198, 18, 1, 7)));
        assert_eq!(book.address(&Host::parse("one.more.example").unwrap()), None);
        assert_eq!(book.host("198.18.0.1".parse().unwrap()), None);
        assert_eq!(book.host("198.19.255.255".parse().unwrap()), None);
    }
}
