//! IP addresses and networks of clients: matching, and the part of an address that limits count by.
//!
//! Addresses are compared by value, not by notation: an IPv4-mapped IPv6 address (`::ffff:192.0.2.7`) equals the
//! IPv4 address.

mod forwarded;
mod header_list;
mod hop_address;
mod trusted_proxies;

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;

use crate::request::FactValue;
pub use header_list::{MAX_FORWARDED_BYTES, MAX_HOPS};
pub use trusted_proxies::{ProxyHeader, TrustedProxies, TrustedProxiesError};

/// The number of prefix bits before the IPv4 address in an IPv4-mapped IPv6 address.
const MAPPED_BITS: u8 = 96;

/// The mask of the first 64 bits, the smallest IPv6 network that a customer usually gets.
const COUNTED_BITS: u128 = !0 << 64;

/// The maximum number of characters of an entry that an error quotes.
const MAX_SHOWN: usize = 64;

/// Parses the value of a fact as an address. IPv4-mapped IPv6 addresses become IPv4.
pub(crate) fn address(fact: &[u8]) -> Option<IpAddr> {
    let address: IpAddr = std::str::from_utf8(fact).ok()?.parse().ok()?;
    Some(address.to_canonical())
}

/// Returns the part of an address to count by: an IPv4 address, or the /64 network of an IPv6 address. A limit per
/// single IPv6 address would have no effect, because one customer usually has 2^64 of them.
///
/// Policies apply it to the fact `ip` only; truncate addresses in other facts yourself.
///
/// ```
/// use tollgate::net;
///
/// assert_eq!(net::rate_limit_address("2001:db8:1:2:a:b:c:d".parse()?).to_string(), "2001:db8:1:2::");
/// assert_eq!(net::rate_limit_address("192.0.2.7".parse()?).to_string(), "192.0.2.7");
/// assert_eq!(net::rate_limit_address("::ffff:192.0.2.7".parse()?).to_string(), "192.0.2.7");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn rate_limit_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & COUNTED_BITS).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// Formats an address as a fact value, in canonical notation so that a client has one value.
///
/// ```
/// use tollgate::net;
///
/// assert_eq!(net::address_text("192.0.2.7".parse()?), "192.0.2.7");
/// assert_eq!(net::address_text("2001:DB8:0::1".parse()?), "2001:db8::1");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn address_text(address: IpAddr) -> String {
    String::from_utf8_lossy(FactValue::from(address).as_bytes()).into_owned()
}

/// Parses an address or a network.
pub(crate) fn parse(text: &str) -> Result<IpNet, String> {
    let net = match text.parse::<IpNet>() {
        Ok(net) => net,
        Err(_) => text.parse::<IpAddr>().map(IpNet::from).map_err(|_| {
            "must be an IP address or network, such as 192.0.2.7 or 192.0.2.0/24".to_owned()
        })?,
    };
    if net != net.trunc() {
        let (length, network) = (net.prefix_len(), net.trunc());
        return Err(format!(
            "has address bits set after the /{length} prefix, did you mean \"{network}\"?"
        ));
    }
    Ok(canonical(net))
}

/// Converts a network of IPv4-mapped addresses to the IPv4 network.
fn canonical(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let mapped = v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(MAPPED_BITS));
    mapped.and_then(|(address, length)| Ipv4Net::new(address, length).ok()).map_or(net, IpNet::V4)
}

/// Returns the network with this prefix length that contains the address.
pub(crate) fn network(address: IpAddr, prefix_length: u8) -> Option<IpNet> {
    IpNet::new(address, prefix_length).ok().map(|net| net.trunc())
}

/// A set of addresses and networks, stored as sorted ranges. A lookup is a binary search.
///
/// ```
/// use tollgate::net::Networks;
///
/// let office = Networks::parse(["192.0.2.0/24", "2001:db8::/32", "::1"])?;
/// assert!(office.contains("192.0.2.7".parse()?) && office.contains("::ffff:192.0.2.7".parse()?));
/// assert!(office.contains("2001:db8::7".parse()?) && !office.contains("::2".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks {
    v4: Vec<Range>,
    v6: Vec<Range>,
}

/// The first and last address of a range of addresses.
type Range = (u128, u128);

