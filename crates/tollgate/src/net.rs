//! Addresses and networks of clients: which are meant, and what of them is counted.
//!
//! By bits and never by notation: an IPv4 address that is written as an IPv6 one is that IPv4 address.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;

/// The bits in front of an IPv4 address that is written as an IPv6 one.
const MAPPED_BITS: u8 = 96;

/// The first 64 bits: what one IPv6 customer has at least to himself.
const COUNTED: u128 = !0 << 64;

/// What of an entry an error shows at most.
const MAX_SHOWN: usize = 64;

/// The address a fact holds. An IPv4 address written as an IPv6 one is that IPv4 address, however it
/// is spelled.
pub(crate) fn address(fact: &[u8]) -> Option<IpAddr> {
    let address: IpAddr = std::str::from_utf8(fact).ok()?.parse().ok()?;
    Some(address.to_canonical())
}

/// What one customer has: an IPv4 address, or the first 64 bits of an IPv6 one. Counted by single IPv6
/// addresses a limit would be none, since anyone may have 2^64 of them.
///
/// Policies count the fact `ip` by it; other facts that hold addresses are theirs to cut who give them.
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
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & COUNTED).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// Reads an address or a network, or says what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<IpNet, String> {
    let net = match text.parse::<IpNet>() {
        Ok(net) => net,
        Err(_) => text.parse::<IpAddr>().map(IpNet::from).map_err(|_| {
            "must be an address or a network, such as 192.0.2.7 or 192.0.2.0/24".to_owned()
        })?,
    };
    if net != net.trunc() {
        return Err(format!("has bits set beyond its length, did you mean \"{}\"?", net.trunc()));
    }
    Ok(canonical(net))
}

/// A network of mapped addresses is the IPv4 network.
fn canonical(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let mapped = v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(MAPPED_BITS));
    mapped.and_then(|(address, length)| Ipv4Net::new(address, length).ok()).map_or(net, IpNet::V4)
}

/// The network of this length that the address lies in.
pub(crate) fn network(address: IpAddr, length: u8) -> Option<IpNet> {
    IpNet::new(address, length).ok().map(|net| net.trunc())
}

/// Any of several addresses and networks, found by halving.
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

/// The first and last address of neighbouring networks.
type Range = (u128, u128);

impl Networks {
    /// Reads addresses and networks. A network of IPv4 addresses written as IPv6 ones is that of IPv4; a
    /// wider one is of IPv6 alone.
    ///
    /// # Errors
    /// An entry that is neither, or a network with bits set beyond its length, which may not be the one
    /// that was meant.
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

    /// Whether the address is one of them, or lies in one.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (ranges, address) = match address.to_canonical() {
            IpAddr::V4(address) => (&self.v4, u128::from(u32::from(address))),
            IpAddr::V6(address) => (&self.v6, u128::from(address)),
        };
        let beyond = ranges.partition_point(|(first, _)| *first <= address);
        let range = beyond.checked_sub(1).and_then(|last| ranges.get(last));
        range.is_some_and(|(_, last)| address <= *last)
    }
}

/// An entry that is no address and no network.
///
/// ```
/// use tollgate::net::Networks;
///
/// let error = Networks::parse(["10.0.0.0/8", "10.0.0.1/8"]).unwrap_err();
/// assert_eq!(error.entry(), "10.0.0.1/8");
/// assert_eq!(
///     error.to_string(),
///     "\"10.0.0.1/8\" has bits set beyond its length, did you mean \"10.0.0.0/8\"?"
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

    /// The entry, or the beginning of a long one.
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

/// Sorts, and joins what overlaps.
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

    /// Few bits differ, so that networks lie within each other.
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
        fn a_set_holds_what_one_of_its_networks_holds(nets in nets(), bytes in [0_u8..4, 0..2, 0..1, 0..4]) {
            let set = Networks::of(&nets);
            let v6 = IpAddr::from([0xff00 | u16::from(bytes[0]), u16::from(bytes[1]), 0, 0, 0, 0, 0, 1]);
            for address in [IpAddr::from(bytes), v6] {
                prop_assert_eq!(set.contains(address), nets.iter().any(|net| net.contains(&address)));
            }
        }
    }

    #[test]
    fn mapped_networks_are_those_of_ipv4() {
        assert_eq!(parse("::ffff:10.0.0.0/104"), parse("10.0.0.0/8"));
        assert_eq!(parse("::ffff:10.0.0.1"), parse("10.0.0.1/32"));
        assert!(matches!(parse("::/64"), Ok(IpNet::V6(_))));
    }
}