impl Networks {
    /// Parses addresses and networks. A network of IPv4-mapped addresses (at least /96) is the IPv4 network; a
    /// wider one contains IPv6 addresses only.
    ///
    /// # Errors
    /// An entry is neither an address nor a network, or is a network with address bits set after its prefix, which
    /// is probably a mistake.
    pub fn parse<T: AsRef<str>>(
        entries: impl IntoIterator<Item = T>,
    ) -> Result<Self, NetworkError> {
        let net = |entry: T| {
            let entry = entry.as_ref();
            parse(entry).map_err(|reason| NetworkError::new(entry, reason))
        };
        let nets: Vec<_> = entries.into_iter().map(net).collect::<Result<_, _>>()?;
        Ok(Self::of(&nets))
    }

    pub(crate) fn of<'n>(nets: impl IntoIterator<Item = &'n IpNet>) -> Self {
        let mut set = Self::default();
        for net in nets {
            match net {
                IpNet::V4(net) => set.v4.push(range_v4(*net)),
                IpNet::V6(net) => set.v6.push(range_v6(*net)),
            }
        }
        merge(&mut set.v4);
        merge(&mut set.v6);
        set
    }

    /// Returns whether the set contains the address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (ranges, address) = match address.to_canonical() {
            IpAddr::V4(address) => (&self.v4, u128::from(u32::from(address))),
            IpAddr::V6(address) => (&self.v6, u128::from(address)),
        };
        let after = ranges.partition_point(|(first, _)| *first <= address);
        let range = after.checked_sub(1).and_then(|index| ranges.get(index));
        range.is_some_and(|(_, last)| address <= *last)
    }
}

/// An entry is not a valid address or network.
///
/// ```
/// use tollgate::net::Networks;
///
/// let error = Networks::parse(["10.0.0.0/8", "10.0.0.1/8"]).unwrap_err();
/// assert_eq!(error.entry(), "10.0.0.1/8");
/// assert_eq!(
///     error.to_string(),
///     "\"10.0.0.1/8\" has address bits set after the /8 prefix, did you mean \"10.0.0.0/8\"?"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{entry:?} {reason}")]
pub struct NetworkError {
    entry: String,
    reason: String,
}

impl NetworkError {
    fn new(entry: &str, reason: String) -> Self {
        Self { entry: entry.chars().take(MAX_SHOWN).collect(), reason }
    }

    /// Returns the first 64 characters of the entry.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.entry
    }
}

fn range_v4(net: Ipv4Net) -> Range {
    (u128::from(u32::from(net.network())), u128::from(u32::from(net.broadcast())))
}

fn range_v6(net: Ipv6Net) -> Range {
    let number = |address: Ipv6Addr| u128::from(address);
    (number(net.network()), number(net.broadcast()))
}

/// Sorts the ranges and merges those that overlap.
fn merge(ranges: &mut Vec<Range>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, earlier| {
        let overlaps = next.0 <= earlier.1;
        if overlaps {
            earlier.1 = earlier.1.max(next.1);
        }
        overlaps
    });
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use ipnet::IpNet;
    use proptest::prelude::*;

    use super::{Networks, network, parse};

    /// Networks that differ in few bits, so that many are nested.
    fn nets() -> impl Strategy<Value = Vec<IpNet>> {
        let net = (0_u8..4, 0_u8..=32, any::<bool>()).prop_map(|(bits, length, is_v4)| {
            let v4 = IpAddr::from([bits, 0, 0, bits]);
            let address = if is_v4 {
                v4
            } else {
                IpAddr::from([0xff00 | u16::from(bits), 0, 0, 0, 0, 0, 0, 1])
            };
            network(address, length).unwrap()
        });
        prop::collection::vec(net, 0..6)
    }

    proptest! {
        #[test]
        fn set_contains_the_addresses_of_its_networks(nets in nets(), bytes in [0_u8..4, 0..2, 0..1, 0..4]) {
            let set = Networks::of(&nets);
            let v6 = IpAddr::from([0xff00 | u16::from(bytes[0]), u16::from(bytes[1]), 0, 0, 0, 0, 0, 1]);
            for address in [IpAddr::from(bytes), v6] {
                prop_assert_eq!(set.contains(address), nets.iter().any(|net| net.contains(&address)));
            }
        }
    }

    #[test]
    fn mapped_networks_become_ipv4() {
        assert_eq!(parse("::ffff:10.0.0.0/104"), parse("10.0.0.0/8"));
        assert_eq!(parse("::ffff:10.0.0.1"), parse("10.0.0.1/32"));
        assert!(matches!(parse("::/64"), Ok(IpNet::V6(_))));
    }
}
